"""Bodies on their way: in memory if they are small, else in one file without a name, which ends with the process."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

IN_MEMORY, ALL_IN_MEMORY = 64_000, 32_000_000
"""The most bytes of a body that stay in memory, and of all of them: many are on their way at once."""

LIMIT = 10_000_000_000
HELD_BACK_SECONDS = 8.0
"""How long a tool waits for room that uploads give back. ccache gives up after ten."""

_AGAIN_SECONDS = 0.2
_PLACE = 131_072
"""The bytes of a part of the file, which belongs to one body."""


class NoRoom(Exception):
    """A body has no room, in the limit or on the disk. `blocks` has all of it, once. Close it at the end."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self._kept = Body()
        self.blocks: Iterator[bytes] = iter(())
        self.on_close: Callable[[], None] = lambda: None

    def add(self, kept: Body, block: bytes, rest: Iterator[bytes]) -> None:
        self._kept, self.blocks = kept, chain(kept.blocks(), [block], rest)

    def close(self) -> None:
        self._kept.close()
        self.on_close()


class Body:
    """A body. `close` gives its room back, when all that share it have closed it."""

    is_whole = True
    """Whether it can be read again."""

    def __init__(self, content: bytes = b"", spool: Spool | None = None) -> None:
        self.size = len(content)
        self._spool, self._users = spool, 1
        self._memory = [content] if content else []
        self._places: list[int] = []

    def blocks(self) -> Iterator[bytes]:
        """The bytes from the start. Several can read at a time. Raises OSError."""
        yield from self._memory
        if self._spool is not None:
            # What is in memory may have a place already, for which the disk had no room.
            left = 0 if self._memory or not self._places else self.size
            for place in self._places:
                if left > 0:
                    yield self._spool.read(place, min(left, _PLACE))
                left -= _PLACE

    def share(self) -> Body:
        """The same body, for one more user."""
        with _SHARING:
            self._users += 1
        return self

    def close(self) -> None:
        with _SHARING:
            self._users -= 1
            is_over = self._users == 0
        if is_over and self._spool is not None:
            self._spool.free(self)

    def add(self, block: bytes, spool: Spool) -> None:
        """Keep more bytes. Raises NoRoom."""
        size = self.size + len(block)
        if not self._places and size <= IN_MEMORY and spool.take_memory(len(block)):
            self._memory.append(block)
        else:
            moved = b"".join([*self._memory, block])
            spool.write(self._places, size - len(moved), moved)
            spool.take_memory(len(block) - len(moved))
            self._memory = []
        self.size = size


_SHARING = threading.Lock()


class Passing(Body):
    """A body that goes through without being kept."""

    is_whole = False

    def __init__(self, blocks: Iterable[bytes], size: int) -> None:
        super().__init__()
        self._blocks, self.size = blocks, size

    def blocks(self) -> Iterator[bytes]:
        return iter(self._blocks)


class Spool:
    """Keeps bodies, of about `limit` bytes together at most."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._freed = threading.Condition()
        self.on_full: Callable[[], None] = lambda: None
        """Gives back what nobody needs."""
        self._most, self._memory = limit // _PLACE, min(ALL_IN_MEMORY, limit)
        self._free: list[int] = []
        self._used = self._end = 0
        self._is_full = False
        self._file: BinaryIO | None = None

    def take(self, blocks: Iterable[bytes], size: int | None) -> Body:
        """Keep a body. `size` is None if it is not known. Raises NoRoom, and ValueError for a cut body."""
        body, block, rest = Body(spool=self), b"", iter(blocks)
        try:
            for block in rest:
                body.add(block, self)
            if size not in (None, body.size):
                raise ValueError("the body is cut")
        except NoRoom as error:
            error.add(body, block, rest)
            raise
        except BaseException:
            body.close()
            raise
        return body

    def take_memory(self, size: int) -> bool:
        with self._freed:
            if size > self._memory:
                return False
            self._memory -= size
            return True

    def write(self, places: list[int], at: int, data: bytes) -> None:
        """Write to the end of a body that has `at` bytes in the file. Raises NoRoom."""
        done, offset = 0, at % _PLACE
        while done < len(data):
            if offset == 0:
                places.append(self._new_place())
            part = memoryview(data)[done : done + _PLACE - offset]
            self._write(places[-1] * _PLACE + offset, part)
            done, offset = done + len(part), 0

    def _new_place(self) -> int:
        ends = time.monotonic() + HELD_BACK_SECONDS
        with self._freed:
            while self._used >= self._most:
                self._wait(ends, "no room for more entries")
            self._used += 1
            if self._free:
                return self._free.pop()
            self._end += 1
            return self._end - 1

    def _write(self, at: int, data: memoryview) -> None:
        ends = time.monotonic() + HELD_BACK_SECONDS
        with self._freed:
            while data:
                try:
                    self._file = self._file or _new_file()
                    self._file.seek(at)
                    done = self._file.write(data)
                except OSError as error:  # noqa: PERF203
                    self._wait(ends, f"no room in TMPDIR ({error.strerror})")
                else:
                    data, at = data[done:], at + done

    def _wait(self, ends: float, reason: str) -> None:
        """Wait for room that others give back. Not again in vain: a build would wait at each entry."""
        used = self._used
        self.on_full()
        if self._used < used:
            return
        left = 0 if self._is_full or self._used <= 1 else ends - time.monotonic()
        if left <= 0:
            self._is_full = True
            raise NoRoom(reason)
        self._freed.wait(min(left, _AGAIN_SECONDS))

    def read(self, place: int, size: int) -> bytes:
        """Raises OSError."""
        with self._freed:
            assert self._file is not None  # noqa: S101  # a place was written to
            self._file.seek(place * _PLACE)
            return self._file.read(size)

    def free(self, body: Body) -> None:
        with self._freed:
            self._memory += sum(map(len, body._memory))
            self._used -= len(body._places)
            self._free += body._places
            body._memory, body._places = [], []
            if self._file is not None and not (self._used or self._file.closed):
                self._free, self._end = [], 0
                # Other programs get the disk back.
                self._file.truncate(0)
            self._is_full = False
            self._freed.notify_all()

    def close(self) -> None:
        """Give the disk back. Reading what is left raises ValueError, as does writing to the file."""
        with self._freed:
            # A download that has not ended makes no new file.
            self._file = self._file or io.BytesIO()
            self._file.close()


def _new_file() -> BinaryIO:
    # Not before the first file, because the module takes as long as the start of a small sidecar.
    import tempfile

    return tempfile.TemporaryFile(buffering=0)
