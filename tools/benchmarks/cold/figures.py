"""The measurements of environments, and the figures of each function."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter


@dataclass(frozen=True, slots=True)
class Life:
    """One environment, from the start of its process to its last reply.

    Each time comes with its CPU time. `cold` is init and first call together. `replies` has the status of each call,
    `done` for a call without a status, or the error of the environment.
    """

    function: str
    memory_mb: int
    init_ms: float = 0.0
    init_cpu_ms: float = 0.0
    cold_ms: float = 0.0
    cold_cpu_ms: float = 0.0
    warm_ms: tuple[float, ...] = ()
    peak_mb: float = 0.0
    replies: tuple[str, ...] = ()
    failed: bool = False

    @property
    def first_ms(self) -> float:
        return self.cold_ms - self.init_ms


@dataclass(frozen=True, slots=True)
class Ratios:
    """Times relative to the bare functions just before and after, as the median of all environments."""

    init: float
    init_cpu: float
    cold: float
    cold_cpu: float


@dataclass(frozen=True, slots=True)
class Figures:
    """One function's row: medians of its environments and of all warm calls, and the largest memory peak."""

    function: str
    memory_mb: int
    init_ms: float
    init_cpu_ms: float
    first_ms: float
    warm_p50_ms: float
    warm_p99_ms: float
    peak_mb: float
    ratios: Ratios | None
    replies: dict[str, int] = field(default_factory=dict)
    failed: bool = False


def figures(lives: Sequence[Life], *, bare: str) -> list[Figures]:
    """A row for each function, in order of first appearance.

    `lives` are in the order of the run, and include those of the function `bare`.
    """
    rows: dict[str, list[int]] = {}
    for place, life in enumerate(lives):
        rows.setdefault(life.function, []).append(place)
    return [_row(places, lives, bare) for places in rows.values()]


def _row(places: Sequence[int], lives: Sequence[Life], bare: str) -> Figures:
    its = [lives[place] for place in places]
    whole = [life for life in its if not life.failed]
    warm_ms = sorted(took_ms for life in whole for took_ms in life.warm_ms)
    return Figures(
        function=its[0].function,
        memory_mb=its[0].memory_mb,
        init_ms=_median(life.init_ms for life in whole),
        init_cpu_ms=_median(life.init_cpu_ms for life in whole),
        first_ms=_median(life.first_ms for life in whole),
        warm_p50_ms=_percentile(warm_ms, 50),
        warm_p99_ms=_percentile(warm_ms, 99),
        peak_mb=max((life.peak_mb for life in whole), default=0.0),
        ratios=_ratios(places, lives, bare),
        replies=dict(Counter(reply for life in its for reply in life.replies)),
        failed=len(whole) < len(its),
    )


def _ratios(places: Sequence[int], lives: Sequence[Life], bare: str) -> Ratios | None:
    pairs = [
        (lives[place], neighbours)
        for place in places
        if not lives[place].failed and (neighbours := _neighbours(place, lives, bare))
    ]
    if not pairs:
        return None

    def ratio(figure: Callable[[Life], float]) -> float:
        return _median(
            figure(life) / statistics.mean(map(figure, others)) for life, others in pairs
        )

    return Ratios(
        init=ratio(attrgetter("init_ms")),
        init_cpu=ratio(attrgetter("init_cpu_ms")),
        cold=ratio(attrgetter("cold_ms")),
        cold_cpu=ratio(attrgetter("cold_cpu_ms")),
    )


def _neighbours(place: int, lives: Sequence[Life], bare: str) -> list[Life]:
    """The nearest lives of the bare function on both sides. For a bare function, its own life."""

    def nearest(lived: Iterable[Life]) -> Life | None:
        return next((life for life in lived if life.function == bare and not life.failed), None)

    found = nearest(reversed(lives[: place + 1])), nearest(lives[place:])
    return [life for life in found if life is not None]


def _median(values: Iterable[float]) -> float:
    found = list(values)
    return statistics.median(found) if found else 0.0


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that at least `percent` percent of the values do not exceed."""
    if not ordered:
        return 0.0
    return ordered[-(-len(ordered) * percent // 100) - 1]
