"""CPU time of a warm handler call, compared with its calls to AWS alone (the "bare" calls).

AWS's replies come from memory: a client gets the reply that a real store gave to the same call before, the handler's as
bytes of HTTP. So building, signing and parsing count on both sides, and the network does not. The bare calls are made
with plain botocore clients, as in any program, one after another in one thread. The two sides take turns, and the
fastest turn of each counts, because other work on the machine can only add time.
"""

from __future__ import annotations

import importlib
import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from botocore import xform_name
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.httpsession import URLLib3Session
from botocore.session import Session

from larder.settings import region
from larder.web.log import logger
from tests.hooks import hooked
from tests.requests import Context

Event = dict[str, Any]

LIMIT = 1.0
"""The highest ratio that is accepted. tests/proofs/test_handler_cpu.py checks it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call to AWS as a handler makes it: `operation` as AWS spells it, and its arguments."""

    service: str
    operation: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A request that is sent to a handler repeatedly. `handler` is the handler's name in the template."""

    name: str
    handler: str
    event: Event


@dataclass(frozen=True, slots=True)
class HandlerCpu:
    """The CPU time of one call of a handler, and of its calls to AWS alone, in milliseconds."""

    name: str
    handler_ms: float
    bare_ms: float
    calls: tuple[str, ...]

    @property
    def ratio(self) -> float:
        return self.handler_ms / self.bare_ms


def measure(case: Case, *, turns: int, calls_a_turn: int) -> HandlerCpu:
    """Measure a request. Its artifacts, key and team are in the stores that the environment names."""
    module, _, function = case.handler.rpartition(".")
    handler = getattr(importlib.import_module(module), function)
    with _silent_log():
        # The first call caches the key and the team. The second records the calls of a warm request and their replies.
        handler(deepcopy(case.event), Context())
        with _recorded() as recording:
            handler(deepcopy(case.event), Context())
        bare_calls = recording.bare_calls()
        with recording.answering():
            sides = (
                lambda: handler(case.event, Context()),
                lambda: [call() for call in bare_calls],
            )
            figures = take_turns(sides, turns=turns, calls_a_turn=calls_a_turn)
    return HandlerCpu(
        name=case.name,
        handler_ms=min(ms for ms, _ in figures),
        bare_ms=min(ms for _, ms in figures),
        calls=tuple(call.operation for call in recording.calls),
    )


def take_turns(
    sides: tuple[Callable[[], object], Callable[[], object]], *, turns: int, calls_a_turn: int
) -> list[tuple[float, float]]:
    """The CPU time of one call of each side in milliseconds, over all threads, for each turn after a warm-up."""

    def cpu_ms(call: Callable[[], object]) -> float:
        began = time.process_time()
        for _ in range(calls_a_turn):
            call()
        return (time.process_time() - began) * 1000 / calls_a_turn

    figures = [(cpu_ms(sides[0]), cpu_ms(sides[1])) for _ in range(turns + 1)]
    return figures[1:]


@dataclass
class _Recording:
    """The recorded calls, and the HTTP replies by operation."""

    calls: list[Call] = field(default_factory=list)
    replies: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)

    def bare_calls(self) -> list[Callable[[], object]]:
        session = Session()
        clients = {
            service: session.create_client(service, region_name=region())
            for service in {call.service for call in self.calls}
        }

        def bare(call: Call) -> Callable[[], object]:
            method = getattr(clients[call.service], xform_name(call.operation))
            return lambda: method(**call.arguments)

        return [bare(call) for call in self.calls]

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While this is open, requests of clients get their replies from memory."""

        def send(_: URLLib3Session, request: Any) -> AWSResponse:
            status, headers, body = self.replies[_named(request)]
            return AWSResponse(request.url, status, HTTPHeaders.from_dict(headers), _Raw(body))

        def connect(*_: object, **__: object) -> Any:
            return _Connection(self.replies)

        from larder import aws

        clients = (aws.dynamodb(), aws.s3())
        with (
            patch.object(URLLib3Session, "send", send),
            patch("socket.create_connection", connect),
        ):
            # The connections to the stores are closed, and afterwards those to the memory.
            for client in clients:
                client.close()
            yield
        for client in clients:
            client.close()


class _Connection:
    """A connection of larder.aws.wire that replies from memory. It is its own file."""

    def __init__(self, replies: dict[str, tuple[int, dict[str, str], bytes]]) -> None:
        self._replies = {
            name: b"HTTP/1.1 %d .\r\n%b\r\n%b"
            % (
                status,
                b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items()),
                body,
            )
            for name, (status, headers, body) in replies.items()
        }
        self._reply = io.BytesIO()
        # A descriptor with nothing to read, for `poll`.
        self._idle, self._other = os.pipe()

    def sendall(self, data: bytes) -> None:
        line, _, head = data.partition(b"\r\n")
        _, _, target = head.partition(b"x-amz-target: ")
        name = target.partition(b"\r\n")[0].decode()
        if not name:
            method, path, _ = line.decode().split(" ", 2)
            name = f"{method} {path.partition('?')[0]}"
        self._reply = io.BytesIO(self._replies[name])

    def makefile(self, _: str) -> _Connection:
        return self

    def readline(self, limit: int) -> bytes:
        return self._reply.readline(limit)

    def read(self, size: int) -> bytes:
        return self._reply.read(size)

    def fileno(self) -> int:
        return self._idle

    def setsockopt(self, *_: object) -> None: ...

    def settimeout(self, _: float) -> None: ...

    def close(self) -> None:
        if self._idle >= 0:
            os.close(self._idle)
            os.close(self._other)
            self._idle = -1


class _Raw(io.BytesIO):
    """A reply's body as botocore reads it."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


@contextmanager
def _recorded() -> Iterator[_Recording]:
    """While this is open, records the calls of the layer's clients and their replies."""
    from larder import aws

    recording = _Recording()
    send = URLLib3Session.send

    def recording_send(session: URLLib3Session, request: Any) -> Any:
        reply = send(session, request)
        name = _named(request)
        assert name not in recording.replies, (
            f"{name} is called twice: the replies cannot be distinguished"
        )
        recording.replies[name] = (reply.status_code, dict(reply.headers), reply.content)
        return reply

    def note_call(params: dict[str, Any], model: Any, **_: object) -> None:
        service = model.service_model.service_name
        recording.calls.append(Call(service, model.name, deepcopy(params)))

    with (
        hooked("before-parameter-build", note_call, aws.dynamodb(), aws.s3()),
        patch.object(URLLib3Session, "send", recording_send),
    ):
        yield recording


def _named(request: Any) -> str:
    """The operation of a request to DynamoDB, or the method and path of one to S3."""
    target = request.headers.get("X-Amz-Target")
    if target is None:
        return f"{request.method} {urlsplit(request.url).path}"
    return target.decode() if isinstance(target, bytes) else str(target)


@contextmanager
def _silent_log() -> Iterator[None]:
    """Write log lines to the null device, so that logging costs the same and prints nothing."""
    (handler,) = logger().handlers
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        before = handler.setStream(nowhere)  # type: ignore[attr-defined]
        try:
            yield
        finally:
            handler.setStream(before)  # type: ignore[attr-defined]
