"""Work that really overlaps: threads that start together, and calls to DynamoDB that wait for one another.

*Held*: no thread's first call leaves before every thread is about to send its own, and no second before all are about
to send a second; so all of them read the same state before any of them acts on it. Chance plays no part. *Staggered*:
the threads start together, each waits some thousandths of a second that the seed chooses, and nothing holds them.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import pytest

from larder import aws
from larder.errors import LarderError
from tests.hooks import hooked

R = TypeVar("R")

Job = Callable[[], str]
"""Work whose answer is its `outcome`."""

PATIENCE_S = 60
"""More than any of it takes; whoever waits longer fails."""

READ_THEN_WRITTEN = 2
"""The calls that are held of work that reads once and then writes: all of it has read before any of it writes."""

_STAGGER_S = 0.02


@dataclass(frozen=True)
class Overlap:
    """One way to make threads meet; `seed` also chooses the order in which they start and the times that they claim."""

    held: bool
    seed: int

    def __str__(self) -> str:
        return f"{'held' if self.held else 'staggered'}-{self.seed}"


SEEDS = int(os.environ.get("OVERLAP_SEEDS") or 1)
OVERLAPS = [
    *(Overlap(True, seed) for seed in range(SEEDS)),
    # One more: here chance does play a part.
    *(Overlap(False, seed) for seed in range(SEEDS, 2 * SEEDS + 1)),
]

every_overlap = pytest.mark.parametrize("overlap", OVERLAPS, ids=str)


@dataclass(frozen=True)
class Done(Generic[R]):
    """What one piece of work answered, and when it was under way (monotonic seconds)."""

    answer: R
    began: float
    ended: float


def all_at_once(
    jobs: Sequence[Callable[[], R]], overlap: Overlap, *, held_calls: int = 1
) -> list[Done[R]]:
    """Run every job in a thread of its own; the answers stand in the order of the jobs.

    Of a held overlap the first `held_calls` calls of each job wait for those of all others. Raises what the first job
    that failed raised.
    """
    source = random.Random(overlap.seed)
    start = threading.Barrier(len(jobs), timeout=PATIENCE_S)

    def run(job: Callable[[], R], pause_s: float) -> Done[R]:
        start.wait()
        time.sleep(pause_s)
        began = time.monotonic()
        answer = job()
        return Done(answer, began, time.monotonic())

    order = source.sample(range(len(jobs)), len(jobs))
    with _held(len(jobs), held_calls if overlap.held else 0), ThreadPoolExecutor(len(jobs)) as pool:
        running = {}
        for number in order:
            pause_s = 0 if overlap.held else source.uniform(0, _STAGGER_S)
            running[number] = pool.submit(run, jobs[number], pause_s)
        return [running[number].result(PATIENCE_S) for number in range(len(jobs))]


def outcome(work: Callable[[], object]) -> Job:
    """The name of what the work answers with: `done`, or the error that it raises."""

    def run() -> str:
        try:
            work()
        except LarderError as error:
            return type(error).__name__
        return "done"

    return run


def most_under_way(done: Sequence[Done[R]]) -> int:
    """How many of them were under way at one moment, at most."""
    edges = [(one.began, 1) for one in done] + [(one.ended, -1) for one in done]
    under_way = most = 0
    for _, step in sorted(edges):
        under_way += step
        most = max(most, under_way)
    return most


@contextmanager
def _held(parties: int, calls: int) -> Iterator[None]:
    barriers = [threading.Barrier(parties, timeout=PATIENCE_S) for _ in range(calls)]
    sent = threading.local()

    def meet(**_: object) -> None:
        number = getattr(sent, "calls", 0)
        sent.calls = number + 1
        if number < calls:
            barriers[number].wait()

    with hooked("before-send", meet, aws.dynamodb()):
        yield
