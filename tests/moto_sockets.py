"""Connections of larder.aws.wire that moto replies to in this process, over HTTP as the wire writes and reads it."""

import json
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto.core.models import botocore_stubber

Watch = Callable[[str, dict[str, Any]], None]
_watches: list[Watch] = []

Take = Callable[[str, Any, bytes], int | None]
_takes: list[Take] = []
_INVOCATION = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Call `watch` for each call that `show` gets, with boto3's name of the operation and its arguments."""
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


@contextmanager
def taking(take: Take) -> Iterator[None]:
    """Let `take` answer calls by the wire. It gets target, headers and body, and returns a status or, for calls that
    others answer, None.
    """
    _takes.append(take)
    try:
        yield
    finally:
        _takes.remove(take)


def in_memory() -> bool:
    """Whether moto replies to calls now."""
    return bool(botocore_stubber.enabled)


def show(operation: str, arguments: dict[str, Any]) -> None:
    """Show a call to all watches. Those by the wire are shown here."""
    for watch in [*_watches]:
        watch(operation, arguments)


Answer = Callable[[Any, bytes], tuple[int, dict[str, str], bytes]]


@contextmanager
def answering_wire(answer_tables: Answer) -> Iterator[None]:
    """Keep connections to Amazon's hosts in this process. `answer_tables` gets DynamoDB's headers and bodies."""
    connect, wrap = socket.create_connection, ssl.SSLContext.wrap_socket

    def connect_to_moto(address: tuple[str, int], *args: Any, **kwargs: Any) -> Any:
        if address[0].endswith(".amazonaws.com"):
            tables = answer_tables if address[0].startswith("dynamodb.") else None
            return _Connection(address[0], tables)
        return connect(address, *args, **kwargs)

    def leave_plain(context: ssl.SSLContext, plain: Any, *args: Any, **kwargs: Any) -> Any:
        return plain if isinstance(plain, _Connection) else wrap(context, plain, *args, **kwargs)

    with patch("socket.create_connection", connect_to_moto), patch.object(ssl.SSLContext, "wrap_socket", leave_plain):
        yield


class _Connection:
    """A socket, and the file that is read from it."""

    def __init__(self, host: str, answer_tables: Answer | None) -> None:
        self._host, self._answer_tables = host, answer_tables
        self._sent = bytearray()
        self._reply = BytesIO()
        # A descriptor that has nothing to read, for `poll`.
        self._idle, self._other = os.pipe()

    def setsockopt(self, *_: object) -> None: ...

    def settimeout(self, _: float) -> None: ...

    def fileno(self) -> int:
        return self._idle

    def makefile(self, _: str) -> "_Connection":
        return self

    def sendall(self, data: bytes) -> None:
        self._sent += data

    def readline(self, limit: int) -> bytes:
        self._answer()
        return self._reply.readline(limit)

    def read(self, size: int = -1) -> bytes:
        return self._reply.read(size)

    def close(self) -> None:
        if self._idle >= 0:
            os.close(self._idle)
            os.close(self._other)
            self._idle = -1

    __del__ = close

    def _answer(self) -> None:
        """Pass the request on, once all of it is sent."""
        if not self._sent:
            return
        head, _, body = bytes(self._sent).partition(b"\r\n\r\n")
        self._sent.clear()
        first, *fields = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        # http.client's parser of mail takes longer than the rest of a call.
        headers = HTTPHeaders.from_pairs(field.partition(": ")[::2] for field in fields)
        if _watches:
            show(*_call(method, target, headers, body))
        for take in _takes:
            if (status := take(target, headers, body)) is not None:
                self._reply = BytesIO(f"HTTP/1.1 {status} .\r\ncontent-length: 0\r\n\r\n".encode())
                return
        status, lines, content = self._answered(method, target, headers, body)
        begin = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._reply = BytesIO(f"HTTP/1.1 {status} .\r\n{begin}\r\n".encode() + content)

    def _answered(self, method: str, target: str, headers: Any, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if self._answer_tables is not None:
            return self._answer_tables(headers, body)
        url = f"https://{self._host}{target}"
        reply: Any = botocore_stubber("", AWSPreparedRequest(method, url, headers, body, False))
        content = b"" if method == "HEAD" else reply.content
        lines = {name.lower(): value for name, value in reply.headers.items()}
        if method != "HEAD":
            lines["content-length"] = str(len(content))
        lines.pop("transfer-encoding", None)
        return reply.status_code, lines, content


def _call(method: str, target: str, headers: Any, body: bytes) -> tuple[str, dict[str, Any]]:
    if action := headers.get("x-amz-target"):
        return action.rpartition(".")[2], json.loads(body)
    if invocation := _INVOCATION.fullmatch(target):
        return "Invoke", {"FunctionName": invocation[1]}
    parts = urlsplit(target)
    arguments = {"Key": unquote(parts.path.removeprefix("/"))}
    if version := parse_qs(parts.query).get("versionId"):
        arguments["VersionId"] = version[0]
    operation = {"GET": "Get", "HEAD": "Head", "PUT": "Put", "DELETE": "Delete"}[method]
    return f"{operation}Object", arguments
