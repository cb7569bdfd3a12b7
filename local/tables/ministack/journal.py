"""The tables on disk: a journal of every acknowledged write, and snapshots.

A record contains the *after-images* of the items that one request changed (the item, or that it was deleted), not the
request. Replaying it twice, or after a later snapshot, changes nothing, and does not depend on conditions or clocks.
All items of a transaction or batch are in one record, so a crash keeps all of them or none.

Files of generation N:
    journal-N.jsonl     records, each `<crc32> <json>` on its own line
    snapshot-N.jsonl    every item as of the start of journal-N or later; complete or absent
The state is the newest snapshot, plus every journal of its generation and later, replayed in order. A compaction begins
a new journal *first*. Then it writes the snapshot under another name and renames it when it is complete. A crash in
between leaves the older snapshot with both journals, so nothing is lost.

A record goes to the operating system before the reply to its request, so a kill -9 of the process loses no acknowledged
write. A power cut may lose some, unless `fsync` is on, which costs a disk flush for every write.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Item = dict[str, Any]
"""An item or its key in DynamoDB's typed JSON: `{"pk": {"S": "..."}}`."""

_GENERATION = re.compile(r"(journal|snapshot)-(\d+)\.jsonl")
_SNAPSHOT_ITEMS_A_RECORD = 200


class DamagedJournal(Exception):
    """A file contains a broken record followed by valid ones. A crash cannot cause that, so recovery stops."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one item: `item` is the new state, or None if the item under `key` was deleted."""

    table: str
    key: Item
    item: Item | None


class Journal:
    """The files in one folder. Not safe for two processes at once: the server holds a lock on the folder."""

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        self._folder = folder
        self._fsync = fsync
        self._generation = 0
        self._file = -1
        self.size_bytes = 0
        """Bytes written since the last compaction began."""

    def recover(self) -> Iterator[Change]:
        """Every change to apply to empty tables, oldest first. Skips a torn last record. Raises DamagedJournal."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left_over in self._folder.glob("*.tmp"):
            left_over.unlink()
        journals, snapshots = self._generations("journal"), self._generations("snapshot")
        newest = max(snapshots, default=0)
        self._generation = max([newest, *journals])
        if snapshots:
            yield from _read_changes(self._path("snapshot", newest))
        for generation in sorted(journals):
            if generation >= newest:
                yield from _read_changes(self._path("journal", generation))

    def begin(self) -> None:
        """Start the journal of the next generation. `compact` writes its snapshot."""
        if self._file >= 0:
            os.close(self._file)
        self._generation += 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._file = os.open(self._path("journal", self._generation), flags, 0o600)
        self.size_bytes = 0

    def append(self, changes: list[Change]) -> None:
        """Write one record. After this returns, a kill of the process does not lose it. Raises OSError."""
        line = _encode(changes)
        written = os.write(self._file, line)
        if written != len(line):
            # Only a full disk causes this. No record may follow a torn one.
            os.ftruncate(self._file, self.size_bytes)
            raise OSError("the journal's disk is full")
        if self._fsync:
            os.fsync(self._file)
        self.size_bytes += written

    def compact(self, items: Iterable[tuple[str, Item, Item]]) -> Generator[None, None, None]:
        """Write (table, key, item) of every item as the snapshot of this generation, then delete older files.

        Call `begin` just before reading the items. This yields regularly, so that a server can handle requests in
        between. Their changes are in the journal of this generation, which is replayed after the snapshot.
        """
        generation = self._generation
        path = self._path("snapshot", generation)
        temporary = path.with_suffix(".tmp")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            batch: list[Change] = []
            for table, key, item in items:
                batch.append(Change(table, key, item))
                if len(batch) == _SNAPSHOT_ITEMS_A_RECORD:
                    file.write(_encode(batch))
                    batch.clear()
                    yield
            file.write(_encode(batch))
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        _sync_folder(self._folder)
        for kind in ("snapshot", "journal"):
            for older in self._generations(kind):
                if older < generation:
                    self._path(kind, older).unlink()

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _generations(self, kind: str) -> list[int]:
        found = (_GENERATION.fullmatch(path.name) for path in self._folder.iterdir())
        return [int(match[2]) for match in found if match and match[1] == kind]

    def _path(self, kind: str, generation: int) -> Path:
        return self._folder / f"{kind}-{generation}.jsonl"


def _encode(changes: list[Change]) -> bytes:
    record = [[change.table, change.key, change.item] for change in changes]
    text = json.dumps(record, separators=(",", ":")).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _decode(line: bytes) -> list[Change] | None:
    checksum, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or b"%08x" % zlib.crc32(text) != checksum:
        return None
    return [Change(table, key, item) for table, key, item in json.loads(text)]


def _read_changes(path: Path) -> Iterator[Change]:
    broken_at = None
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if broken_at is not None:
                raise DamagedJournal(f"{path}: line {broken_at} is damaged, and more lines follow")
            changes = _decode(line)
            if changes is None:
                broken_at = number
            else:
                yield from changes


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
