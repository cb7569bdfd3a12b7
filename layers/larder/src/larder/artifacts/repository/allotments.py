"""The allotments of owners: how `MaxStoredBytes` limits what a deployment stores (docs/decisions/quota.md).

One item counts the bytes that are allotted to all owners; draws keep it within `MaxStoredBytes`. An owner's totals hold
the owner's part in `allotted_bytes`, and in `free_bytes` what is left of it. An upload takes its bytes from there with
the write that counts it. Only an upload that finds too few bytes there draws more, in one transaction of both
items.

The last tenth of the limit is for owners who store less than a thousandth of it, so that others cannot keep them from
storing anything (docs/decisions/quota.md).
"""

from collections.abc import Mapping

from larder.artifacts.models import Totals
from larder.artifacts.repository.totals import (
    check_share,
    has_quota,
    has_share,
    parse_totals,
    totals_key,
)
from larder.concurrency import attempts
from larder.conditions import Condition, at_least, at_most, equals, exists, missing
from larder.errors import StorageFull, TryAgain
from larder.settings import settings
from larder.tables import ARTIFACTS, Item, Key, Write, commit

_DEPLOYMENT: Key = ("#deployment", "#allotted")
_ASSUMED: Item = {"counted": True}
"""What an upload assumes of the deployment before it reads it: everything is counted, and there is space."""

_LEAST_AHEAD = 16 * 10**6
_MOST_AHEAD = 10**9
_NO_LIMIT = 10**18


def draw(
    owner: str,
    item: Item,
    added: Mapping[str, int],
    *,
    quota_bytes: int | None,
    share_bytes: int | None,
    due: Mapping[str, str | int],
) -> Totals | None:
    """Draw bytes from the deployment, and count an upload, in one transaction.

    `item` holds the totals as they were read. `added` and `due` are what the count of the upload writes. `share_bytes`
    is the most that own scopes may take, None for an upload to the shared scope. Returns the new totals, or None if the
    quota is full. Raises ScopesFull, StorageFull, TryAgain.
    """
    deployment = _ASSUMED
    size_bytes = added["size_bytes"]
    for attempt in attempts(pausing_after=2):
        if attempt:
            item, deployment = _read(owner)
        stored_bytes = item.get("size_bytes", 0)
        if quota_bytes is not None and stored_bytes > quota_bytes - size_bytes:
            return None
        if share_bytes is not None:
            totals = parse_totals([item] if "size_bytes" in item else [])
            check_share(totals, size_bytes, share_bytes)
        is_allotted = "allotted_bytes" in item
        free_bytes = item["free_bytes"] if is_allotted else -stored_bytes
        # Stored bytes without an allotment: version 0.1.0 or a rebuild of the index counted them. They are not refused.
        owed_bytes = max(0, -free_bytes)
        needed_bytes = max(0, size_bytes - max(0, free_bytes))
        limit = _limit(stored_bytes + size_bytes)
        most_bytes = _available(deployment, owed_bytes, limit)
        if needed_bytes > most_bytes:
            raise StorageFull
        drawn_bytes = max(needed_bytes, min(needed_bytes + _ahead(stored_bytes), most_bytes))
        grown_bytes = owed_bytes + drawn_bytes
        if is_allotted:
            add = {**added, "allotted_bytes": grown_bytes, "free_bytes": grown_bytes - size_bytes}
            when = exists("allotted_bytes") & at_least(free_bytes=size_bytes - grown_bytes)
            if quota_bytes is not None:
                # Uploads that found enough bytes free may have been counted since the read.
                when &= has_quota(size_bytes, quota_bytes)
            if share_bytes is not None:
                when &= has_share(size_bytes, share_bytes)
            count = ARTIFACTS.update(*totals_key(owner), add=add, set_if_missing=due, when=when)
        else:
            add = {**added, "allotted_bytes": grown_bytes}
            del add["free_bytes"]
            first = {"free_bytes": drawn_bytes - size_bytes}
            when = missing("allotted_bytes") & _stores(item)
            key = totals_key(owner)
            count = ARTIFACTS.update(*key, set=first, add=add, set_if_missing=due, when=when)
        if commit(count, _taking(deployment, owed_bytes, drawn_bytes, limit)):
            artifacts = item.get("artifacts", 0) + added["artifacts"]
            return Totals(size_bytes=stored_bytes + size_bytes, artifacts=artifacts)
    raise TryAgain


