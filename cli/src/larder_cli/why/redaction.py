"""Labels in place of the names of variables, paths and packages, so that a report can be shared."""

from collections.abc import Iterable
from dataclasses import replace

from larder.misses.causes import Cause, Kind
from larder.misses.comparison import Comparison, Note
from larder.misses.hints import Hint
from larder.misses.summaries import Summary

_PATHS = frozenset({Kind.FILE, Kind.GLOBAL_FILE})
_VARIABLES = frozenset({Kind.ENV, Kind.GLOBAL_ENV})
_PACKAGES = frozenset({Kind.EXTERNAL, Kind.MOVED})
_LISTS = {
    "outputs": "path",
    "dotEnv": "path",
    "globalDotEnv": "path",
    "env": "variable",
    "passThroughEnv": "variable",
    "globalEnv": "variable",
    "globalPassThroughEnv": "variable",
}


def redacted(comparison: Comparison) -> Comparison:
    """The same comparison with labels such as `path-1`. The same summaries always get the same labels."""
    labels = _Labels()
    changed = labels.tasks(comparison.changed)
    return Comparison(
        base=_run(comparison.base, labels),
        run=_run(comparison.run, labels),
        changed=changed,
        restored=labels.tasks(comparison.restored),
        new=labels.tasks(comparison.new),
        gone=labels.tasks(comparison.gone),
        same_hash=labels.tasks(comparison.same_hash),
        causes=tuple(_cause(one, labels) for one in comparison.causes),
        notes=tuple(_note(one, labels) for one in comparison.notes),
    )


class _Labels:
    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def label(self, kind: str, name: str) -> str:
        known = self._known.setdefault(kind, {})
        return known.setdefault(name, f"{kind}-{len(known) + 1}")

    def task(self, id: str) -> str:
        package, hash, task = id.rpartition("#")
        return id if not hash or package == "//" else f"{self.label('package', package)}#{task}"

    def tasks(self, ids: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.task(one) for one in ids)

    def named(self, kind: Kind | None, subject: str) -> str:
        for label, kinds in (("path", _PATHS), ("variable", _VARIABLES), ("package", _PACKAGES)):
            if kind in kinds:
                return self.label(label, subject)
        return subject

    def word(self, kind: str, word: str) -> str:
        """`+name` or `-name`."""
        return word[:1] + self.label(kind, word[1:])

    def package_change(self, text: str) -> str:
        """`lodash 4.17.20 -> 4.17.21`"""
        name, _, versions = text.partition(" ")
        return f"{self.label('package', name)} {versions}"


def _run(summary: Summary, labels: _Labels) -> Summary:
    tasks = (replace(one, id=labels.task(id)) for id, one in summary.tasks.items())
    return replace(summary, branch=None, tasks={one.id: one for one in tasks})


def _cause(cause: Cause, labels: _Labels) -> Cause:
    return replace(
        cause,
        subject=labels.named(cause.kind, cause.subject),
        more=tuple(labels.named(cause.kind, one) for one in cause.more),
        values=_values(cause, labels),
        hints=tuple((hint, _about(hint, values, labels)) for hint, values in cause.hints),
        direct=labels.tasks(cause.direct),
        below=labels.tasks(cause.below),
    )


def _values(cause: Cause, labels: _Labels) -> tuple[str, ...]:
    if cause.kind is Kind.ARGUMENTS:
        return ()
    if cause.kind is Kind.MOVED:
        places = (one.split(" -> ") for one in cause.values)
        return tuple(" -> ".join(labels.label("path", place) for place in both) for both in places)
    if cause.kind in (Kind.DEFINITION, Kind.TURBO_JSON) and cause.subject in _LISTS:
        return tuple(labels.word(_LISTS[cause.subject], one) for one in cause.values)
    if cause.kind is Kind.EDGE or cause.subject == "dependsOn":
        return tuple(one[:1] + labels.task(one[1:]) for one in cause.values)
    return cause.values


def _about(hint: Hint, values: tuple[str, ...], labels: _Labels) -> tuple[str, ...]:
    if hint is Hint.PACKAGES:
        return tuple(map(labels.package_change, values))
    if hint is Hint.EXAMPLE:
        return tuple(labels.label("path", one) for one in values)
    if hint is Hint.DEPENDENCIES:
        return tuple(one[:1] + labels.task(one[1:]) for one in values)
    if hint is Hint.MISSING_DEPENDENCY:
        return labels.tasks(values)
    return values


def _note(note: Note, labels: _Labels) -> Note:
    kind = Kind.ENV if note.note == "passed_variable" else note.kind
    return replace(note, subject=labels.named(kind, note.subject), tasks=labels.tasks(note.tasks))
