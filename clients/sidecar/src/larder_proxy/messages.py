"""HTTP/1.1 messages on a connection, of tools and of Larder.

The modules of the standard library parse headers as those of a mail, which takes most of the time of a small artifact.
"""

from __future__ import annotations

import io
import math
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Lines(Protocol):
        """A connection, as its heads are read."""

        def readline(self, most: int, /) -> bytes: ...

    class Source(Lines, Protocol):
        """A connection, as it is read."""

        def read1(self, size: int, /) -> bytes: ...


BLOCK = 262_144
"""The most bytes of a body that are read at once."""

BEGINS_GZIP = b"\x1f\x8b"
GZIP = 31
"""zlib's number for the format, with the largest window."""

MOST_HEAD = 32_768
_MOST_LINE = 65_536
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n\0]*)\r?\n")
"""Without the spaces around the value: to match them here takes hours for many of them, and stops all threads."""


class Malformed(ConnectionError):
    """This is no HTTP/1.1, or it is cut."""


class Raw(io.RawIOBase):
    """A socket to read from, until a time (time.monotonic), however slowly the bytes come."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self.until = sock, math.inf

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.until < math.inf:
            limit(
                self._sock, min(self.until - time.monotonic(), self._sock.gettimeout() or math.inf)
            )
        return self._sock.recv_into(buffer)


def limit(sock: socket.socket, seconds: float) -> None:
    """Let each operation take some seconds. Raises socket.timeout if there are none."""
    if seconds <= 0:
        raise socket.timeout("no answer in time")
    # Setting it lets other threads go first.
    if sock.gettimeout() != seconds:
        sock.settimeout(seconds)


def read_head(file: Lines) -> tuple[str, dict[str, str]]:
    """The first line, and the headers by their names in lower case. The line is `""` if the connection has ended.

    Raises OSError.
    """
    first = file.readline(MOST_HEAD)
    if not first:
        return "", {}
    headers: dict[str, str] = {}
    left = MOST_HEAD - len(first)
    while left > 0:
        line = file.readline(left)
        left -= len(line)
        if line in (b"\r\n", b"\n"):
            return first.decode("latin-1").rstrip("\r\n"), headers
        match = _HEADER.fullmatch(line)
        if match is None:
            break
        name, value = match[1].decode().lower(), match[2].strip(b" \t").decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    raise Malformed("the head of a message is cut, damaged or too long")


def head(first: str, headers: Mapping[str, str]) -> bytes:
    """The bytes up to the body. Raises Malformed for a value that would not stay in its line."""
    lines = [first, *[f"{name}: {value}" for name, value in headers.items()]]
    text = "\r\n".join(lines)
    if text.count("\n") != len(headers) or text.count("\r") != len(headers):
        raise Malformed("a header has a line break")
    return f"{text}\r\n\r\n".encode("latin-1", "replace")


class Sent:
    """A body on its connection. `left` bytes are not read yet, None if it is in chunks."""

    def __init__(self, file: Source, left: int | None) -> None:
        self._file, self.left = file, left

    def __iter__(self) -> Iterator[bytes]:
        """What is left, in blocks. They end early if the body is cut; in chunks, with ValueError."""
        if self.left is not None:
            yield from self._blocks()
            return
        while self.left is None:
            line = self._file.readline(_MOST_LINE)
            self.left = int(line.split(b";")[0], 16)
            if self.left < 0:
                # A read of less than nothing takes all that comes, into memory.
                raise ValueError("the size of a chunk is negative")
            is_last = not self.left
            yield from self._blocks()
            if self.left:
                raise ValueError("the body is cut")
            while is_last and self._file.readline(_MOST_LINE).strip():
                pass
            if is_last:
                return
            self._file.readline(_MOST_LINE)
            self.left = None

    def _blocks(self) -> Iterator[bytes]:
        while self.left:
            block = self._file.read1(min(BLOCK, self.left))
            if not block:
                return
            self.left -= len(block)
            yield block

    def drain(self) -> None:
        with suppress(ValueError):
            for _ in self:
                pass


def body_of(file: Source, headers: Mapping[str, str], *, without_length: int) -> Sent:
    """The body that follows a head. `without_length` is the most bytes of one that names no length.

    Raises Malformed.
    """
    if "transfer-encoding" in headers:
        if headers["transfer-encoding"].lower() != "chunked":
            raise Malformed("the body has an unknown coding")
        return Sent(file, None)
    text = headers.get("content-length")
    if text is None:
        return Sent(file, without_length)
    if not text.isdecimal():
        raise Malformed("the length of the body is no number")
    return Sent(file, int(text))