def reconcile_allotment(owner: str) -> None:
    """Make the allotment match what the owner stores, and give back what is left over. Raises TryAgain.

    Does nothing if the owner's totals change meanwhile: their next upload or the next sweep reconciles them.
    """
    item, _ = _read(owner)
    if "size_bytes" not in item:
        return
    stored_bytes, old_bytes = item["size_bytes"], item.get("allotted_bytes", 0)
    surplus_bytes = old_bytes - stored_bytes
    kept_bytes = max(0, surplus_bytes)
    if kept_bytes > 2 * _ahead(stored_bytes):
        kept_bytes = _ahead(stored_bytes)
    new = {"allotted_bytes": stored_bytes + kept_bytes, "free_bytes": kept_bytes}
    if new.items() <= item.items():
        return
    is_read = missing("allotted_bytes")
    if "allotted_bytes" in item:
        is_read = equals(allotted_bytes=old_bytes, free_bytes=item["free_bytes"])
    returned = {"allotted_bytes": new["allotted_bytes"] - old_bytes}
    commit(
        ARTIFACTS.update(*totals_key(owner), set=new, when=is_read & _stores(item)),
        ARTIFACTS.update(*_DEPLOYMENT, add=returned),
    )


def delete_with_allotment(owner: str) -> bool:
    """Delete the totals of an owner who stores nothing, and give their allotment back. False if they are not zero."""
    for _ in attempts():
        item, _ = _read(owner)
        if not item:
            return True
        totals = parse_totals([item])
        if (totals.size_bytes, totals.artifacts) != (0, 0):
            return False
        old_bytes = item.get("allotted_bytes", 0)
        unchanged = missing("allotted_bytes")
        if "allotted_bytes" in item:
            unchanged = equals(allotted_bytes=old_bytes)
        stores_nothing = equals(size_bytes=0, artifacts=0)
        if commit(
            ARTIFACTS.delete(*totals_key(owner), when=unchanged & stores_nothing),
            ARTIFACTS.update(*_DEPLOYMENT, add={"allotted_bytes": -old_bytes}),
        ):
            return True
    raise TryAgain


def must_reconcile_all() -> bool:
    """Whether to reconcile all allotments: they were never counted, or eight tenths of the limit are allotted."""
    limit = settings().max_stored_bytes
    item = ARTIFACTS.get_many([_DEPLOYMENT])
    deployment = item[0] if item else {}
    allotted_bytes = deployment.get("allotted_bytes", 0)
    return not deployment.get("counted") or bool(limit and allotted_bytes > limit - limit // 5)


def set_counted() -> None:
    """From now on, uploads can use all of the limit: the allotments include everything that is stored."""
    done = {"counted": True, "early_bytes": None}
    commit(ARTIFACTS.update(*_DEPLOYMENT, set=done, add={"allotted_bytes": 0}))


def read_allotted() -> int:
    """The bytes that are allotted to all owners."""
    return sum(item.get("allotted_bytes", 0) for item in ARTIFACTS.get_many([_DEPLOYMENT]))


def _read(owner: str) -> tuple[Item, Item]:
    """The owner's totals and the deployment's item; empty ones if they do not exist."""
    found = {item["owner"]: item for item in ARTIFACTS.get_many([totals_key(owner), _DEPLOYMENT])}
    return found.get(owner, {}), found.get(str(_DEPLOYMENT[0]), {})


def _ahead(stored_bytes: int) -> int:
    """How many bytes an owner draws ahead, so that few uploads have to draw: a sixteenth of what the owner stores."""
    most = settings().max_stored_bytes // 1000 or _MOST_AHEAD
    return min(max(stored_bytes // 16, _LEAST_AHEAD), most, _MOST_AHEAD)


def _limit(stored_bytes: int) -> int:
    """How much all owners can draw, if the one who draws then stores so many bytes. 0 for no limit."""
    limit = settings().max_stored_bytes
    return limit if stored_bytes <= limit // 1000 else limit - limit // 10


def _available(deployment: Item, owed_bytes: int, limit: int) -> int:
    """The bytes that one owner can draw for new uploads."""
    if not limit or deployment is _ASSUMED:
        return _NO_LIMIT
    if not deployment.get("counted"):
        return _early_limit() - int(deployment.get("early_bytes", 0))
    return limit - int(deployment["allotted_bytes"]) - owed_bytes


def _early_limit() -> int:
    """What uploads can draw before the first sweep has counted what is stored: a tenth of the limit."""
    return settings().max_stored_bytes // 10


def _taking(deployment: Item, owed_bytes: int, drawn_bytes: int, limit: int) -> Write:
    add = {"allotted_bytes": owed_bytes + drawn_bytes}
    when: Condition | None = None
    if limit and not deployment.get("counted"):
        add["early_bytes"] = drawn_bytes
        within = at_most(early_bytes=_early_limit() - drawn_bytes)
        when = missing("counted") & (missing("early_bytes") | within)
    elif limit:
        when = equals(counted=True)
        if drawn_bytes:
            when &= at_most(allotted_bytes=limit - owed_bytes - drawn_bytes)
    return ARTIFACTS.update(*_DEPLOYMENT, add=add, when=when)


def _stores(item: Item) -> Condition:
    """Condition: the owner stores as many bytes as in this item."""
    if "size_bytes" in item:
        return equals(size_bytes=item["size_bytes"])
    return missing("size_bytes")
