"""What the cache must answer on the day, by a model that knows only who reads and writes which scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256

from tools.benchmarks.working_day.plan import Action, Day, Package, Step


class Policy(Enum):
    """Who writes what others read."""

    OPEN = "open"
    """The team is not protected: everyone writes the one scope."""
    CI_ONLY = "ci-only"
    """The team is not protected, and laptops only read."""
    PROTECTED = "protected"


class Place(Enum):
    LAPTOPS = "laptops"
    PULL_REQUESTS = "jobs of pull requests"
    MAIN = "jobs of main"


@dataclass
class Figures:
    """What turbo reported, by place. `unexpected` counts tasks whose outcome differs from the model's."""

    runs: Counter[Place] = field(default_factory=Counter)
    tasks: Counter[Place] = field(default_factory=Counter)
    hits: Counter[Place] = field(default_factory=Counter)
    unexpected: int = 0

    def count(self, site: Site, hits: Sequence[bool]) -> None:
        """Count a run."""
        self.runs[site.place] += 1
        self.tasks[site.place] += len(hits)
        self.hits[site.place] += sum(hits)

    def hit_rate(self, *places: Place) -> float:
        """In percent of the tasks, of all places by default. 100 without tasks."""
        chosen = places or tuple(Place)
        tasks = sum(self.tasks[place] for place in chosen)
        return 100 * sum(self.hits[place] for place in chosen) / tasks if tasks else 100.0

    def built(self, *places: Place) -> int:
        return sum(self.tasks[place] - self.hits[place] for place in places or tuple(Place))


@dataclass(frozen=True)
class Site:
    """Where a build runs. `scope` is where it writes in a protected team, None for the shared scope."""

    place: Place
    machine: str
    scope: str | None


def laptop(number: int) -> Site:
    return Site(Place.LAPTOPS, f"laptop-{number}", f"laptop-{number}")


def pull_request(change: int) -> Site:
    return Site(Place.PULL_REQUESTS, "ci", f"refs/pull/{change}/merge")


MAIN = Site(Place.MAIN, "ci", None)


class Cache:
    """The hashes in each scope, and those that each laptop keeps itself."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._shared: set[str] = set()
        self._own: dict[str, set[str]] = {}
        self._local: dict[str, set[str]] = {}

    def has(self, site: Site, hash: str) -> bool:
        own = self._own.get(site.scope or "", set())
        local = self._local.get(site.machine, set())
        return hash in self._shared or hash in own or hash in local

    def note(self, site: Site, hashes: Iterable[str]) -> None:
        """The outputs with these hashes were built there, or restored."""
        if site.place is Place.LAPTOPS:
            self._local.setdefault(site.machine, set()).update(hashes)
            if self._policy is Policy.CI_ONLY:
                return
        if self._policy is Policy.PROTECTED and site.scope is not None:
            self._own.setdefault(site.scope, set()).update(hashes)
        else:
            self._shared.update(hashes)


_Sources = dict[tuple[str, int], int]
"""The last edit of each package by each change."""


def predicted(day: Day, policy: Policy, steps: Sequence[Step]) -> Figures:
    """The figures of these steps of the day. Hashes are those of the sources and of the dependencies."""
    cache, figures, packages = Cache(policy), Figures(), day.monorepo()
    main: _Sources = {}
    branches: dict[int, _Sources] = {}

    def build(site: Site, sources: _Sources) -> None:
        hashes = _hashes(packages, sources)
        figures.count(site, [cache.has(site, hash) for hash in hashes])
        cache.note(site, hashes)

    cache.note(MAIN, _hashes(packages, main))
    for step in steps:
        on_laptop = laptop(step.engineer)
        match step.action:
            case Action.PULL:
                build(on_laptop, main)
                continue
            case Action.BRANCH:
                branches[step.change] = dict(main)
            case Action.EDIT:
                branches[step.change][step.package, step.change] = step.edit
            case Action.UPDATE:
                branches[step.change] |= {**main, **branches[step.change]}
            case Action.PUSH:
                build(pull_request(step.change), {**main, **branches[step.change]})
                continue
            case Action.MERGE:
                main = {**main, **branches[step.change]}
                build(MAIN, main)
                continue
        build(on_laptop, branches[step.change])
    return figures


def _hashes(packages: Sequence[Package], sources: _Sources) -> list[str]:
    edits: dict[str, list[tuple[int, int]]] = {}
    for (name, change), edit in sorted(sources.items()):
        edits.setdefault(name, []).append((change, edit))
    found: dict[str, str] = {}
    for package in packages:
        inputs = (
            package.name,
            edits.get(package.name),
            [found[name] for name in package.dependencies],
        )
        found[package.name] = sha256(repr(inputs).encode()).hexdigest()
    return list(found.values())
