"""The body of a request, as a tool sends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from io import BufferedIOBase

_BLOCK = 262_144
_MOST_CHUNK_LINE = 1_000


class Sent:
    """A body on its connection. `left` bytes are not read yet, None if it is in chunks."""

    def __init__(self, file: BufferedIOBase, left: int | None) -> None:
        self._file, self.left = file, left

    def __iter__(self) -> Iterator[bytes]:
        """What is left, in blocks. They end early if the body is cut; in chunks, with ValueError."""
        if self.left is not None:
            yield from self._blocks()
            return
        while self.left is None:
            line = self._file.readline(_MOST_CHUNK_LINE)
            self.left = int(line.split(b";")[0], 16)
            is_last = not self.left
            yield from self._blocks()
            if self.left:
                raise ValueError("the body is cut")
            while is_last and self._file.readline(_MOST_CHUNK_LINE).strip():
                pass
            if is_last:
                return
            self._file.readline(_MOST_CHUNK_LINE)
            self.left = None

    def _blocks(self) -> Iterator[bytes]:
        while self.left:
            block = self._file.read(min(_BLOCK, self.left))
            if not block:
                return
            self.left -= len(block)
            yield block

    def drain(self) -> None:
        with suppress(ValueError):
            for _ in self:
                pass
