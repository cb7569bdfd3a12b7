"""Bodies on their way: in memory if they are small, else in files without a name, which end with the process."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable
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
    """Keeps bodies, of `limit` bytes together at most."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._left = limit
        self._lock = threading.Lock()

    def take(self, blocks: Iterable[bytes], size: int | None) -> Body:
        """Keep a body. `size` is None if it is not known before the end.

        Raises SpoolFull, before the first block is read if it can, and ValueError for a cut body.
        """
        reserved, written = 0, 0
        file: BinaryIO | None = None
        try:
            if size is not None:
                self._reserve(size)
                reserved = size
            file = _new_file() if size is None or size > IN_MEMORY else io.BytesIO()
            for block in blocks:
                if size is None:
                    self._reserve(len(block))
                    reserved += len(block)
                _write(file, block)
                written += len(block)
            if written != reserved:
                raise ValueError("the body is cut")
        except BaseException:
            self._free(reserved)
            if file is not None:
                file.close()
            raise
        return Body(file, written, self._free)

    def _reserve(self, size: int) -> None:
        with self._lock:
            if size > self._left:
                raise SpoolFull
            self._left -= size

    def _free(self, size: int) -> None:
        with self._lock:
            self._left += size


def _new_file() -> BinaryIO:
    # Not before the first file, because the module takes as long as the start of a small sidecar.
    import tempfile

    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        raise SpoolFull from error


def _write(file: BinaryIO, block: bytes) -> None:
    try:
        file.write(block)
    except OSError as error:
        raise SpoolFull from error
