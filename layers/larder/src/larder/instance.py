"""What an instance remembers from one request to the next.

This only saves work. Each reply depends on what is stored now, so an instance may forget everything at any time.
"""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

_memories: "list[Remembered]" = []  # type: ignore[type-arg]


class Remembered(OrderedDict[K, V]):
    """A mapping of at most `most` entries. A further one replaces the one that was set the longest ago."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._setting = Lock()
        _memories.append(self)

    def __setitem__(self, key: K, value: V) -> None:
        with self._setting:
            # Again at the end.
            self.pop(key, None)
            super().__setitem__(key, value)
            if len(self) > self._most:
                self.popitem(last=False)

    def remember(self, entries: Mapping[K, V]) -> None:
        """Set several at once, which takes less time. An entry that is there keeps its place in the order."""
        set_one = super().__setitem__
        with self._setting:
            for key, value in entries.items():
                set_one(key, value)
            while len(self) > self._most:
                self.popitem(last=False)


def restart() -> None:
    """Forget everything, like a new instance."""
    for memory in _memories:
        memory.clear()
