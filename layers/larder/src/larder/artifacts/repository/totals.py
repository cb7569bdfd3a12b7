"""The totals of an owner: what is stored, counted beside the index, and the uploads of the last days."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime

from larder.artifacts.models import IndexSum, Totals
from larder.artifacts.repository.items import shard
from larder.clock import to_epoch_seconds
from larder.conditions import at_most, equals, exists, missing
from larder.tables import ARTIFACTS, Item, Key, commit, commit_returning
from larder.usage.uploads import Uploads

TOTALS = "#totals"

_SUMMED_BETWEEN_LOOKS = 1000

_UPLOADS = "uploads#"
_UPLOADED_BYTES = "uploaded_bytes#"


class OutOfTime(Exception):
    """There was no time for all that was to be read."""


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
    """The totals of each of many owners: for the operator, never on a request."""
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
    """Count bytes, artifacts and what was uploaded on a day in (or, negative, out).

    Returns what it comes to then; None, and nothing done, when the bytes would pass the quota. Raises TryAgain.
    """
    added = {"size_bytes": size_bytes, "artifacts": artifacts}
    if uploaded is not None:
        day, uploads = uploaded
        added |= {f"{_UPLOADS}{day}": uploads.count, f"{_UPLOADED_BYTES}{day}": uploads.size_bytes}
    has_room = None
    if quota_bytes is not None and size_bytes > 0:
        if size_bytes > quota_bytes:
            return None
        has_room = missing("size_bytes") | at_most(size_bytes=quota_bytes - size_bytes)
    # New totals are due to be checked at once; then the sweep says when again.
    due = {"sweep_shard": shard(owner), "sweep_at": 0}
    count = ARTIFACTS.update(*totals_key(owner), add=added, set_if_missing=due, when=has_room)
    done, item = commit_returning(count)
    return parse_totals([item]) if done else None


def forget_totals(owner: str) -> bool:
    """Delete the totals of an owner who stores nothing; False when they say otherwise."""
    stores_nothing = missing("size_bytes") | equals(size_bytes=0, artifacts=0)
    return commit(ARTIFACTS.delete(*totals_key(owner), when=stores_nothing))


def forget_uploads(owner: str, day: date) -> None:
    """The usage table has the day's uploads: the totals need not keep them."""
    gone = {f"{_UPLOADS}{day}": None, f"{_UPLOADED_BYTES}{day}": None}
    commit(ARTIFACTS.update(*totals_key(owner), set=gone, when=exists("size_bytes")))


def replace_totals(owner: str, totals: Totals, *, was: Totals) -> bool:
    """Set the owner's totals. False when they are no longer what they were."""
    unchanged = equals(size_bytes=was.size_bytes, artifacts=was.artifacts)
    if was == Totals():
        unchanged = missing("size_bytes") | unchanged
    becomes = {"size_bytes": totals.size_bytes, "artifacts": totals.artifacts}
    return commit(ARTIFACTS.update(*totals_key(owner), set=becomes, when=unchanged))


def sum_index(owner: str, *, has_time: Callable[[], bool] = lambda: True) -> IndexSum:
    """What the owner's items in the index come to. Raises OutOfTime when `has_time` says so.

    Reads all of them, however many, and keeps none: for background work and the operator, never on a request.
    """
    items = ARTIFACTS.query(equals(owner=owner), only=("hash", "size_bytes", "last_used_at"))
    size_bytes = artifacts = unlisted = 0
    for number, item in enumerate(items):
        if number % _SUMMED_BETWEEN_LOOKS == 0 and not has_time():
            raise OutOfTime
        if "#" not in item["hash"]:
            size_bytes += item["size_bytes"]
            artifacts += 1
            unlisted += "last_used_at" not in item
    return IndexSum(totals=Totals(size_bytes=size_bytes, artifacts=artifacts), unlisted=unlisted)


def check_totals(owner: str, *, correct: bool, drift: Totals, next_at: datetime) -> None:
    """Note what a check of the totals found: `drift` beyond the index, taken off when `correct`, else remembered."""
    taken_off, remembered = (drift, Totals()) if correct else (Totals(), drift)
    note = {
        "sweep_at": to_epoch_seconds(next_at),
        "drift_bytes": remembered.size_bytes,
        "drift_artifacts": remembered.artifacts,
    }
    less = {"size_bytes": -taken_off.size_bytes, "artifacts": -taken_off.artifacts}
    commit(ARTIFACTS.update(*totals_key(owner), set=note, add=less))
