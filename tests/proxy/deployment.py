"""A deployment of Larder as the sidecar sees it: artifacts, storage, events and tokens, with faults on demand."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from larder_proxy.connections import LIMITS, Limits
from larder_proxy.listener import Listener
from larder_proxy.settings import Settings
from larder_proxy.sidecar import Sidecar
from larder_proxy.spool import LIMIT, Spool

from tests.web_server import Answer, Quiet, hang, listening

KEY = "larder_" + "k" * 40
DIRECT = 300_000
"""Downloads of more bytes come from storage."""


@dataclass
class Asked:
    """A request that arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Message
    body: bytes


@dataclass
class Deployment:
    """`artifacts` and `stored` have bytes by hash. `failing` has statuses that the next requests get, by method."""

    url: str = ""
    artifacts: dict[str, bytes] = field(default_factory=dict)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    """The headers with which an artifact was uploaded through a function, or through the edge."""
    retry_after: str = "0"
    """What a failing answer asks for, so that tests do not wait."""
    has_edge: bool = False
    asked: list[Asked] = field(default_factory=list)
    failing: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    broken: Answer | None = None
    """Answers every request in place of Larder."""
    idle_seconds: float | None = None
    """How long a connection may be idle between requests. Without a limit, if None."""
    cuts: int = 0
    """How many downloads end early."""
    is_stalling: bool = False
    """Whether downloads stop in the middle, until the client goes away."""
    tokens: set[str] = field(default_factory=lambda: {KEY})
    lifetime_s: int = 3_600
    room: int = LIMIT
    """The room of the spool of its sidecars, in bytes."""
    limits: Limits = LIMITS
    """What its sidecars allow the network."""
    exchanged: int = 0
    lock: Lock = field(default_factory=Lock)

    def sent(self, method: str, path: str = "") -> list[Asked]:
        return [one for one in self.asked if one.method == method and one.path.startswith(path)]

    def events(self) -> list[dict[str, Any]]:
        posted = self.sent("POST", "/v8/artifacts/events")
        return [event for one in posted for event in json.loads(one.body)]


