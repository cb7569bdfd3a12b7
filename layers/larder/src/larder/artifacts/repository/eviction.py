"""Eviction: list artifacts by last use, and take some out of the index and the totals."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from larder.artifacts.models import Upload
from larder.artifacts.records import Eviction, Unused
from larder.artifacts.repository.index import (
    artifact_key,
    discarded_put,
    parse_upload,
    read_artifacts,
    used_at,
)
from larder.artifacts.repository.partitions import merged
from larder.artifacts.repository.table import partitions
from larder.artifacts.repository.totals import totals_change, totals_key
from larder.clock import from_ms, to_ms
from larder.conditions import above, at_most, equals, exists, missing
from larder.tables import ARTIFACTS, Write, commit, failed_writes

_NAMES = {False: "evicted", True: "scoped_evicted"}
"""How the totals name an eviction in the shared scope, and one in own scopes."""


def least_recently_used(owner: str, *, page: int) -> Iterator[Unused]:
    """The owner's artifacts, least recently used first: first those in own scopes, then those in the shared one.

    Reads pages as they are needed.

    The index lags behind the table by milliseconds, so a write has to check that the artifact is unchanged.
    """
    queries = [
        {"where": equals(owner=partition), "index": "by_last_use"}
        for partition in partitions(owner)
    ]
    for item in merged(queries, by="last_used_at", page_size=page):
        yield Unused(
            upload=parse_upload(owner, item["hash"], item["upload_id"]),
            size_bytes=item["size_bytes"],
            last_used_ms=item["last_used_at"],
        )


def evict(
    owner: str, unused: Sequence[Unused], *, above_bytes: int | None, now: datetime
) -> frozenset[Upload] | None:
    """Delete these artifacts and subtract them from the totals.

    If some have been used, replaced or deleted in the meantime, nothing is changed and those are returned. With
    `above_bytes`, the totals are in the same transaction: returns None, and changes nothing, if the owner does not
    store more than that any more. Without it, the totals follow, and are too high until then, and after a crash until
    the daily check. No upload of the team, which all write the totals, then conflicts. Raises TryAgain.
    """
    scoped = [artifact for artifact in unused if artifact.upload.scope is not None]
    count = ARTIFACTS.update(
        *totals_key(owner),
        set=_noted(unused, now),
        add=totals_change(-_size(unused), -len(unused), scoped_bytes=-_size(scoped)),
        when=None if above_bytes is None else above(size_bytes=above_bytes),
    )
    # Only in the background is there time for the versions, without which the sweep has to list them.
    known = read_artifacts([each.upload for each in unused]) if above_bytes is None else {}
    deletes = [_delete_if_unused(artifact) for artifact in unused]
    discarded = [discarded_put(each.upload, now, of=known.get(each.upload)) for each in unused]
    together = [] if above_bytes is None else [count]
    failed = failed_writes(*together, *deletes, *discarded)
    if count in failed:
        return None
    if not failed and above_bytes is None:
        commit(count)
    return frozenset(
        artifact.upload
        for artifact, delete in zip(unused, deletes, strict=True)
        if delete in failed
    )


def _size(unused: Sequence[Unused]) -> int:
    return sum(artifact.size_bytes for artifact in unused)


def read_eviction(owner: str, *, scoped: bool) -> Eviction | None:
    """The last eviction of artifacts in the shared scope, or in own scopes. None if there was none."""
    totals, name = ARTIFACTS.get(*totals_key(owner)) or {}, _NAMES[scoped]
    if f"{name}_at" not in totals:
        return None
    return Eviction(from_ms(totals[f"{name}_at"]), from_ms(totals[f"{name}_before"]))


def _noted(unused: Sequence[Unused], now: datetime) -> dict[str, int]:
    """What the totals note of an eviction. The update that counts takes it along, so it costs no further write."""
    noted: dict[str, int] = {}
    for scoped, name in _NAMES.items():
        uses = [
            used_at(artifact.upload, artifact.last_used_ms)
            for artifact in unused
            if (artifact.upload.scope is not None) is scoped
        ]
        if uses:
            noted |= {f"{name}_at": to_ms(now), f"{name}_before": to_ms(max(uses))}
    return noted


def _delete_if_unused(unused: Unused) -> Write:
    upload = unused.upload
    as_listed = equals(upload_id=upload.id, last_used_at=unused.last_used_ms)
    return ARTIFACTS.delete(*artifact_key(upload), when=as_listed)


def claim_eviction(owner: str, *, now: datetime, until: datetime) -> bool:
    """Claim the eviction for the caller. Only one caller has the claim until `until` or the end of the eviction."""
    claim = {"evicting_until": to_ms(until)}
    unclaimed = missing("evicting_until") | at_most(evicting_until=to_ms(now))
    return commit(ARTIFACTS.update(*totals_key(owner), set=claim, when=unclaimed))


def end_eviction(owner: str) -> None:
    claimed = exists("evicting_until")
    commit(ARTIFACTS.update(*totals_key(owner), set={"evicting_until": None}, when=claimed))
