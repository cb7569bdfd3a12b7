"""An operator's proxy in front of Larder, and typical faults of such proxies."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import uvicorn
from starlette.types import Receive, Scope, Send

Headers = list[tuple[bytes, bytes]]

_OF_THE_CONNECTION = (b"connection", b"transfer-encoding", b"date", b"server")


@dataclass
class Passing:
    """A request on its way in, or its reply on its way back. A fault changes it."""

    method: str
    path: str
    headers: Headers
    body: bytes
    status: int = 0

    def drop(self, name: bytes) -> None:
        self.headers = [pair for pair in self.headers if pair[0] != name]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault of a proxy: it `answers` itself, or changes requests (`inward`) or replies (`back`)."""

    answers: Callable[[Passing], Passing | None] = field(default=lambda _: None)
    inward: Callable[[Passing], None] = field(default=lambda _: None)
    back: Callable[[Passing], None] = field(default=lambda _: None)
    follows_redirects: bool = False


class Front:
    """The ASGI application."""

    def __init__(self, url: str, fault: Fault) -> None:
        self._url = url
        self._fault = fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        passing = await _arrived(scope, receive)
        answer = self._fault.answers(passing) or await self._ask(passing)
        self._fault.back(answer)
        headers = [pair for pair in answer.headers if pair[0] not in _OF_THE_CONNECTION]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _ask(self, passing: Passing) -> Passing:
        self._fault.inward(passing)
        headers = [pair for pair in passing.headers if pair[0] not in _OF_THE_CONNECTION]
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            answer = await client.request(
                passing.method,
                f"{self._url}{passing.path}",
                headers=headers,
                content=passing.body or None,
                follow_redirects=self._fault.follows_redirects,
            )
        given = [(name.lower(), value) for name, value in answer.headers.raw]
        return Passing(passing.method, passing.path, given, answer.content, answer.status_code)


@contextmanager
def front(url: str, fault: Fault) -> Iterator[str]:
    """A context with a proxy in front of the Larder at `url`. Returns its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(Front(url, fault), lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)


async def _arrived(scope: Scope, receive: Receive) -> Passing:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    query = scope["query_string"].decode()
    path = scope["raw_path"].decode() + (f"?{query}" if query else "")
    return Passing(scope["method"], path, list(scope["headers"]), body)