@contextmanager
def deployed() -> Iterator[Deployment]:
    deployment = Deployment()

    class Handler(Quiet, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_one_request(self) -> None:
            self.connection.settimeout(deployment.idle_seconds)
            super().handle_one_request()

        def handle_one(self) -> None:
            self.connection.settimeout(None)
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            asked = Asked(self.command, parts.path, parse_qs(parts.query), self.headers, body)
            with deployment.lock:
                deployment.asked.append(asked)
                failing = deployment.failing.get(self.command, [])
                fault = failing.pop(0) if failing else None
            if deployment.broken is not None:
                deployment.broken(self)
            elif fault is not None:
                content = json.dumps({"error": {"code": fault[1]}}).encode()
                self.answer(fault[0], content, **{"retry-after": deployment.retry_after})
            elif parts.path.startswith("/storage/"):
                self.storage(parts.path.removeprefix("/storage/"), body)
            elif parts.path == "/id-token":
                self.answer(200, json.dumps({"value": f"a.b.{len(deployment.asked)}"}).encode())
            elif parts.path == "/login/oauth/token":
                self.exchange()
            elif parts.path == "/login/oauth/token/revoke":
                deployment.tokens.discard(parse_qs(body.decode())["token"][0])
                self.answer(200)
            elif self.headers.get("authorization") not in {f"Bearer {token}" for token in deployment.tokens}:
                self.answer(401)
            else:
                self.artifact(parts.path.removeprefix("/v8/artifacts/"), body)

        do_GET = do_HEAD = do_PUT = do_POST = do_OPTIONS = handle_one  # noqa: N815  # names of http.server

        def exchange(self) -> None:
            with deployment.lock:
                deployment.exchanged += 1
                token = f"larder_ci_{deployment.exchanged:064d}"
            deployment.tokens.add(token)
            reply = {"access_token": token, "expires_in": deployment.lifetime_s}
            self.answer(200, json.dumps(reply).encode())

        def artifact(self, hash: str, body: bytes) -> None:
            if self.command == "POST" and hash == "/v8/artifacts":
                self.answer(200, self.query(json.loads(body)["hashes"]))
            elif self.command == "POST":
                self.answer(200, b"{}")
            elif hash == "status":
                self.answer(200, b'{"status":"over_limit"}')
            elif self.command == "PUT":
                self.keep(hash, body)
                self.answer(202, b'{"urls": []}')
            elif self.command == "OPTIONS":
                self.answer(200, location=f"{deployment.url}/storage/{hash}?signature=s")
            elif hash not in deployment.artifacts:
                self.answer(404)
            elif len(deployment.artifacts[hash]) > DIRECT:
                self.answer(302, location=f"{deployment.url}/storage/{hash}?signature=s")
            else:
                self.send_stored(hash, deployment.artifacts[hash])

        def query(self, hashes: list[str]) -> bytes:
            found = {
                hash: {"size": len(deployment.artifacts[hash]), "taskDurationMs": 7}
                if hash in deployment.artifacts
                else None
                for hash in hashes
            }
            return json.dumps(found).encode()

        def keep(self, hash: str, body: bytes) -> None:
            deployment.artifacts[hash] = body
            sent = {name.lower(): value for name, value in self.headers.items()}
            deployment.headers[hash] = {name: value for name, value in sent.items() if name.startswith("x-artifact-")}

        def storage(self, hash: str, body: bytes) -> None:
            # S3 refuses a second credential.
            if self.headers.get("authorization"):
                self.answer(400)
            elif self.command == "PUT":
                deployment.artifacts[hash] = body
                if deployment.has_edge:
                    self.keep(hash, body)
                self.answer(200)
            else:
                self.send_stored(hash, deployment.artifacts[hash])

        def send_stored(self, hash: str, content: bytes) -> None:
            start = int((self.headers.get("range") or "bytes=0-")[6:-1])
            with deployment.lock:
                is_cut = deployment.cuts > 0
                deployment.cuts -= is_cut
            self.send_response(206 if start else 200)
            self.send_header("content-length", str(len(content) - start))
            self.send_header("content-type", "application/octet-stream")
            for name, value in deployment.headers.get(hash, {}).items():
                self.send_header(name, value)
            self.end_headers()
            rest = content[start:]
            if deployment.is_stalling:
                self.wfile.write(rest[: len(rest) // 2])
                hang(self)
            elif is_cut:
                self.wfile.write(rest[: len(rest) // 2])
                self.close_connection = True
            else:
                self.wfile.write(rest)

        def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    with listening(Handler) as url:
        deployment.url = url
        yield deployment


def variables(deployment: Deployment, home: Path, **changed: str) -> dict[str, str]:
    """The environment of `larder run`."""
    known = {"TURBO_API": deployment.url, "TURBO_TEAM": "acme", "TURBO_TOKEN": KEY}
    return {"PATH": os.environ["PATH"], "HOME": str(home), **known, **changed}


@dataclass
class Running:
    """A sidecar, and the lines that it has printed."""

    sidecar: Sidecar
    lines: list[str]

    def uploaded(self) -> None:
        """Wait for the uploads behind the build."""
        self.until(lambda: not self.sidecar.cache.is_uploading)

    def until(self, is_met: Callable[[], bool]) -> None:
        ends = time.monotonic() + 60
        while not is_met():
            assert time.monotonic() < ends
            time.sleep(0.01)


@contextmanager
def sidecar(deployment: Deployment, folder: Path, **changed: str) -> Iterator[Running]:
    lines: list[str] = []
    environment = variables(deployment, folder, **changed)
    running = Sidecar(
        environment,
        Settings(str(folder), environment),
        Listener(),
        say=lines.append,
        spool=Spool(deployment.room),
        limits=deployment.limits,
    )
    try:
        yield Running(running, lines)
    finally:
        running.close(10)
