"""A server with scripted answers, in place of a deployment."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self


class Asked(NamedTuple):
    """A request. `path` has the query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Stub:
    url: str = ""
    answers: dict[str, tuple[int, dict[str, str], object]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    refuses_agent: str = "none"
    """It offers no direct upload to a client with this name."""

    # A body can be a function of that of the request.
    def says(self, request: str, status: int, body: object = "", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers[request] = (status, named, body)

    @contextmanager
    def running(self) -> Iterator[Self]:
        handler = type("Handler", (_Handler,), {"stub": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            self.url = f"http://127.0.0.1:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            yield self
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    stub: Stub

    def answer(self) -> None:
        path, _, _query = self.path.partition("?")
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.stub.asked.append(Asked(self.command, self.path, dict(self.headers), body))
        if self.command == "OPTIONS":
            path = path.rpartition("/")[0]
        status, headers, said = self.stub.answers.get(f"{self.command} {path}", (404, {}, ""))
        if callable(said):
            said = said(body)
        if self.headers["User-Agent"].startswith(self.stub.refuses_agent):
            headers = {}
        sent = json.dumps(said).encode() if said != "" else b""
        self.send_response_only(status)
        if "date" not in headers:
            self.send_header("Date", self.date_time_string())
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_OPTIONS = answer  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Keep the output of the test clean."""
