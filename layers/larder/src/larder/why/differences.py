"""What differs between lists of two runs, within a number of steps.

Tasks share lists of files, settings and names, so each pair of lists is compared once. A report can refer to one long
list from each of its tasks all the same, so every comparison takes steps, and ends when there are none left.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple, TypeVar

from larder.why.summaries import ANY_FILE, Variables

T = TypeVar("T")

UNLIMITED = 10**18
"""Steps of the command line, which compares its user's own files."""

OF_A_CAUSE = 40
"""The steps of a cause of one task."""


class OutOfSteps(Exception):
    """The comparison has taken all its steps."""


class FileDifferences(NamedTuple):
    """The names of files that differ, and how. `renamed` are those that differ only in the case of their letters."""

    names: Sequence[tuple[str, str]]
    renamed: Set[str]


class Differences:
    """What differs between pairs of lists. A step takes about a tenth of a microsecond.

    The lists must exist as long as this object: it knows them by their identity.
    """

    def __init__(self, steps: int = UNLIMITED) -> None:
        self.left = steps
        self.paths: dict[tuple[str, str], str] = {}
        """Paths from the root by folder and name, because the tasks of a package have the same files."""
        self._known: dict[tuple[object, ...], object] = {}
        self._patterns: dict[tuple[object, ...], _Patterns] = {}

    def take(self, steps: int) -> None:
        """Raises OutOfSteps."""
        self.left -= steps
        if self.left < 0:
            raise OutOfSteps

    def of_files(self, old: Mapping[str, str], new: Mapping[str, str]) -> FileDifferences:
        """Of a list that is one digest in a run, only whether it differs: names of the other run mean nothing."""
        return self._once(_file_differences, old, new)

    def of_words(self, old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
        """The added words, such as `+dist/**`, and then the removed ones."""
        return self._once(_words, old, new)

    def of_variables(self, old: Variables, new: Variables) -> Iterator[tuple[str, str, bool]]:
        """Each name whose value differs, how, and whether it is inferred. One that is configured, too, comes once.

        If turbo hashes a variable in one run only because turbo.json names it there, the change of turbo.json is the
        cause.
        """
        patterns = self._changed_patterns(old.names, new.names)
        seen: set[str] = set()
        for before, after, is_inferred in (
            (old.configured, new.configured, False),
            (old.inferred, new.inferred, True),
        ):
            self.take(len(before) + len(after))
            for name, how in differences(before, after):
                self.take(OF_A_CAUSE + patterns.steps)
                if name in seen or (how != "changed" and patterns.match(name)):
                    continue
                seen.add(name)
                yield name, how, is_inferred

    def _changed_patterns(self, old: tuple[str, ...], new: tuple[str, ...]) -> "_Patterns":
        """By content: each task of a report can have a list of its own, and all the same patterns."""
        self.take((len(old) + len(new)) // 4 + 1)
        found = self._patterns.get((old, new))
        if found is None:
            self.take(len(old) + len(new))
            patterns = {pattern.lstrip("!") for pattern in {*old} ^ {*new}}
            self.take(sum(map(len, patterns)) // 4)
            found = self._patterns[old, new] = _Patterns(patterns)
        return found

    def _once(self, compare: Callable[..., T], old: Iterable[str], new: Iterable[str]) -> T:
        key = (compare, id(old), id(new))
        if key not in self._known:
            self.take(len(old) + len(new) + 1)  # type: ignore[arg-type]
            self._known[key] = compare(old, new)
        return self._known[key]  # type: ignore[return-value]


class _Patterns:
    """Names in `turbo.json`, of which `*` stands for any text."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._wild: list[tuple[str, list[str], str]] = []
        for pattern in patterns:
            first, *rest = pattern.split("*")
            if rest:
                *middle, last = rest
                self._wild.append((first, [part for part in middle if part], last))
            else:
                self._exact.add(pattern)
        self.steps = sum(2 + 2 * len(middle) for _, middle, _ in self._wild)
        """What it takes to match a name."""

    def match(self, name: str) -> bool:
        return name in self._exact or any(
            name.startswith(first) and name.endswith(last) and _has(name, first, middle, last)
            for first, middle, last in self._wild
        )


def _has(name: str, first: str, middle: Iterable[str], last: str) -> bool:
    at, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The names whose values differ, and how."""
    if old == new:
        return
    for name in sorted(name for name, value in new.items() if old.get(name) != value):
        yield name, "changed" if name in old else "added"
    for name in sorted(old.keys() - new.keys()):
        yield name, "removed"


def _file_differences(old: Mapping[str, str], new: Mapping[str, str]) -> FileDifferences:
    if (ANY_FILE in old) != (ANY_FILE in new):
        return FileDifferences([(ANY_FILE, "changed")], frozenset())
    return FileDifferences(list(differences(old, new)), _renamed(old, new))


def _renamed(old: Mapping[str, str], new: Mapping[str, str]) -> Set[str]:
    """The names that differ only in the case of their letters, with the same content: the old and the new ones."""
    gone = {name.lower(): name for name in old.keys() - new.keys()}
    both = [
        (gone[name.lower()], name)
        for name in new.keys() - old.keys()
        if name.lower() in gone and old[gone[name.lower()]] == new[name]
    ]
    return {name for pair in both for name in pair}


def _words(before: Iterable[str], after: Iterable[str]) -> tuple[str, ...]:
    old, new = set(before), set(after)
    added, removed = sorted(new - old), sorted(old - new)
    return (*(f"+{value}" for value in added), *(f"-{value}" for value in removed))
