"""TLS through a proxy that is itself reached by TLS, which `ssl.SSLContext.wrap_socket` cannot do."""

from __future__ import annotations

import io
import socket
import ssl
from functools import partial
from typing import Any, Callable, TypeVar

from larder_proxy.messages import Raw

_Result = TypeVar("_Result")
_BYTES = 65_536


class Inner:
    """What this package and `http.client` use of a socket. One thread at a time may use it. Raises OSError."""

    def __init__(self, outer: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._outer = outer
        self._received, self._sending = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._sending, server_hostname=host)
        self.gettimeout, self.settimeout = outer.gettimeout, outer.settimeout
        self.close = outer.close
        self._do(self._tls.do_handshake)

    def _do(self, work: Callable[[], _Result]) -> _Result:
        """Work, between which bytes go both ways until it is over."""
        while True:
            try:
                return work()
            except ssl.SSLWantReadError:  # noqa: PERF203
                self._send()
                data = self._outer.recv(_BYTES)
                if data:
                    self._received.write(data)
                else:
                    self._received.write_eof()
            finally:
                self._send()

    def _send(self) -> None:
        if self._sending.pending:
            self._outer.sendall(self._sending.read())

    def recv_into(self, buffer: Any) -> int:
        # With a buffer, it is the number of bytes.
        return self._do(lambda: int(self._tls.read(len(buffer), buffer)))

    def sendall(self, data: bytes) -> None:
        done = 0
        while done < len(data):
            left = memoryview(data)[done : done + _BYTES]
            done += self._do(partial(self._tls.write, left))

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(Raw(self))  # type: ignore[arg-type]
