"""The key-value store of the edge, and its moods. Both are files that are read in each request."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from local.edge.files import EdgeFiles

_SLOW = "slow-store"

MOODS = frozenset(
    {
        "errors-cached",
        "meta-hidden",
        "meta-unsigned",
        "needs-sha256",
        "no-content-length",
        "once-dropped",
        _SLOW,
    }
)


class UnknownMood(Exception):
    """A name in the file of moods that the edge does not know."""


class Store:
    """The keys as the edge sees them. With the mood `slow-store`, it sees a change only after some time."""

    def __init__(self, files: EdgeFiles) -> None:
        self._files = files
        self._seen: dict[str, str] = _read(files.keys, {})
        self._changed_at: dict[tuple[str, str | None], float] = {}

    def get(self, name: str) -> str | None:
        stored: dict[str, str] = _read(self._files.keys, {})
        delay_s = self._delay_s()
        if delay_s == 0:
            self._seen = stored
            self._changed_at.clear()
            return stored.get(name)
        for one in self._seen.keys() | stored.keys():
            value = stored.get(one)
            if value == self._seen.get(one):
                continue
            changed_at = self._changed_at.setdefault((one, value), _changed_at(self._files.keys))
            if time.time() - changed_at < delay_s:
                continue
            if value is None:
                del self._seen[one]
            else:
                self._seen[one] = value
        return self._seen.get(name)

    def moods(self) -> frozenset[str]:
        """The names of the moods, without their values. Raises UnknownMood."""
        names = frozenset(mood.partition("=")[0] for mood in self._moods())
        if unknown := names - MOODS:
            raise UnknownMood(f"{self._files.moods} names {', '.join(sorted(unknown))}")
        return names

    def _delay_s(self) -> float:
        for mood in self._moods():
            name, _, value = mood.partition("=")
            if name == _SLOW:
                return float(value or 60)
        return 0

    def _moods(self) -> list[str]:
        moods: list[str] = _read(self._files.moods, [])
        return moods


def _read(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return default


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()
