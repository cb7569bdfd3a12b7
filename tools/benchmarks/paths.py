"""The network and AWS as a build feels them: paths and latencies, and a relay that delays on loopback.

`relayed` puts the round-trip time of a path in front of a real server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

HANDSHAKES = 2
"""Round trips before the first byte of a new connection: TCP, and TLS 1.3."""
_BLOCK = 262_144
_START_SECONDS = 20


@dataclass(frozen=True)
class Path:
    """`rtt_ms` is 0 and `bits_a_second` is 0 for a path that does not delay."""

    name: str
    rtt_ms: float
    bits_a_second: float


@dataclass(frozen=True)
class Latencies:
    """Assumed medians of AWS within its region, and of code, in ms, with a lognormal spread.

    `at_once` is how many functions run, 0 for any number. `start` is what a new instance adds to its first request,
    and `reconnect` what one of the `warm` instances adds, whose connection to the tables has ended.
    Bodies of up to `in_tables` bytes need no storage. With `/edge` as the base of the address, those of storage
    come from an edge that is `edge_rtt` ms away.

    turborepo-remote-cache (`/peer-function` and `/peer-container` as the base of the address) asks storage for each
    artifact twice, and passes it through.
    """

    gateway: float = 8
    tables: float = 4
    storage_get: float = 20
    storage_head: float = 12
    storage_put: float = 30
    code: float = 2
    spread: float = 0.25
    at_once: int = 0
    start: float = 0
    warm: int = 0
    reconnect: float = 0
    in_tables: int = 32_768
    edge_rtt: float = 15
    peer_balancer: float = 2
    peer_code: float = 6
    peer_code_mb: float = 45
    peer_start: float = 0


LOOPBACK = Path("loopback", 0, 0)
CI = Path("CI", 5, 1e9)
LAPTOP = Path("laptop", 40, 2e8)
FAR = Path("far", 150, 1e8)
NONE = Latencies(0, 0, 0, 0, 0, 0, 0, peer_balancer=0, peer_code=0, peer_code_mb=0)


@dataclass(frozen=True)
class Model:
    """A running model. Artifacts stay until it ends."""

    url: str

    def set(self, path: Path, latencies: Latencies, *, seed: int = 0) -> None:
        """Change what it delays, and forget its figures."""
        settings = {"path": vars(path), "latencies": vars(latencies), "seed": seed}
        self._control(json.dumps(settings).encode())

    def requests(self) -> dict[str, int]:
        """How many requests of each kind arrived since `set`, such as `GET`, `storage GET`, `503`."""
        found: dict[str, int] = self._control(None)
        return found

    def _control(self, content: bytes | None) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/model", content, timeout=10) as reply:
            return json.load(reply)


@contextlib.contextmanager
def relayed(port: int, path: Path) -> Iterator[str]:
    """The URL of a relay to a port of this computer, with the round-trip time of a path."""
    with process_of(_serve_relay, port, path.rtt_ms / 1_000) as listening:
        yield f"http://127.0.0.1:{listening}"


@contextlib.contextmanager
def process_of(serve: Callable[..., None], *arguments: object) -> Iterator[int]:
    """A process of its own, so that the measured ones do not share its interpreter. Gives its port."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, *arguments), daemon=True)
    process.start()
    try:
        if not ours.poll(_START_SECONDS):
            raise RuntimeError("the delaying server did not start")
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def listening(handle: Handle) -> int:
    """Start a server, and return its port."""
    server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=2**20, backlog=512)
    return int(server.sockets[0].getsockname()[1])


def _serve_relay(ready: Connection, port: int, rtt: float) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(
            _delay(reader, far_writer, rtt, first=HANDSHAKES * rtt),
            _delay(far_reader, writer, rtt),
            return_exceptions=True,
        )

    async def serve() -> None:
        ready.send(await listening(handle))
        await asyncio.Event().wait()

    asyncio.run(serve())


async def _delay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rtt: float, first: float = 0
) -> None:
    """Pass bytes on half a round trip later. `first` is the time before the first bytes of a connection."""
    clock = asyncio.get_running_loop().time
    opened = clock() + first
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def send() -> None:
        while True:
            at, block = await waiting.get()
            await asyncio.sleep(max(0, at - clock()))
            if not block:
                writer.close()
                return
            writer.write(block)
            await writer.drain()

    sending = asyncio.ensure_future(send())
    block = b"any"
    while block:
        try:
            block = await reader.read(_BLOCK)
        except ConnectionError:
            block = b""
        waiting.put_nowait((max(clock(), opened) + rtt / 2, block))
    await sending
