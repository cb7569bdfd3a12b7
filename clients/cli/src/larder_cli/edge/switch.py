"""The keys of the edge: the one in use, and old ones whose addresses may still be in use.

A key is first in the store, then in the switch, and last only in the store, until the addresses that it signed have
expired. `old-<id>` in the store says when it can be deleted, so that the next command can, if this one is interrupted.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from larder import clock
from larder.settings import settings
from larder.signing import EdgeKey, put_edge_key, read_edge_key
from larder_cli.edge.store import KeyStore

FUNCTIONS_CACHE_IT_FOR = timedelta(minutes=6)
"""Five minutes, and one for clock differences."""

UNUSED_KEYS_LIVE = timedelta(days=1)
"""After this time, a key that an interrupted command has added is deleted."""

_KEY = "key-"
_OLD = "old-"
_ID_BYTES = 4
_KEY_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKey:
    """A key in the store. `until` is when an old one can be deleted."""

    id: str
    flags: tuple[str, ...]
    in_use: bool
    until: datetime | None


class Switch:
    def __init__(self, store: KeyStore) -> None:
        self.store = store

    def current(self) -> EdgeKey | None:
        return read_edge_key()

    def stored_keys(self) -> list[StoredKey]:
        current, stored = self.current(), self.store.read()
        return [
            StoredKey(
                id=id,
                flags=tuple(value.split()[1:]),
                in_use=current is not None and current.id == id,
                until=_time(stored.get(f"{_OLD}{id}")),
            )
            for name, value in sorted(stored.items())
            if (id := name.removeprefix(_KEY)) != name
        ]

    def flags(self, key: EdgeKey) -> tuple[str, ...]:
        return tuple(self.store.read().get(f"{_KEY}{key.id}", "").split()[1:])

    def add(self, flags: tuple[str, ...]) -> EdgeKey:
        """A new key that the edge accepts, and that no function signs with."""
        key = EdgeKey(secrets.token_hex(_ID_BYTES), secrets.token_hex(_KEY_BYTES))
        self._delete_at(key, clock.now() + UNUSED_KEYS_LIVE)
        self.set_flags(key, flags)
        return key

    def set_flags(self, key: EdgeKey, flags: tuple[str, ...]) -> None:
        self.store.put(f"{_KEY}{key.id}", " ".join([key.key, *flags]))

    def use(self, key: EdgeKey | None) -> StoredKey | None:
        """Let functions sign with `key`, or with none. Returns the key that is old from now on."""
        before, now = self.current(), clock.now()
        if before is not None:
            longest = max(settings().upload_url_seconds, settings().download_url_seconds)
            self._delete_at(before, now + FUNCTIONS_CACHE_IT_FOR + timedelta(seconds=longest))
        put_edge_key(key)
        if key is not None:
            self.store.delete(f"{_OLD}{key.id}")
        return next((one for one in self.stored_keys() if before and one.id == before.id), None)

    def _delete_at(self, key: EdgeKey, moment: datetime) -> None:
        self.store.put(f"{_OLD}{key.id}", str(clock.to_epoch_seconds(moment) + 1))

    def delete(self, id: str) -> None:
        """The edge refuses every address of the key from now on."""
        self.store.delete(f"{_KEY}{id}")
        self.store.delete(f"{_OLD}{id}")

    def delete_expired(self) -> list[str]:
        """Delete the old keys whose addresses have expired. Returns their ids."""
        now = clock.now()
        due = [
            key.id
            for key in self.stored_keys()
            if not key.in_use and key.until and key.until <= now
        ]
        for id in due:
            self.delete(id)
        return due


def _time(epoch_s: str | None) -> datetime | None:
    return clock.from_ms(int(epoch_s) * 1000) if epoch_s and epoch_s.isdigit() else None
