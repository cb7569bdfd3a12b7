"""Jobs that really overlap: threads that start together, and calls to DynamoDB that wait for each other.

*Held*: no thread sends its first call before every thread is ready to send its own, and the same for the second call.
So all threads read the same state before one of them acts on it, every time. *Staggered*: the threads start together,
and each waits for some milliseconds that the seed chooses. Nothing else holds them.
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
"""A job whose result is its `outcome`."""

TIMEOUT_S = 60
"""Longer than any job takes. A thread that waits longer fails."""

READ_THEN_WRITTEN = 2
"""The held calls of a job that reads once and then writes: all jobs have read before one writes."""

_STAGGER_S = 0.02


@dataclass(frozen=True)
class Overlap:
    """A way to make threads overlap. `seed` also chooses their order at the start and their clocks."""

    held: bool
    seed: int

    def __str__(self) -> str:
        return f"{'held' if self.held else 'staggered'}-{self.seed}"


SEEDS = int(os.environ.get("OVERLAP_SEEDS") or 1)
OVERLAPS = [
    *(Overlap(True, seed) for seed in range(SEEDS)),
    *(Overlap(False, seed) for seed in range(SEEDS, 2 * SEEDS)),
]

every_overlap = pytest.mark.parametrize("overlap", OVERLAPS, ids=str)


@dataclass(frozen=True)
class Done(Generic[R]):
    """The result of a job, and the time in which it ran (monotonic seconds)."""

    answer: R
    began: float
    ended: float


def all_at_once(jobs: Sequence[Callable[[], R]], overlap: Overlap, *, held_calls: int = 1) -> list[Done[R]]:
    """Run each job in its own thread, and return the results in the order of the jobs.

    In a held overlap, the first `held_calls` calls of each job wait for those of all others. Raises the error of the
    first job that failed.
    """
    source = random.Random(overlap.seed)
    start = threading.Barrier(len(jobs), timeout=TIMEOUT_S)

    def run(job: Callable[[], R], pause_s: float) -> Done[R]:
        start.wait()
        time.sleep(pause_s)
        began = time.monotonic()
        answer = job()
        return Done(answer, began, time.monotonic())

    order = source.sample(range(len(jobs)), len(jobs))
    with (
        _held(len(jobs), held_calls if overlap.held else 0),
        ThreadPoolExecutor(len(jobs), thread_name_prefix=_JOB) as pool,
    ):
        running = {}
        for number in order:
            pause_s = 0 if overlap.held else source.uniform(0, _STAGGER_S)
            running[number] = pool.submit(run, jobs[number], pause_s)
        return [running[number].result(TIMEOUT_S) for number in range(len(jobs))]


def outcome(work: Callable[[], object]) -> Job:
    """The result of the job as a text: `done`, or the name of the error that it raises."""

    def run() -> str:
        try:
            work()
        except LarderError as error:
            return type(error).__name__
        return "done"

    return run


def most_under_way(done: Sequence[Done[R]]) -> int:
    """The largest number of jobs that ran at the same time."""
    edges = [(one.began, 1) for one in done] + [(one.ended, -1) for one in done]
    under_way = most = 0
    for _, step in sorted(edges):
        under_way += step
        most = max(most, under_way)
    return most


_JOB = "job-"
"""How the names of the threads of jobs begin."""


@contextmanager
def _held(parties: int, calls: int) -> Iterator[None]:
    barriers = [threading.Barrier(parties, timeout=TIMEOUT_S) for _ in range(calls)]
    sent = threading.local()

    def meet(**_: object) -> None:
        if not threading.current_thread().name.startswith(_JOB):
            return  # a call that a job makes concurrently with another one
        number = getattr(sent, "calls", 0)
        sent.calls = number + 1
        if number < calls:
            barriers[number].wait()

    with hooked("before-send", meet, aws.dynamodb()):
        yield
