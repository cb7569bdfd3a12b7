"""Artifacts whose tag and duration follow from the body, so that a mix of two artifacts is noticed."""

import base64
import hashlib
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

import httpx

PREFLIGHT = {
    "access-control-request-method": "PUT",
    "access-control-request-headers": "Authorization, Content-Type, User-Agent, x-artifact-duration",
    "user-agent": "turbo 2.11.11 1.98.0-nightly linux x86_64",
}
CHUNK_BYTES = 256 * 1024


class Way(Enum):
    """How an artifact is uploaded, which decides the metadata that is stored with it."""

    SIGNED = "inline, with a tag"
    PLAIN = "inline, without a tag"
    DIRECT = "straight to S3"


@dataclass(frozen=True)
class Stamped:
    """One body and how it is uploaded. `digest` is its SHA-256."""

    way: Way
    size_bytes: int
    digest: str
    body: bytes = field(repr=False)

    @property
    def tag(self) -> str | None:
        """The tag that a reader must get. S3 stores none."""
        return self.own_tag if self.way is Way.SIGNED else None

    @property
    def own_tag(self) -> str:
        return base64.b64encode(bytes.fromhex(self.digest)).decode()

    @property
    def duration_ms(self) -> int:
        """The duration that a reader must get. S3 stores none."""
        return 0 if self.way is Way.DIRECT else self.own_duration_ms

    @property
    def own_duration_ms(self) -> int:
        return 1 + int(self.digest[:7], 16)


def stamp(way: Way, size_bytes: int, source: random.Random) -> Stamped:
    body = source.randbytes(size_bytes)
    return Stamped(way, size_bytes, hashlib.sha256(body).hexdigest(), body)


@dataclass(frozen=True)
class Seen:
    """The reply to a GET."""

    digest: str
    tag: str | None
    duration_ms: int

    @classmethod
    def of(cls, body: bytes, tag: str | None, duration_ms: int) -> "Seen":
        return cls(hashlib.sha256(body).hexdigest(), tag, duration_ms)


class Torn(AssertionError):
    """A reader got data that no client wrote."""


class Written:
    """Every artifact that was sent for one hash, acknowledged or not, without its bytes. Thread-safe."""

    def __init__(self) -> None:
        self._by_digest: dict[str, Stamped] = {}
        self._lock = threading.Lock()

    def add(self, artifact: Stamped) -> None:
        with self._lock:
            self._by_digest[artifact.digest] = replace(artifact, body=b"")

    def find(self, seen: Seen) -> Stamped:
        """Find the artifact that a reader got, complete and with its own tag and duration. Raises Torn."""
        artifact = self._by_digest.get(seen.digest)
        if artifact is None:
            raise Torn(f"a body that no client wrote: {seen}")
        if (seen.tag, seen.duration_ms) != (artifact.tag, artifact.duration_ms):
            raise Torn(f"{artifact} with another's tag or duration: {seen}")
        return artifact

    def check_described(self, size: int, tag: str | None, duration_ms: int) -> None:
        """Size, tag and duration of a HEAD or query must belong to one artifact. Raises Torn otherwise."""
        with self._lock:
            known = {(a.size_bytes, a.tag, a.duration_ms) for a in self._by_digest.values()}
        if (size, tag, duration_ms) not in known:
            raise Torn(f"{size} bytes, tag {tag}, {duration_ms} ms: no artifact is so")


@dataclass(frozen=True)
class Client:
    """A client of the cache API for one team. It raises httpx's errors of the connection."""

    http: httpx.Client
    api: str
    token: str
    slug: str

    def put(self, hash: str, artifact: Stamped, *, on_sent: Callable[[], None] = lambda: None) -> httpx.Response:
        """Upload through the API. Calls `on_sent` when the last byte is sent."""
        content = _pieces(artifact.body, on_sent)
        return self._send("PUT", f"/{hash}", content=content, headers=_headers(artifact))

    def offer(self, hash: str) -> str:
        """The URL for a direct upload of the hash."""
        reply = self._send("OPTIONS", f"/{hash}", headers=PREFLIGHT)
        assert reply.status_code == 204, (reply.status_code, reply.text)
        return reply.headers["location"]

    def put_to(self, location: str, artifact: Stamped, *, on_sent: Callable[[], None] = lambda: None) -> httpx.Response:
        """Upload to S3, with all the headers that S3 does not store. `on_sent` works as in `put`."""
        content = _pieces(artifact.body, on_sent)
        return self.http.put(location, content=content, headers=_headers(artifact))

    def get(self, hash: str) -> Seen | None:
        """Get the artifact from the API or from its redirect. None for a miss."""
        reply = self._send("GET", f"/{hash}")
        if reply.status_code == 404:
            return None
        assert reply.status_code in (200, 302), (reply.status_code, reply.text)
        described = reply.headers
        if reply.status_code == 302:
            location = described["location"]
            reply = self.http.get(location)
            assert reply.status_code == 200, (reply.status_code, urlsplit(location).path)
        tag, duration = described.get("x-artifact-tag"), described.get("x-artifact-duration", "0")
        return Seen.of(reply.content, tag, int(duration))

    def head(self, hash: str) -> httpx.Response:
        return self._send("HEAD", f"/{hash}")

    def query(self, *hashes: str) -> Any:
        reply = self._send("POST", "", json={"hashes": hashes})
        assert reply.status_code == 200, (reply.status_code, reply.text)
        return reply.json()

    def status(self) -> str:
        reply = self._send("GET", "/status")
        assert reply.status_code == 200, (reply.status_code, reply.text)
        return str(reply.json()["status"])

    def _send(self, method: str, path: str, *, headers: dict[str, str] | None = None, **content: Any) -> httpx.Response:
        url = f"{self.api}/v8/artifacts{path}"
        given = {"authorization": f"Bearer {self.token}", **(headers or {})}
        return self.http.request(
            method, url, params={"slug": self.slug}, headers=given, follow_redirects=False, **content
        )


def http_client(connections: int) -> httpx.Client:
    """A client that connects only to this machine and ignores proxies."""
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    return httpx.Client(verify=False, trust_env=False, timeout=60, limits=limits)


def _headers(artifact: Stamped) -> dict[str, str]:
    headers = {
        "content-type": "application/octet-stream",
        "content-length": str(artifact.size_bytes),
        "x-artifact-duration": str(artifact.own_duration_ms),
    }
    if artifact.way is not Way.PLAIN:
        headers["x-artifact-tag"] = artifact.own_tag
    return headers


def _pieces(body: bytes, on_sent: Callable[[], None]) -> Iterator[bytes]:
    for start in range(0, len(body), CHUNK_BYTES):
        yield body[start : start + CHUNK_BYTES]
    on_sent()
