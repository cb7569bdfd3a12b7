"""Larder's functions and its storage as their clients wait for them.

`modelled` starts a process that answers as Larder and its storage do, after the latencies of AWS, over a path with a
round-trip time, slow start and a shared downlink. It does no work of its own, so it shows what a client waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection

from tools.benchmarks.paths import (
    HANDSHAKES,
    LOOPBACK,
    NONE,
    Latencies,
    Model,
    Path,
    listening,
    process_of,
)

_FIRST_WINDOW = 14_480
"""Bytes that a new connection sends before the first acknowledgement: ten segments."""
_LARGEST_WINDOW = 4_000_000
_REDIRECTED = 262_144
"""Downloads of more bytes come from storage."""
_NOT_HASHES = ("artifacts", "events", "status")
_KEPT_WARM = {
    **dict.fromkeys(("GET", "OPTIONS", "PUT"), 1),
    **dict.fromkeys(("GET status", "POST artifacts", "POST events"), 10),
}
"""The functions that the option WarmInstances keeps, each divided by this."""
_LARGEST_REPLY = 4_400_000
"""Bytes of a body that a function of the peer can return."""


@contextlib.contextmanager
def modelled() -> Iterator[Model]:
    """Any token and team are good. Without `set`, nothing is delayed."""
    with process_of(serve) as port:
        yield Model(f"http://127.0.0.1:{port}")


def serve(ready: Connection) -> None:
    asyncio.run(_serve(ready))


async def _serve(ready: Connection) -> None:
    """Storage and the edge are other hosts than the API, so clients open connections of their own to them."""
    server = _Server()
    api, server.storage_port, server.edge_port = [
        await listening(partial(server.handle, edge=is_edge)) for is_edge in (False, False, True)
    ]
    ready.send(api)
    await asyncio.Event().wait()


@dataclass
class _Answer:
    """`seconds` is the work in AWS before the first byte."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class _Server:
    def __init__(self) -> None:
        self.path, self.latencies = LOOPBACK, NONE
        self.artifacts: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.seen: Counter[str] = Counter()
        self.random = random.Random(0)  # noqa: S311  # the same delays in each run
        self.running = 0
        self.idle: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()
        self.free_at = 0.0
        self.storage_port = self.edge_port = 0

    def ms(self, median: float) -> float:
        return median * self.random.lognormvariate(0, self.latencies.spread) / 1_000

    async def handle(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, edge: bool
    ) -> None:
        opened, window = time.monotonic(), [_FIRST_WINDOW]
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                started, (line, *rest) = time.monotonic(), head.strip().split("\r\n")
                method, target, _ = line.split(" ")
                headers = {
                    name.lower(): value for name, value in (one.split(": ", 1) for one in rest)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                path = target.partition("?")[0]
                if path == "/model":
                    answer = self.control(method, body)
                    await self.send(writer, method, answer, started, [_LARGEST_WINDOW], 0)
                    continue
                # The edge ends connections near the client, and has open ones to storage.
                far = self.path.rtt_ms / 1_000
                near = min(far, self.latencies.edge_rtt / 1_000) if edge else far
                # The handshakes of a new connection that are not over yet, the way there and back, and a large body.
                begun = max(started, opened + HANDSHAKES * near) + far
                begun += self.upload(len(body), window, near)
                answer = self.answer(method, path, headers, body)
                await self.send(writer, method, answer, begun + answer.seconds, window, near)
        writer.close()

    def upload(self, size: int, window: list[int], rtt: float) -> float:
        """The seconds that a request body takes on its way."""
        seconds, sent = 0.0, window[0]
        while rtt and sent < size:
            seconds, window[0] = seconds + rtt, min(window[0] * 2, _LARGEST_WINDOW)
            sent += window[0]
        return seconds + (size * 8 / self.path.bits_a_second if self.path.bits_a_second else 0)

    async def send(
        self,
        writer: asyncio.StreamWriter,
        method: str,
        answer: _Answer,
        at: float,
        window: list[int],
        rtt: float,
    ) -> None:
        """Send an answer so that its bytes arrive as over the path, from the time `at` on."""
        fields = {"content-length": str(len(answer.body)), **answer.headers}
        head = f"HTTP/1.1 {answer.status} X\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in fields.items()
        )
        await _until(at)
        writer.write(f"{head}\r\n".encode())
        sent = len(answer.body) if method == "HEAD" else 0
        while sent < len(answer.body):
            block = answer.body[sent : sent + (window[0] if rtt else len(answer.body))]
            if rtt and self.path.bits_a_second:
                self.free_at = max(at, self.free_at) + len(block) * 8 / self.path.bits_a_second
                await _until(self.free_at)
            writer.write(block)
            sent += len(block)
            if sent < len(answer.body):
                at, window[0] = max(time.monotonic(), at + rtt), min(window[0] * 2, _LARGEST_WINDOW)
                await _until(at)
        await writer.drain()

    def control(self, method: str, body: bytes) -> _Answer:
        if method == "POST":
            settings = json.loads(body)
            self.path, self.latencies = Path(**settings["path"]), Latencies(**settings["latencies"])
            self.random.seed(settings["seed"])
            self.seen.clear()
            self.idle.clear()
            self.kept = Counter(
                {kind: math.ceil(self.latencies.warm / part) for kind, part in _KEPT_WARM.items()}
            )
            self.free_at = 0.0
        return _Answer(200, json.dumps(self.seen).encode())

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> _Answer:
        hash, known = path.rsplit("/", 1)[-1], self.latencies
        if path.startswith("/storage/"):
            self.seen[f"storage {method}"] += 1
            return self.storage(method, hash, headers, body)
        kind = method if method == "OPTIONS" or hash not in _NOT_HASHES else f"{method} {hash}"
        self.seen[kind] += 1
        if path.startswith("/peer-"):
            return self.peer(method, hash, body, is_function=path.startswith("/peer-function/"))
        if known.at_once and self.running >= known.at_once:
            self.seen["503"] += 1
            return _Answer(503, seconds=self.ms(known.gateway))
        by_edge = path.startswith("/edge/")
        answer = self.larder(method, hash, headers, body, by_edge=by_edge)
        answer.seconds += self.ms(known.code)
        return self.run(kind, answer, known.start)

    def run(self, function: str, answer: _Answer, start: float) -> _Answer:
        """Run a function in an instance that is idle or, after its start, in a new one."""
        if self.idle[function]:
            self.idle[function] -= 1
        elif self.kept[function]:
            self.kept[function] -= 1
            answer.seconds += self.ms(self.latencies.reconnect)
        else:
            self.seen["starts"] += 1
            answer.seconds += self.ms(start)
        # A function is busy without the gateway and the path.
        self.running += 1
        asyncio.get_running_loop().call_later(answer.seconds, self.ended, function)
        answer.seconds += self.ms(self.latencies.gateway)
        return answer

    def ended(self, function: str) -> None:
        self.running -= 1
        self.idle[function] += 1

    def peer(self, method: str, hash: str, body: bytes, *, is_function: bool) -> _Answer:
        """What turborepo-remote-cache answers, as a function or as a container that is always there."""
        known, answer = self.latencies, _Answer(200, b'{"status":"enabled"}')
        content = self.artifacts.get(hash, (b"", {}))[0]
        if method == "PUT":
            self.artifacts[hash] = body, {}
            answer.seconds = self.ms(known.storage_put)
        elif method == "GET" and hash != "status":
            answer = _Answer(200 if content else 404, content, seconds=self.ms(known.storage_head))
            answer.seconds += self.ms(known.storage_get) if content else 0
        if not is_function:
            answer.seconds += self.ms(known.peer_balancer) + self.ms(1 if known.peer_code else 0)
            return answer
        if len(content) > _LARGEST_REPLY:
            answer.status, answer.body = 502, b""
        moved = (len(content) + len(body)) / 1e6
        answer.seconds += self.ms(known.peer_code + known.peer_code_mb * moved)
        return self.run("peer", answer, known.peer_start)

    def larder(
        self, method: str, hash: str, headers: dict[str, str], body: bytes, *, by_edge: bool
    ) -> _Answer:
        """What a function answers, with its round trips to the tables and to storage."""
        reads, writes = self.ms(self.latencies.tables), 2 * self.ms(self.latencies.tables)
        storage = (
            f"http://127.0.0.1:{self.edge_port if by_edge else self.storage_port}/storage/{hash}"
        )
        if method == "OPTIONS":
            if headers.get("access-control-request-method") == "PUT":
                return _Answer(200, headers={"location": storage}, seconds=writes)
            return _Answer(200, headers={"access-control-allow-headers": "Authorization"})
        if method == "PUT":
            sent = {k: v for k, v in headers.items() if k.startswith("x-artifact-")}
            self.artifacts[hash] = body, sent
            return _Answer(202, seconds=writes + self.ms(self.latencies.storage_put))
        if method == "POST":
            return _Answer(200, self.posted(hash, body), seconds=writes)
        if hash == "status":
            return _Answer(
                200, b'{"status":"enabled"}', {"content-type": "application/json"}, reads
            )
        if hash not in self.artifacts:
            return _Answer(404, seconds=reads)
        content, kept = self.artifacts[hash]
        if len(content) > _REDIRECTED:
            return _Answer(302, headers={"location": storage}, seconds=reads)
        if len(content) > self.latencies.in_tables:
            reads += self.ms(self.latencies.storage_get)
        sent = {"content-type": "application/octet-stream", **kept}
        return _Answer(200, content, sent, reads)

    def posted(self, path: str, body: bytes) -> bytes:
        if path != "artifacts":
            return b"{}"
        found = {}
        for hash in json.loads(body)["hashes"]:
            content, kept = self.artifacts.get(hash, (None, {}))
            duration = int(kept.get("x-artifact-duration", 0))
            found[hash] = content and {"size": len(content), "taskDurationMs": duration}
        return json.dumps(found).encode()

    def storage(self, method: str, hash: str, headers: dict[str, str], body: bytes) -> _Answer:
        if method == "PUT":
            self.artifacts[hash] = body, {}
            return _Answer(200, seconds=self.ms(self.latencies.storage_put))
        content = self.artifacts[hash][0]
        first = int(headers["range"][6:-1]) if "range" in headers else 0
        seconds = self.ms(self.latencies.storage_get)
        return _Answer(206 if first else 200, content[first:], seconds=seconds)


async def _until(at: float) -> None:
    await asyncio.sleep(max(0, at - time.monotonic()))
