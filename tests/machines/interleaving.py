"""A request that another one interrupts, or whose process ends, at one of its calls to AWS."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

from aws_lambda_powertools.event_handler.api_gateway import ApiGatewayResolver, BaseRouter

from larder import aws, concurrency, deadline
from larder.instance import restart
from tests.hooks import hooked

T = TypeVar("T")

_READS = {"BatchGetItem", "GetItem", "GetObject", "HeadObject", "Query", "TransactGetItems"}


class Crash(BaseException):
    """The process of the function ends here. None of its later calls reaches a store."""


def overlapping(at: int, one: Callable[[], T], other: Callable[[], T], *, of_writes: bool = False) -> tuple[T, T]:
    """The results of `one`, and of `other`, which runs whole right before `one` makes call number `at`, from 1.

    With `of_writes`, only calls that write count. If there are fewer, `other` runs after `one`.
    """
    made, is_counting = 0, True
    results: list[T] = []

    def before(model: Any, **_: Any) -> None:
        nonlocal made, is_counting
        if not is_counting or (of_writes and model.name in _READS):
            return
        made += 1
        if made == at:
            is_counting = False
            with _another_instance():
                results.append(other())

    with _hooked("before-call", before):
        result = one()
    return result, results[0] if results else other()


@contextmanager
def _another_instance() -> Iterator[None]:
    """Keep what an instance knows of its request apart from what the block does."""
    with ExitStack() as stack:
        for name in ("current_event", "lambda_context"):
            stack.enter_context(patch.object(BaseRouter, name, getattr(BaseRouter, name)))
        for module in list(sys.modules.values()):
            app = getattr(module, "app", None)
            if isinstance(app, ApiGatewayResolver):
                stack.enter_context(patch.object(app, "context", {}))
        stack.enter_context(patch.object(deadline, "_request_ends_at", None))
        stack.enter_context(patch.object(deadline, "_at_end", []))
        stack.enter_context(patch.object(deadline, "_short", threading.local()))
        yield


@contextmanager
def crashing(at: int, *, carried_out: bool) -> Iterator[None]:
    """Let the process end at call number `at` of the block: before it is sent, or after AWS has carried it out."""
    made, is_dead = 0, False

    def before(**_: Any) -> None:
        nonlocal made, is_dead
        made += 1
        is_dead = is_dead or (made == at and not carried_out)
        if is_dead:
            raise Crash

    def after(**_: Any) -> None:
        nonlocal is_dead
        is_dead = is_dead or made == at
        if is_dead:
            raise Crash

    with _hooked("before-call", before), _hooked("after-call", after):
        try:
            yield
        except Crash:
            restart()


class _OneThread(Executor):
    """Runs each call as it is submitted, so that a test makes its calls in the same order each time."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001  # as a pool does
            done.set_exception(error)
        return done


@contextmanager
def _hooked(event: str, hook: Callable[..., None]) -> Iterator[None]:
    one_thread = patch.object(concurrency, "_pool", lambda _: _OneThread())
    with one_thread, hooked(f"{event}.dynamodb", hook, aws.dynamodb()), hooked(f"{event}.s3", hook, aws.s3()):
        yield
