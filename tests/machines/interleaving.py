"""A request that another one interrupts, or whose process ends, at one of its calls to AWS."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from aws_lambda_powertools.event_handler.api_gateway import ApiGatewayResolver, BaseRouter

from larder import aws, concurrency, deadline
from larder.instance import restart
from tests.hooks import hooked

_READS = {"BatchGetItem", "GetItem", "GetObject", "HeadObject", "Query", "TransactGetItems"}


class Crash(BaseException):
    """The process of the function ends here. None of its later calls reaches a store."""


class Calls:
    """The calls of one request, counted from 1 as they are about to be sent."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._is_counting = True
        self.made = 0

    def count(self) -> int:
        """The number of this call, or 0 for a call of the request that interrupts."""
        with self._lock:
            self.made += self._is_counting
            return self.made if self._is_counting else 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._is_counting = False
        yield
        self._is_counting = True


@contextmanager
def interrupted(at: int, work: Callable[[], object], *, of_writes: bool = False) -> Iterator[Calls]:
    """Run `work` right before the block makes call number `at`. With `of_writes`, only calls that write count."""
    calls = Calls()

    def before(model: Any, **_: Any) -> None:
        if of_writes and model.name in _READS:
            return
        if calls.count() == at:
            with calls.paused(), _another_instance():
                work()

    with _hooked("before-call", before):
        yield calls


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
def crashing(at: int, *, carried_out: bool) -> Iterator[Calls]:
    """Let the process end at call number `at` of the block: before it is sent, or after AWS has carried it out."""
    calls, is_dead = Calls(), threading.Event()

    def before(**_: Any) -> None:
        if is_dead.is_set() or (calls.count() == at and not carried_out):
            is_dead.set()
            raise Crash

    def after(**_: Any) -> None:
        if is_dead.is_set() or (calls.made == at and carried_out):
            is_dead.set()
            raise Crash

    with _hooked("before-call", before), _hooked("after-call", after):
        try:
            yield calls
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
