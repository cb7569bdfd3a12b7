"""Bodies on their way: in memory if they are small, else in files of a folder that only this user can read."""

from __future__ import annotations

import io
import shutil
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO, Callable, Protocol

IN_MEMORY = 64_000
"""The most bytes of a body that stay in memory: many are on their way at once."""

LIMIT = 10_000_000_000
_BLOCK = 262_144


class Source(Protocol):
    """What a body is read from. `read` gives fewer bytes at its end only."""

    def read(self, size: int, /) -> bytes: ...


class SpoolFull(Exception):
    """There is no room for the body, in the limit or on the disk."""


class Body:
    """A body of known size. `close` gives its room back."""

    def __init__(self, file: BinaryIO, size: int, freed: Callable[[int], None]) -> None:
        self._file = file
        self.size = size
        self._freed = freed

    def open(self) -> BinaryIO:
        """The bytes from the start. Only one reader at a time."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        self._file.close()
        freed, self._freed = self._freed, lambda _: None
        freed(self.size)


class Spool:
    """The folder. Its files have no names, so nothing is left of them after a crash."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="larder-"))
        self._left = limit
        self._lock = threading.Lock()

    def limit(self, size: int) -> None:
        """Set the room that is left."""
        with self._lock:
            self._left = size

    def take(self, source: Source, size: int) -> Body:
        """Read a body. Raises SpoolFull before the first byte is read, or OSError, and ValueError for a cut body."""
        with self._lock:
            if size > self._left:
                raise SpoolFull
            self._left -= size
        try:
            file = self._copy(source, size)
        except BaseException:
            self._free(size)
            raise
        return Body(file, size, self._free)

    def _copy(self, source: Source, size: int) -> BinaryIO:
        if size <= IN_MEMORY:
            content = source.read(size)
            if len(content) != size:
                raise ValueError("the body is cut")
            return io.BytesIO(content)
        try:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  # Body closes it
        except OSError as error:
            raise SpoolFull from error
        left = size
        try:
            while left:
                block = source.read(min(left, _BLOCK))
                if not block:
                    raise ValueError("the body is cut")
                try:
                    file.write(block)
                except OSError as error:
                    raise SpoolFull from error
                left -= len(block)
        except BaseException:
            file.close()
            raise
        return file

    def _free(self, size: int) -> None:
        with self._lock:
            self._left += size

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
