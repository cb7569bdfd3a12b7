"""The totals of an owner: stored bytes and artifacts, and the uploads of the last days."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime

from larder.artifacts.models import IndexSum, Totals
from larder.artifacts.repository.table import shard
from larder.clock import to_epoch_seconds
from larder.conditions import at_least, at_most, equals, exists, missing
from larder.tables import ARTIFACTS, Item, Key, commit, commit_returning
from larder.usage.uploads import Uploads

TOTALS = "#totals"

_ITEMS_PER_TIME_CHECK = 1000

_UPLOADS = "uploads#"
_UPLOADED_BYTES = "uploaded_bytes#"


class OutOfTime(Exception):
    """Time ran out before everything was read."""


def totals_key(owner: str) -> Key:
    return owner, TOTALS


def parse_totals(items: Iterable[Item]) -> Totals:
    for item in items:
        if item["hash"] == TOTALS:
            return Totals(
                size_bytes=item["size_bytes"], artifacts=item["artifacts"], uploads=_uploads(item)
            )
    return Totals()


def _uploads(totals: Item) -> dict[date, Uploads]:
    days = [name.removeprefix(_UPLOADS) for name in totals if name.startswith(_UPLOADS)]
    return {
        date.fromisoformat(day): Uploads(
            count=totals[_UPLOADS + day], size_bytes=totals[_UPLOADED_BYTES + day]
        )
        for day in days
    }


def read_totals(owner: str) -> Totals:
    return parse_totals(ARTIFACTS.get_many([totals_key(owner)]))


def read_totals_of(owners: Sequence[str]) -> dict[str, Totals]:
    """The totals of many owners. For the operator, never on a request."""
    found: dict[str, Totals] = dict.fromkeys(owners, Totals())
    for item in ARTIFACTS.get_many([totals_key(owner) for owner in owners]):
        found[item["owner"]] = parse_totals([item])
    return found


def add_to_totals(
    owner: str,
    size_bytes: int,
    artifacts: int,
    *,
    quota_bytes: int | None,
    uploaded: tuple[date, Uploads] | None = None,
) -> Totals | None:
    """Add bytes, artifacts and the uploads of a day to the totals. Negative numbers subtract.

    Bytes of an upload, which `uploaded` is set for, also have to fit into `MaxStoredBytes`. Returns the new totals.
    Returns None, and changes nothing, if the bytes would exceed the quota. Raises StorageFull, TryAgain.
    """
    added = {"size_bytes": size_bytes, "artifacts": artifacts, "free_bytes": -size_bytes}
    if uploaded is not None:
        day, uploads = uploaded
        added |= {f"{_UPLOADS}{day}": uploads.count, f"{_UPLOADED_BYTES}{day}": uploads.size_bytes}
    has_room = None
    if quota_bytes is not None and size_bytes > 0:
        if size_bytes > quota_bytes:
            return None
        has_room = missing("size_bytes") | at_most(size_bytes=quota_bytes - size_bytes)
    # New totals are due for a check at once. The sweep then sets the time of the next one.
    due: dict[str, str | int] = {"sweep_shard": shard(owner), "sweep_at": 0}
    draws = uploaded is not None and size_bytes > 0
    when = has_room
    if draws:
        has_free = exists("allotted_bytes") & at_least(free_bytes=size_bytes)
        when = has_free if has_room is None else has_room & has_free
    count = ARTIFACTS.update(*totals_key(owner), add=added, set_if_missing=due, when=when)
    done, item = commit_returning(count)
    if done:
        return parse_totals([item])
    if not draws:
        return None
    # Imported here, because requests start faster without it.
    from larder.artifacts.repository.allotments import draw

    return draw(owner, item, added, quota_bytes=quota_bytes, due=due)


def delete_uploads(owner: str, day: date) -> None:
    """Delete the day's uploads from the totals, once the usage table has them."""
    gone = {f"{_UPLOADS}{day}": None, f"{_UPLOADED_BYTES}{day}": None}
    commit(ARTIFACTS.update(*totals_key(owner), set=gone, when=exists("size_bytes")))


def replace_totals(owner: str, totals: Totals, *, old: Totals) -> bool:
    """Set the owner's totals. False if they are not `old` any more."""
    unchanged = equals(size_bytes=old.size_bytes, artifacts=old.artifacts)
    if old == Totals():
        unchanged = missing("size_bytes") | unchanged
    new = {"size_bytes": totals.size_bytes, "artifacts": totals.artifacts}
    freed = {"free_bytes": old.size_bytes - totals.size_bytes}
    return commit(ARTIFACTS.update(*totals_key(owner), set=new, add=freed, when=unchanged))


def sum_index(owner: str, *, has_time: Callable[[], bool] = lambda: True) -> IndexSum:
    """Add up the owner's artifacts in the index. Raises OutOfTime when `has_time` returns False.

    Reads all of them, one page at a time. For background work and the operator, never on a request.
    """
    items = ARTIFACTS.query(equals(owner=owner), only=("hash", "size_bytes", "last_used_at"))
    size_bytes = artifacts = unlisted = 0
    for number, item in enumerate(items):
        if number % _ITEMS_PER_TIME_CHECK == 0 and not has_time():
            raise OutOfTime
        if "#" not in item["hash"]:
            size_bytes += item["size_bytes"]
            artifacts += 1
            unlisted += "last_used_at" not in item
    return IndexSum(totals=Totals(size_bytes=size_bytes, artifacts=artifacts), unlisted=unlisted)


def check_totals(owner: str, *, correct: bool, drift: Totals, next_at: datetime) -> None:
    """Record a check of the totals. `drift` is their excess over the index: subtracted if `correct`, else recorded."""
    excess, remembered = (drift, Totals()) if correct else (Totals(), drift)
    check = {
        "sweep_at": to_epoch_seconds(next_at),
        "drift_bytes": remembered.size_bytes,
        "drift_artifacts": remembered.artifacts,
    }
    correction = {
        "size_bytes": -excess.size_bytes,
        "artifacts": -excess.artifacts,
        "free_bytes": excess.size_bytes,
    }
    commit(ARTIFACTS.update(*totals_key(owner), set=check, add=correction))
