"""The network of a company: forward proxies, and a host that only they know, with a certificate of the company."""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from tools.benchmarks.cold.tls import READ_BYTES, pass_on, self_signed

HOST = "cache.corp.test"
_HEADER = f"Host: {HOST}\r\n".encode()
_USER = "Basic " + base64.b64encode(b"ada:a b").decode()


@dataclass
class Network:
    """`proxies` are addresses: `plain`, `tls`, `password` and `tls_password`, which want `ada:a%20b`, and `refusing`.

    `asked` has every host and port that one was asked for.
    """

    certificates: Path
    proxies: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=dict)
    writers: list[asyncio.StreamWriter] = field(default_factory=list, repr=False)

    async def forward(self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer as a proxy."""
        self.writers.append(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, target, _ = head.split(" ", 2)
            self.asked.append(target)
            status = 200 if method == "CONNECT" and target in self.ports else 502
            if "password" in kind and f"Proxy-Authorization: {_USER}\r\n" not in head:
                status = 407
            if kind == "refusing":
                status = 403
            writer.write(f"HTTP/1.1 {status} -\r\n\r\n".encode())
            if status == 200:
                await self.join(self.ports[target], b"", reader, writer)
            writer.close()

    async def join(self, port: int, own: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes on. `own` replaces the host, as a local cloud answers only to names of this computer."""
        with suppress(OSError):
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
            self.writers += (writer, inner_writer)
            answers = asyncio.create_task(pass_on(inner_reader, writer))
            while data := await reader.read(READ_BYTES):
                inner_writer.write(data.replace(_HEADER, own) if own else data)
                await inner_writer.drain()
            inner_writer.close()
            await answers


@contextmanager
def company_network(folder: Path, url: str) -> Iterator[Network]:
    """A context in which `https://cache.corp.test` is the service at `url`, for the proxies."""
    certificate, key = self_signed(HOST)
    own = folder / "front.pem"
    own.write_bytes(key + certificate)
    network = Network(folder / "company.pem")
    network.certificates.write_bytes(certificate)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own)

    async def serve() -> None:
        port = urlsplit(url).port or 80
        front = partial(network.join, port, f"Host: 127.0.0.1:{port}\r\n".encode())
        servers = {"front": await asyncio.start_server(front, "127.0.0.1", 0, ssl=tls)}
        for kind in ("plain", "tls", "password", "tls_password", "refusing"):
            accept, context = partial(network.forward, kind), tls if "tls" in kind else None
            servers[kind] = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
        ports = {kind: server.sockets[0].getsockname()[1] for kind, server in servers.items()}
        network.ports[f"{HOST}:443"] = ports.pop("front")
        for kind, port in ports.items():
            network.proxies[kind] = f"http{'s' * ('tls' in kind)}://127.0.0.1:{port}"
        started.set_result((asyncio.get_running_loop(), stop := asyncio.Event()))
        await stop.wait()
        for server in servers.values():
            server.close()
        for writer in network.writers:
            # Python before 3.11.4 can't abort a TLS connection that has ended.
            if not writer.is_closing():
                writer.transport.abort()

    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop, stop = started.result(10)
    try:
        yield network
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
