"""The key-value store of the edge, and its states. Both are files that are read in each request."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from local.edge.files import EdgeFiles

_SLOW = "slow-store"

STATES = frozenset(
    {
        # A 403, 404 or 5xx of S3 is repeated for ten seconds to every GET of the same path.
        "errors-cached",
        # The response function does not see `x-amz-meta-*`.
        "meta-hidden",
        # S3 refuses (403) an upload with `x-amz-meta-*`, because the origin's signature does not cover them.
        "meta-unsigned",
        # S3 refuses (403) an upload without `x-amz-content-sha256` from the function.
        "needs-sha256",
        # The request function does not see `Content-Length`.
        "no-content-length",
        # `If-None-Match` does not reach S3.
        "once-dropped",
        # `slow-store=60`: a change of the store takes 60 seconds to reach the edge.
        _SLOW,
    }
)


class UnknownState(Exception):
    """A name in the file of states that the edge does not know."""


class Store:
    """The keys as the edge sees them. With the state `slow-store`, it sees a change only after some time."""

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

    def states(self) -> frozenset[str]:
        """The names of the states, without their values. Raises UnknownState."""
        names = frozenset(state.partition("=")[0] for state in self._states())
        if unknown := names - STATES:
            raise UnknownState(f"{self._files.states} names {', '.join(sorted(unknown))}")
        return names

    def _delay_s(self) -> float:
        for state in self._states():
            name, _, value = state.partition("=")
            if name == _SLOW:
                return float(value or 60)
        return 0

    def _states(self) -> list[str]:
        states: list[str] = _read(self._files.states, [])
        return states


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
