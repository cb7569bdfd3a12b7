"""Calls that wait for the network side by side, and writers that meet."""

import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=10, thread_name_prefix="background")


def in_background(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
    """Run one call beside the caller's own. It must wait for the network and start no such call itself."""
    return _pool().submit(function, *args, **kwargs)


def wait_before_retry(attempt: int) -> None:
    """Sleep for a random while that doubles: writers that met once must not meet again."""
    time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311  # no secret depends on it
