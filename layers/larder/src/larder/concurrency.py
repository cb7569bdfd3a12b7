"""Calls that wait for the network side by side, and writers that meet."""

import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=10, thread_name_prefix="background")


def in_background(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
    """Run one call beside the caller's own. It must wait for the network and start no such call itself."""
    return _pool().submit(function, *args, **kwargs)


@contextmanager
def beside(
    function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> Generator[Future[R], None, None]:
    """The same for as long as the block runs, which does not end before the call has, whatever is raised in it.

    An instance is frozen between requests, and with it a call that would still be under way.
    """
    call = in_background(function, *args, **kwargs)
    try:
        yield call
    finally:
        wait([call])


def side_by_side(function: Callable[[A], R], arguments: Iterable[A]) -> list[R]:
    """One call for each argument, all at once, and what they return. When it returns, or raises, none is under way."""
    calls = [in_background(function, argument) for argument in arguments]
    wait(calls)
    return [call.result() for call in calls]


def attempts(most: int = 8, *, pausing_after: int = 1) -> Iterator[int]:
    """The numbers, from 0, of the rounds of work that other writers may come before:

        for attempt in attempts():
            ...
            if done:
                return
        raise TryAgain

    From round `pausing_after` on, each waits first for a random while that doubles: writers that met once must not meet
    again.
    """
    for attempt in range(most):
        if attempt >= pausing_after:
            time.sleep(random.uniform(0, 0.01 * 2 ** (attempt - 1)))  # noqa: S311  # no secret depends on it
        yield attempt
