"""The CI jobs that wrote artifacts. The audit has them long after their tokens have ended."""

from collections.abc import Iterable, Mapping

from larder.actor import Actor
from larder.audit.service import tokens


def jobs_of(owner: str, writers: Iterable[Actor | None]) -> dict[str, Mapping[str, str]]:
    """What is known of the jobs among the writers of an owner's artifacts, by the ids of their tokens."""
    ids = {one.credential_id for one in writers if one and one.rule_id}
    return {
        id: entry.details for id, entry in tokens(ids).items() if entry.details.get("team") == owner
    }
