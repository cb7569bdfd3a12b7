"""A request as it goes over the wire, and its answer. No redirect is followed, nothing is put right on the way."""

import contextlib
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, urlsplit

PATIENCE_S = 30.0
"""The gateway's own limit."""

_CHUNK_BYTES = 65_536


class Unreachable(Exception):
    """There is no answer. The message says why, in the words of the operating system."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `headers` are by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON; None when it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def code(self) -> str | None:
        """The code of an error of Larder's."""
        error = self.json
        return str(error["code"]) if isinstance(error, dict) and "code" in error else None

    @property
    def is_the_gateways(self) -> bool:
        """Whether API Gateway gave it by itself: a message, and no code."""
        error = self.json
        return isinstance(error, dict) and error.keys() == {"message"}


def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    chunked: bool = False,
    patience_s: float = PATIENCE_S,
) -> Answer:
    """Send one request and read the whole answer. Raises Unreachable."""
    address = urlsplit(url)
    sent = {"User-Agent": "larder-smoke", **(headers or {})}
    if chunked:
        sent["Transfer-Encoding"] = "chunked"
    try:
        with contextlib.closing(_connection(address, patience_s)) as connection:
            # Who refuses a body before its end may hang up on the rest: the answer is there all the same.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(
                    method,
                    _target(address),
                    body=_pieces(body) if chunked else body or None,
                    headers=sent,
                    encode_chunked=chunked,
                )
            response = connection.getresponse()
            return Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                response.read(),
            )
    except (OSError, HTTPException, ssl.SSLError) as error:
        raise Unreachable(str(error) or type(error).__name__) from error


def _connection(address: SplitResult, patience_s: float) -> HTTPConnection:
    host = address.hostname or ""
    if address.scheme == "https":
        return HTTPSConnection(host, address.port, timeout=patience_s)
    return HTTPConnection(host, address.port, timeout=patience_s)


def _target(address: SplitResult) -> str:
    path = address.path or "/"
    return f"{path}?{address.query}" if address.query else path


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _CHUNK_BYTES):
        yield body[start : start + _CHUNK_BYTES]
