"""Bodies on their way: in memory if they are small, else in files of a folder that only this user can read."""

from __future__ import annotations

import io
import shutil
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Callable

IN_MEMORY = 64_000
"""The most bytes of a body that stay in memory: many are on their way at once."""

LIMIT = 10_000_000_000


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

    def take(self, blocks: Iterable[bytes], size: int) -> Body:
        """Keep a body. Raises SpoolFull, before the first block is read if it can, and ValueError for a cut body."""
        with self._lock:
            if size > self._left:
                raise SpoolFull
            self._left -= size
        try:
            file = self._copy(blocks, size)
        except BaseException:
            self._free(size)
            raise
        return Body(file, size, self._free)

    def _copy(self, blocks: Iterable[bytes], size: int) -> BinaryIO:
        file = io.BytesIO() if size <= IN_MEMORY else self._new_file()
        written = 0
        try:
            for block in blocks:
                _write(file, block)
                written += len(block)
            if written != size:
                raise ValueError("the body is cut")
        except BaseException:
            file.close()
            raise
        return file

    def _new_file(self) -> BinaryIO:
        try:
            return tempfile.TemporaryFile(dir=self._folder)
        except OSError as error:
            raise SpoolFull from error

    def _free(self, size: int) -> None:
        with self._lock:
            self._left += size

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _write(file: BinaryIO, block: bytes) -> None:
    try:
        file.write(block)
    except OSError as error:
        raise SpoolFull from error
