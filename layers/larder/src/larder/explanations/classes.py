"""Whether a commit made a difference, from what two reports say about their checkouts."""

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import Any

from larder.misses.comparison import LOCKFILES, MANIFEST, TURBO_JSON, changed_files
from larder.misses.differences import Differences
from larder.misses.hints import Hint, Hints
from larder.misses.inputs import MAX_HINTS, hints_of
from larder.misses.summaries import Summary

_OUTSIDE = (Hint.IGNORED, Hint.UNTRACKED)


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


def _without_line_endings(hints: Hints) -> Hints:
    others = {path: one for path, one in hints.files.items() if one.hint is not Hint.LINE_ENDINGS}
    return replace(hints, files=others)


def _outside(hints: Hints) -> Set[str]:
    return {path for path, one in hints.files.items() if one.hint in _OUTSIDE}


def _is_known(report: Mapping[str, Any], hints: Hints) -> bool:
    """A full list may lack files."""
    return report.get("dirty") is False and len(hints.files) < MAX_HINTS
