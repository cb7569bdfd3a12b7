"""What stored artifacts are the outputs of: from the id tokens of the jobs that wrote them, and from reported runs."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from larder.artifacts.breakdown import Origins
from larder.artifacts.records import Origin, Seen
from larder.audit.service import jobs_of
from larder.why import repository
from larder.why.models import Outcome

MOST_NAMED = 200_000
"""The most hashes of runs that are read, the newest first: 73 MB of memory. Older ones have no names."""

_HEADS = "refs/heads/"


class _Named(NamedTuple):
    package: str
    task: str
    branch: str | None
    is_built: bool


def origins_of(owner: str) -> Origins:
    """Reads the owner's runs once. For background work, never on a request: 2,000 runs are 28 MB."""
    named: dict[str, _Named] = {}
    # The newest first. The branch that built a hash comes before those that restored it.
    for package, task, branch, outcome, hash in islice(repository.named_hashes(owner), MOST_NAMED):
        is_built = outcome == Outcome.BUILT
        known = named.get(hash)
        if known is None or (is_built and not known.is_built):
            named[hash] = _Named(package, task, branch, is_built)
    jobs: dict[str, Mapping[str, str]] = {}

    def origins(artifacts: Iterable[Seen]) -> Iterator[Origin]:
        listed = list(artifacts)
        unknown = {
            one.writer.credential_id: one.writer
            for one in listed
            if one.writer and one.writer.credential_id not in jobs
        }
        found = jobs_of(owner, unknown.values())
        jobs.update({id: found.get(id, {}) for id in unknown})
        for artifact in listed:
            job = jobs[artifact.writer.credential_id] if artifact.writer else {}
            of = named.get(artifact.hash)
            ref = job.get("ref", "")
            yield Origin(
                repository=job.get("repository"),
                branch=(of and of.branch) or ref.removeprefix(_HEADS) or None,
                package=of.package if of else None,
                task=of.task if of else None,
            )

    return origins
