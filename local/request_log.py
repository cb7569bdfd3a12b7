"""The lines on the screen: one for each request, and errors.

A separate thread writes them, so that a slow terminal or a pipe that nobody reads does not delay requests.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

_GATHERED_S = 0.02


class RequestLog:
    """Lines to standard output or another stream, in order."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = output or sys.stdout
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write_forever, name="screen", daemon=True)
        self._thread.start()

    def line(self, text: str) -> None:
        self._lines.put(_printable(text))

    def note(self, text: str) -> None:
        """Print a notice with the time."""
        self.line(f"{_clock()} ! {text}")

    def initialized(self, function: str, took_ms: float) -> None:
        """A cold start: the time from the start of the process until it asked for an event."""
        self.line(f"{_clock()} Init {took_ms:.0f} ms  {function}")

    def request(
        self,
        method: str,
        path: str,
        status: int,
        *,
        took_ms: float,
        received_bytes: int,
        sent_bytes: int,
        location: str | None = None,
        remark: str | None = None,
    ) -> None:
        """One request. Only host and path of a `location` are shown, because the query contains a signature."""
        size = received_bytes if method in ("PUT", "POST") else sent_bytes
        text = f"{_clock()} {method:7} {path}  {status}  {took_ms:.0f} ms  {_size(size)}"
        if location:
            target = urlsplit(location)
            text += f"  -> {target.netloc}{target.path}"
        if remark:
            text += f"  ({remark})"
        self.line(text)

    def close(self) -> None:
        """Write the remaining lines, unless the output is blocked."""
        self._lines.put(None)
        self._closing.set()
        self._thread.join(timeout=0.5)

    def _write_forever(self) -> None:
        closing = False
        while not closing:
            lines = [self._lines.get()]
            # Wait briefly and write several lines at once, so that this thread does not compete with requests.
            self._closing.wait(_GATHERED_S)
            while not self._lines.empty():
                lines.append(self._lines.get())
            closing = None in lines
            try:
                self._output.write("".join(f"{text}\n" for text in lines if text is not None))
                self._output.flush()
            except (OSError, ValueError):
                # The reader of the pipe has ended; the service continues.
                self._output = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the process lives


def _clock() -> str:
    """The local time of day."""
    return time.strftime("%H:%M:%S")


def _size(size_bytes: int) -> str:
    if size_bytes < 1000:
        return f"{size_bytes} B"
    if size_bytes < 1_000_000:
        return f"{size_bytes / 1000:.1f} kB"
    return f"{size_bytes / 1_000_000:.1f} MB"


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    # A path may contain control characters, which must not reach the terminal.
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
