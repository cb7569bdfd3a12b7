"""Labels in place of the names of variables, paths and packages, so that a report can be shared."""

from collections.abc import Iterable

from larder.why.causes import Kind
from larder.why.hints import Hint
from larder.why.records import CauseJson, ComparisonJson, HintJson, NoteJson
from larder.why.summaries import UNHASHED_SETTINGS

_LABELS = {
    Kind.FILE: "path",
    Kind.GLOBAL_FILE: "path",
    Kind.ENV: "variable",
    Kind.GLOBAL_ENV: "variable",
    Kind.VALUE: "variable",
    Kind.EXTERNAL: "package",
    Kind.MOVED: "package",
}
"""What the subject of a cause names. Subjects of other kinds are words of turbo."""

_LISTS = {
    "outputs": "path",
    "dotEnv": "path",
    "globalDotEnv": "path",
    "env": "variable",
    "passThroughEnv": "variable",
    "globalEnv": "variable",
    "globalPassThroughEnv": "variable",
}
_WORDS = frozenset({"", "turbo", "engines", *UNHASHED_SETTINGS, *_LISTS})
"""Subjects of notes that name a setting."""


def redacted(shown: ComparisonJson) -> ComparisonJson:
    """The same with labels such as `path-1`. The same comparison always gets the same labels."""
    labels = _Labels()
    return {
        **shown,
        "baseline": {**shown["baseline"], "branch": None},
        "run": {**shown["run"], "branch": None},
        "causes": [_cause(cause, labels) for cause in shown["causes"]],
        "sameHash": [{**one, "task": labels.task(one["task"])} for one in shown["sameHash"]],
        "new": labels.tasks(shown["new"]),
        "gone": labels.tasks(shown["gone"]),
        "notes": [_note(note, labels) for note in shown["notes"]],
    }


class _Labels:
    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def label(self, kind: str, name: str) -> str:
        known = self._known.setdefault(kind, {})
        return known.setdefault(name, f"{kind}-{len(known) + 1}")

    def task(self, id: str) -> str:
        package, hash, task = id.rpartition("#")
        return id if not hash or package == "//" else f"{self.label('package', package)}#{task}"

    def tasks(self, ids: Iterable[str]) -> list[str]:
        return [self.task(one) for one in ids]

    def word(self, kind: str, word: str) -> str:
        """`+name` or `-name`."""
        return word[:1] + self.label(kind, word[1:])

    def package_change(self, text: str) -> str:
        """`lodash 4.17.20 -> 4.17.21`"""
        name, _, versions = text.partition(" ")
        return f"{self.label('package', name)} {versions}"


def _cause(cause: CauseJson, labels: _Labels) -> CauseJson:
    kind, subject = cause["kind"], cause["subject"]
    return {
        **cause,
        "subject": labels.label(_LABELS[kind], subject) if kind in _LABELS else subject,
        "values": _values(cause, labels),
        "hints": [_hint(hint, labels) for hint in cause["hints"]],
        "direct": labels.tasks(cause["direct"]),
    }


def _values(cause: CauseJson, labels: _Labels) -> list[str]:
    kind, subject, values = cause["kind"], cause["subject"], cause["values"]
    if kind == Kind.ARGUMENTS:
        return []
    if kind == Kind.MOVED:
        places = (value.split(" -> ") for value in values)
        return [" -> ".join(labels.label("path", place) for place in both) for both in places]
    if kind in (Kind.DEFINITION, Kind.TURBO_JSON) and subject in _LISTS:
        return [labels.word(_LISTS[subject], value) for value in values]
    if kind == Kind.EDGE or subject == "dependsOn":
        return [value[:1] + labels.task(value[1:]) for value in values]
    return values


def _hint(hint: HintJson, labels: _Labels) -> HintJson:
    values = hint["values"]
    match hint["hint"]:
        case Hint.PACKAGES:
            values = [labels.package_change(value) for value in values]
        case Hint.EXAMPLE:
            values = [labels.label("path", value) for value in values]
        case Hint.DEPENDENCIES:
            values = [value[:1] + labels.task(value[1:]) for value in values]
        case Hint.MISSING_DEPENDENCY:
            values = labels.tasks(values)
    return {**hint, "values": values}


def _note(note: NoteJson, labels: _Labels) -> NoteJson:
    subject = note["subject"] or ""
    if note["note"] == "passed_variable":
        subject = labels.label("variable", subject)
    elif note["note"] == "not_hashed" and subject not in _WORDS:
        subject = labels.label("name", subject)
    return {**note, "subject": subject or None, "tasks": labels.tasks(note["tasks"])}
