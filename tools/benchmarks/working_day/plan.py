"""The day as a list of steps: who builds what, and when. The same seed makes the same day."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

_MORNING_MINUTES = 45
"""Engineers begin in this time, and pull main first."""

_STARTS_UNTIL_MINUTES = 300
_BETWEEN_BUILDS_MINUTES = 10
_REVIEW_MINUTES = 30
_ENTRY_POINTS = 0.25
"""The part of the packages on which no other depends."""


class Action(Enum):
    PULL = "pull"
    """The engineer pulls main, and builds."""
    BRANCH = "branch"
    """The engineer pulls main, creates a branch, and builds."""
    EDIT = "edit"
    """The engineer changes a package on the branch, and builds."""
    UPDATE = "update"
    """The engineer merges main into the branch, and builds."""
    PUSH = "push"
    """The engineer pushes the branch, and a job of the pull request builds its merge with main."""
    MERGE = "merge"
    """The branch is merged, and a job of main builds."""


@dataclass(frozen=True, slots=True)
class Step:
    minute: float
    action: Action
    engineer: int
    change: int = 0
    package: str = ""
    edit: int = 0


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    dependencies: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """How large the team is, and what it does. Each change has `pushes`, and `builds` on the laptop before each."""

    engineers: int
    changes: int
    pushes: int
    builds: int
    packages: int
    seed: int

    def monorepo(self) -> tuple[Package, ...]:
        """Packages in layers: each depends on up to three earlier ones, and on the last ones no other depends."""
        chance = random.Random(f"packages {self.seed}")  # noqa: S311  # the same seed plans the same day
        entry_points = max(1, round(self.packages * _ENTRY_POINTS))
        shared = self.packages - entry_points
        found = []
        for number in range(self.packages):
            earlier = range(min(number, shared))
            count = min(len(earlier), chance.randint(1, 3))
            chosen = sorted(chance.sample(earlier, count)) if number >= shared // 4 else []
            found.append(Package(_name(number), tuple(map(_name, chosen))))
        return tuple(found)

    def steps(self) -> list[Step]:
        """The steps in the order in which they happen."""
        chance = random.Random(f"steps {self.seed}")  # noqa: S311
        begins = [chance.uniform(0, _MORNING_MINUTES) for _ in range(self.engineers)]
        found = [Step(begin, Action.PULL, number) for number, begin in enumerate(begins)]
        free = list(begins)
        for change in range(1, self.changes + 1):
            engineer = change % self.engineers
            begin = max(free[engineer], chance.uniform(_MORNING_MINUTES, _STARTS_UNTIL_MINUTES))
            steps = list(self._of_change(change, engineer, begin, chance))
            free[engineer] = steps[-1].minute
            found += steps
        return sorted(found, key=lambda step: (step.minute, step.engineer))

    def _of_change(
        self, change: int, engineer: int, minute: float, chance: random.Random
    ) -> Iterator[Step]:
        packages = [_name(self._changed(chance)) for _ in range(2)]
        edit = 0
        yield Step(minute, Action.BRANCH, engineer, change)
        for push in range(self.pushes):
            for _ in range(self.builds):
                minute += chance.expovariate(1 / _BETWEEN_BUILDS_MINUTES)
                edit += 1
                # Most changes are about one package.
                package = packages[chance.random() < 0.3]
                yield Step(minute, Action.EDIT, engineer, change, package, edit)
            if push == self.pushes // 2:
                minute += 1
                yield Step(minute, Action.UPDATE, engineer, change)
            minute += 1
            yield Step(minute, Action.PUSH, engineer, change)
        minute += chance.expovariate(1 / _REVIEW_MINUTES)
        yield Step(minute, Action.MERGE, engineer, change)

    def _changed(self, chance: random.Random) -> int:
        """The number of a package. Those on which many depend change less often."""
        return int(self.packages * chance.random() ** 0.5)


def _name(number: int) -> str:
    return f"package-{number:02}"
