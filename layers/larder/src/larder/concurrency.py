"""Concurrent calls that wait for the network, and retries when writers conflict."""

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
def _pool(name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=10, thread_name_prefix=name)


def submit(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
    """Run one call in the background. It must wait for the network and submit no call itself."""
    return _pool("background").submit(function, *args, **kwargs)


def submit_outer(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
    """The same for a call that submits calls and waits for them. If all were in one pool, they could fill it."""
    return _pool("outer").submit(function, *args, **kwargs)


@contextmanager
def in_parallel(
    function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
) -> Generator[Future[R], None, None]:
    """Run one call while the block runs. The block waits for the call, even if it raises.

    Lambda freezes an instance between requests, and with it a call that is still running.
    """
    call = submit(function, *args, **kwargs)
    try:
        yield call
    finally:
        wait([call])


def map_concurrently(function: Callable[[A], R], arguments: Iterable[A]) -> list[R]:
    """Call the function for all arguments at once and return the results. No call is still running when it ends."""
    calls = [submit(function, argument) for argument in arguments]
    wait(calls)
    return [call.result() for call in calls]


def attempts(most: int = 8, *, pausing_after: int = 1) -> Iterator[int]:
    """Number the attempts, from 0, at work that other writers may overtake:

        for attempt in attempts():
            ...
            if done:
                return
        raise TryAgain

    From attempt `pausing_after` on, each waits first for a random time whose limit doubles, so that writers that met
    once do not meet again.
    """
    for attempt in range(most):
        if attempt >= pausing_after:
            time.sleep(random.uniform(0, 0.01 * 2 ** (attempt - 1)))  # noqa: S311  # no secret depends on it
        yield attempt
