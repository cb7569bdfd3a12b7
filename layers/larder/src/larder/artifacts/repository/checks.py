"""Check the totals of an owner: add up the index, and correct them."""

from collections.abc import Callable, Sequence
from datetime import date, datetime

from larder.artifacts.models import Totals, parse_index_key
from larder.artifacts.records import IndexSum
from larder.artifacts.repository.totals import UPLOADED_BYTES, UPLOADS, totals_change, totals_key
from larder.clock import to_epoch_seconds
from larder.conditions import equals, exists, missing
from larder.tables import ARTIFACTS, Item, commit

_ITEMS_PER_TIME_CHECK = 1000

_SUMMED = ("hash", "size_bytes", "last_used_at", "uploaded_at")


class OutOfTime(Exception):
    """Time ran out before everything was read."""


def delete_uploads(owner: str, day: date) -> None:
    """Delete the day's uploads from the totals, once the usage table has them."""
    gone = {f"{UPLOADS}{day}": None, f"{UPLOADED_BYTES}{day}": None}
    commit(ARTIFACTS.update(*totals_key(owner), set=gone, when=exists("size_bytes")))


def replace_totals(owner: str, totals: Totals, *, old: Totals) -> bool:
    """Set the owner's totals. False if they are not `old` any more."""
    unchanged = equals(size_bytes=old.size_bytes, artifacts=old.artifacts)
    if old == Totals():
        unchanged = missing("size_bytes") | unchanged
    new = {
        "size_bytes": totals.size_bytes,
        "artifacts": totals.artifacts,
        "scoped_bytes": totals.scoped_bytes or None,
    }
    freed = {"free_bytes": old.size_bytes - totals.size_bytes}
    return commit(ARTIFACTS.update(*totals_key(owner), set=new, add=freed, when=unchanged))


def sum_index(
    owner: str,
    *,
    has_time: Callable[[], bool] = lambda: True,
    see: Callable[[Item], None] = lambda _item: None,
    seen: Sequence[str] = (),
) -> IndexSum:
    """Add up the owner's artifacts in the index. Raises OutOfTime when `has_time` returns False.

    Calls `see` with the item of each, which has the attributes `seen`, too. Reads all of them, one page at a time. For
    background work and the operator, never on a request.
    """
    items = ARTIFACTS.query(equals(owner=owner), only=list(dict.fromkeys([*_SUMMED, *seen])))
    size_bytes = artifacts = unlisted = undated = 0
    scopes: dict[str, tuple[int, int]] = {}
    for number, item in enumerate(items):
        if number % _ITEMS_PER_TIME_CHECK == 0 and not has_time():
            raise OutOfTime
        if "#" not in item["hash"]:
            size_bytes += item["size_bytes"]
            artifacts += 1
            unlisted += "last_used_at" not in item
            undated += "uploaded_at" not in item
            _, scope = parse_index_key(item["hash"])
            if scope is not None:
                bytes_before, artifacts_before = scopes.get(scope, (0, 0))
                scopes[scope] = (bytes_before + item["size_bytes"], artifacts_before + 1)
            see(item)
    scoped_bytes = sum(of_scope for of_scope, _ in scopes.values())
    totals = Totals(size_bytes=size_bytes, artifacts=artifacts, scoped_bytes=scoped_bytes)
    return IndexSum(totals=totals, unlisted=unlisted, undated=undated, scopes=scopes)


def check_totals(owner: str, *, correct: bool, drift: Totals, next_at: datetime) -> None:
    """Record a check of the totals. `drift` is their excess over the index: subtracted if `correct`, else recorded."""
    excess, remembered = (drift, Totals()) if correct else (Totals(), drift)
    check = {
        "sweep_at": to_epoch_seconds(next_at),
        "drift_bytes": remembered.size_bytes,
        "drift_artifacts": remembered.artifacts,
        "drift_scoped_bytes": remembered.scoped_bytes or None,
    }
    correction = totals_change(
        -excess.size_bytes, -excess.artifacts, scoped_bytes=-excess.scoped_bytes
    )
    commit(ARTIFACTS.update(*totals_key(owner), set=check, add=correction))
