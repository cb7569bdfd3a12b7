"""Send one HTTP request and read the response, without following redirects or normalising anything.

Connections are those of `larder run`, with the proxy and the certificates of this computer.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from larder_proxy.connections import Limits, Pool

TIMEOUT_S = 30.0
"""The gateway's own limit."""

_CHUNK_BYTES = 65_536

_NO_ADDRESS = "the host does not exist: check the URL, and whether the DNS record of a new domain has propagated"
_NOT_TRUSTED = "the certificate is not trusted: if it is your company's, set SSL_CERT_FILE or NODE_EXTRA_CA_CERTS to it"
_NO_RESPONSE = (
    "no response in time: check for a firewall, a disconnected VPN or a service that hangs"
)
_BY_WORDS = (
    ("proxy answers 407", "the proxy wants a password: write HTTPS_PROXY=http://user:password@host:port"),
    ("proxy answers 403", "the proxy refuses the host: ask for it to be let through, or name it in NO_PROXY"),
    ("proxy answers", "the proxy does not reach the host: check the URL, or name the host in NO_PROXY"),
    ("HTTPS_PROXY", "check HTTPS_PROXY, or name the host in NO_PROXY"),
    ("certificate has expired", "the certificate of the host has expired: renew it, and check this computer's clock"),
    ("not yet valid", "the certificate of the host is not valid yet: check this computer's clock"),
    ("ostname mismatch", "the certificate is for another host: check the URL"),
    ("CERTIFICATE_VERIFY_FAILED", _NOT_TRUSTED),
    ("WRONG_VERSION_NUMBER", "the port does not speak https: check the URL and the port"),
    ("Name or service not known", _NO_ADDRESS),
    ("nodename nor servname", _NO_ADDRESS),
    ("name resolution", _NO_ADDRESS),
    ("refused", "nothing listens there: check the host, the port and whether the service runs"),
    ("timed out", _NO_RESPONSE),
    ("in time", _NO_RESPONSE),
)  # fmt: skip


class Unreachable(Exception):
    """There was no response. The message is the operating system's, or says what the proxy answers."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. The names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON, or None if it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def code(self) -> str | None:
        """The error code, if the body is an error of Larder."""
        error = self.json
        return str(error["code"]) if isinstance(error, dict) and "code" in error else None

    @property
    def is_the_gateways(self) -> bool:
        """Whether API Gateway itself responded: its errors have a message and no code."""
        error = self.json
        return isinstance(error, dict) and error.keys() == {"message"}


def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | Iterator[bytes] = b"",
    chunked: bool = False,
    timeout_s: float = TIMEOUT_S,
    as_digest: bool = False,
) -> Answer:
    """Send one request and read the entire response. Raises Unreachable.

    A body in pieces needs a Content-Length among the headers. With `as_digest`, the body of the response is replaced by
    its SHA-256, so that it need not fit into memory.
    """
    address = urlsplit(url)
    sent = {"User-Agent": "larder-smoke", **(headers or {})}
    if chunked:
        sent["Transfer-Encoding"] = "chunked"
    try:
        with contextlib.closing(_Connection(address, timeout_s)) as connection:
            # A server that rejects a body early may close the connection, and still send a response.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(
                    method,
                    _target(address),
                    body=_pieces(body) if isinstance(body, bytes) and chunked else body or None,
                    headers=sent,
                    encode_chunked=chunked,
                )
            response = connection.getresponse()
            return Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                _digest(response) if as_digest else response.read(),
            )
    except (OSError, ValueError, HTTPException) as error:
        raise Unreachable(str(error) or type(error).__name__) from error


def timed(
    method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, times: int
) -> list[float]:
    """Send a request `times` times over one connection. Raises Unreachable.

    Returns the seconds that it took to connect, and then those of each request until its whole response was there.
    """
    address = urlsplit(url)
    sent = {"User-Agent": "larder-smoke", **headers}
    try:
        with contextlib.closing(_Connection(address, TIMEOUT_S)) as connection:
            began = time.monotonic()
            connection.connect()
            found = [time.monotonic() - began]
            for _ in range(times):
                began = time.monotonic()
                connection.request(method, _target(address), body=body or None, headers=sent)
                connection.getresponse().read()
                found.append(time.monotonic() - began)
            return found
    except (OSError, ValueError, HTTPException) as error:
        raise Unreachable(str(error) or type(error).__name__) from error


def is_of_edge(location: str) -> bool:
    """Whether an address of an upload or a download is one of the edge, which keeps signatures. Others are S3's."""
    return {"k", "e", "s"} <= parse_qs(urlsplit(location).query).keys()


def about_silence(reason: Unreachable) -> str:
    """What to do about a missing response."""
    for words, advice in _BY_WORDS:
        if words in str(reason):
            return advice
    return "check the URL and the network"


class _Connection(HTTPConnection):
    """Reaches its host as `larder run` does."""

    def __init__(self, address: SplitResult, timeout_s: float) -> None:
        self.default_port = 443 if address.scheme == "https" else 80
        super().__init__(address.hostname or "", address.port)
        self._url, self._timeout_s = address.geturl(), timeout_s

    def connect(self) -> None:
        pool = _pool(frozenset(os.environ.items()), self._timeout_s)
        self.sock = pool.open(self._url)
        self.sock.settimeout(self._timeout_s)


@lru_cache(maxsize=4)
def _pool(environment: frozenset[tuple[str, str]], timeout_s: float) -> Pool:
    """One for each environment, because reading the certificates takes 20 ms."""
    return Pool(dict(environment), Limits(connect=timeout_s))


def _target(address: SplitResult) -> str:
    path = address.path or "/"
    return f"{path}?{address.query}" if address.query else path


def _digest(response: HTTPResponse) -> bytes:
    digest = hashlib.sha256()
    while piece := response.read(_CHUNK_BYTES):
        digest.update(piece)
    return digest.digest()


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), _CHUNK_BYTES):
        yield body[start : start + _CHUNK_BYTES]
