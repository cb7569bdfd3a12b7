"""The run that another one is compared with, and whether a commit made a difference between the two.

Candidates have inputs, started before the run, and are in a scope that the caller reads. The nearest commit comes
first, then the run with the most equal hashes, then the newest.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from larder.actor import Actor
from larder.why.comparison import LOCKFILES, MANIFEST, TURBO_JSON, changed_files
from larder.why.differences import Differences
from larder.why.hints import Hint, Hints
from larder.why.inputs import MAX_HINTS, hints_of
from larder.why.models import Run
from larder.why.records import Chosen
from larder.why.summaries import Summary

MAX_AGE = timedelta(days=14)
MAX_RUNS = 200
"""The most runs that are looked through."""

_MAIN_BRANCHES = frozenset({"main", "master"})
_OUTSIDE = (Hint.IGNORED, Hint.UNTRACKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineQuery:
    """What is looked for. `run_id` is that of the run itself, and `started_at` its start, or now for a dry run.

    `own_scope` is the scope that the caller reads next to the shared one. With `trusted_only`, only trusted runs count,
    or without any those of `reporter` on a computer. `ancestors` are commits, the nearest first. `against` is the id of
    a run, `main`, `last` (of `reporter`) or `ci`.
    """

    run_id: str
    started_at: datetime
    own_scope: str | None
    trusted_only: bool
    sha: str | None
    ancestors: Sequence[str]
    against: str | None
    reporter: Actor


class Candidate(NamedTuple):
    run: Run
    chosen: Chosen


def candidates(runs: Sequence[Run], summary: Summary, query: BaselineQuery) -> Iterator[Candidate]:
    """The best first. `runs` are the newest first."""
    fitting = [run for run in runs if run.id != query.run_id and _is_open(run, query)]
    if query.against is not None:
        main = _main_branches(fitting)
        yield from (Candidate(run, "asked") for run in fitting if _is_named(run, query, main))
        return
    trusted = [run for run in fitting if run.trusted or not query.trusted_only]
    if not trusted:
        trusted = [run for run in fitting if _is_of_a_computer(run, query)]
    names = {(task.package, task.task) for task in summary.tasks.values()}
    hashes = {task.hash for task in summary.tasks.values()}
    commits = [*([query.sha] if query.sha else []), *query.ancestors]
    distance = {sha: number for number, sha in reversed(list(enumerate(commits)))}
    near = [run for run in trusted if run.sha in distance]
    # Several jobs of one commit run other tasks. The one that ran the same ones says most.
    near.sort(key=lambda run: (distance[run.sha or ""], -_common(run, names)))
    yield from (Candidate(run, "ancestor") for run in near)
    equal = {run.place: _equal(run, hashes) for run in trusted}
    others = [run for run in trusted if run.sha not in distance]
    others.sort(key=lambda run: -equal[run.place])
    for run in others:
        yield Candidate(run, "hashes" if equal[run.place] else "newest")


def has_same_globals(base: Summary, other: Summary) -> bool:
    """Whether what enters every hash is the same, so that tasks of both can be compared with a third run."""
    return (base.shared, base.env_mode, base.infers_frameworks, base.turbo) == (
        *(other.shared, other.env_mode, other.infers_frameworks),
        other.turbo,
    )


def with_missing(base: Summary, others: Iterable[Summary], ids: Iterable[str]) -> Summary:
    """The baseline, with the tasks that it lacks from the first of the others that has them."""
    tasks = dict(base.tasks)
    missing = {id for id in ids if id not in tasks}
    for other in others:
        if has_same_globals(base, other):
            tasks |= {id: other.tasks[id] for id in missing & other.tasks.keys() - tasks.keys()}
    return replace(base, tasks=tasks)


def with_committed(
    base_report: Mapping[str, Any],
    report: Mapping[str, Any],
    base: Summary,
    run: Summary,
    compared: Differences,
) -> Hints:
    """The hints of the report, with the files that differ between the two commits. Raises OutOfSteps.

    Between the same commit, none does. Else these follow only if both checkouts had no uncommitted change, and both
    reports name every input, lockfile and turbo.json that is not in git: then every other file that differs is in a
    commit. Other line endings than in the commit of the run explain a difference only from a checkout of that commit.
    """
    hints, older = hints_of(report), hints_of(base_report)
    outside = _outside(hints) | _outside(older)
    if base.sha is None or base.sha != run.sha or base_report.get("dirty") is not False:
        hints = _without_line_endings(hints)
    if base.sha is None or run.sha is None:
        return hints
    if base.sha == run.sha:
        return replace(hints, committed=frozenset())
    if not _is_known(base_report, older) or not _is_known(report, hints):
        return hints
    folders = {"", *(task.directory for task in run.tasks.values())}
    settings = {f"{folder}/{name}".lstrip("/") for folder in folders for name in TURBO_JSON}
    others = settings | {*LOCKFILES, MANIFEST}
    changed = changed_files(base, run, compared)
    return replace(hints, committed=(others | changed.keys()) - outside)


def _is_open(run: Run, query: BaselineQuery) -> bool:
    """A run of another own scope may come from anyone who can open a pull request."""
    is_recent = run.started_at >= query.started_at - MAX_AGE
    return is_recent and run.has_inputs and run.scope in (None, query.own_scope)


def _is_of_a_computer(run: Run, query: BaselineQuery) -> bool:
    is_of_ci = run.ci is not None or run.only_reads
    return not is_of_ci and run.reporter.holder_id == query.reporter.holder_id


def _main_branches(runs: Iterable[Run]) -> Set[str]:
    """`main` and `master`, or without them the branch that most trusted runs are of."""
    count = Counter(run.branch for run in runs if run.trusted and run.branch)
    return count.keys() & _MAIN_BRANCHES or {name for name, _ in count.most_common(1)}


def _is_named(run: Run, query: BaselineQuery, main: Set[str]) -> bool:
    match query.against:
        case "main":
            return run.trusted and run.branch in main
        case "last":
            return query.reporter.holder_id == run.reporter.holder_id
        case "ci":
            return run.trusted and run.ci is not None
    return run.id == query.against


def _common(run: Run, names: Iterable[tuple[str, str]]) -> int:
    ran = {(package, task) for package, task, _, _ in run.tasks}
    return len(ran.intersection(names))


def _equal(run: Run, hashes: Iterable[str]) -> int:
    return len({hash for hash in run.hashes if hash}.intersection(hashes))


def _without_line_endings(hints: Hints) -> Hints:
    others = {
        path: file for path, file in hints.files.items() if file.hint is not Hint.LINE_ENDINGS
    }
    return replace(hints, files=others)


def _outside(hints: Hints) -> Set[str]:
    return {path for path, file in hints.files.items() if file.hint in _OUTSIDE}


def _is_known(report: Mapping[str, Any], hints: Hints) -> bool:
    """A full list may lack files."""
    return report.get("dirty") is False and len(hints.files) < MAX_HINTS
