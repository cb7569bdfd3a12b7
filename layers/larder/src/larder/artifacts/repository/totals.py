"""The totals of an owner: stored bytes and artifacts, and the uploads of the last days."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date

from larder.artifacts.models import Totals
from larder.artifacts.repository.table import shard
from larder.conditions import Condition, at_least, at_most, exists, missing
from larder.errors import ScopesFull
from larder.settings import settings
from larder.tables import ARTIFACTS, Item, Key, commit, commit_returning
from larder.usage.uploads import Uploads

TOTALS = "#totals"

UPLOADS = "uploads#"
UPLOADED_BYTES = "uploaded_bytes#"


def totals_key(owner: str) -> Key:
    return owner, TOTALS


def parse_totals(items: Iterable[Item]) -> Totals:
    for item in items:
        if item["hash"] == TOTALS:
            return Totals(
                size_bytes=item["size_bytes"],
                artifacts=item["artifacts"],
                scoped_bytes=item.get("scoped_bytes", 0),
                uploads=_uploads(item),
            )
    return Totals()


def _uploads(totals: Item) -> dict[date, Uploads]:
    days = [name.removeprefix(UPLOADS) for name in totals if name.startswith(UPLOADS)]
    return {
        date.fromisoformat(day): Uploads(
            count=totals[UPLOADS + day], size_bytes=totals[UPLOADED_BYTES + day]
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
    scoped: bool = False,
    uploaded: tuple[date, Uploads] | None = None,
) -> None:
    """Add bytes, artifacts and the uploads of a day to the totals, without limits. Negative numbers subtract.

    `scoped` is for bytes in own scopes.
    """
    added = _added(size_bytes, artifacts, scoped, uploaded)
    commit(ARTIFACTS.update(*totals_key(owner), add=added, set_if_missing=_due(owner)))


def try_add_to_totals(
    owner: str,
    size_bytes: int,
    artifacts: int,
    *,
    quota_bytes: int | None,
    scoped: bool = False,
    uploaded: tuple[date, Uploads] | None = None,
    draw: Callable[..., Totals | None] | None = None,
) -> Totals | None:
    """The same within the limits, for an upload. `size_bytes` is positive.

    With `draw`, the bytes also have to fit into `MaxStoredBytes`: it is called if the owner's allotment is too small.
    Bytes in own scopes also have to fit into `ScopedShare` of the quota.

    Returns the new totals. Returns None, and changes nothing, if the bytes would exceed the quota. Raises ScopesFull if
    they would exceed that share, StorageFull, TryAgain.
    """
    added, due = _added(size_bytes, artifacts, scoped, uploaded), _due(owner)
    when = share_bytes = None
    if quota_bytes is not None:
        if size_bytes > quota_bytes:
            return None
        when = has_quota(size_bytes, quota_bytes)
        if scoped:
            share_bytes = scoped_share(quota_bytes)
            check_share(Totals(), size_bytes, share_bytes)
            when &= has_share(size_bytes, share_bytes)
    if draw is not None:
        has_free = exists("allotted_bytes") & at_least(free_bytes=size_bytes)
        when = has_free if when is None else when & has_free
    count = ARTIFACTS.update(*totals_key(owner), add=added, set_if_missing=due, when=when)
    done, item = commit_returning(count)
    if done:
        return parse_totals([item])
    if share_bytes is not None:
        check_share(parse_totals([item] if "size_bytes" in item else []), size_bytes, share_bytes)
    if draw is None:
        return None
    return draw(owner, item, added, quota_bytes=quota_bytes, share_bytes=share_bytes, due=due)


def _added(
    size_bytes: int, artifacts: int, scoped: bool, uploaded: tuple[date, Uploads] | None
) -> dict[str, int]:
    added = totals_change(size_bytes, artifacts, scoped_bytes=size_bytes if scoped else 0)
    if uploaded is None:
        return added
    day, uploads = uploaded
    return added | {f"{UPLOADS}{day}": uploads.count, f"{UPLOADED_BYTES}{day}": uploads.size_bytes}


def _due(owner: str) -> dict[str, str | int]:
    # New totals are due for a check at once. The sweep then sets the time of the next one.
    return {"sweep_shard": shard(owner), "sweep_at": 0}


def totals_change(size_bytes: int, artifacts: int, *, scoped_bytes: int = 0) -> dict[str, int]:
    """What to add to the totals. Owners without own scopes have no `scoped_bytes`."""
    change = {"size_bytes": size_bytes, "artifacts": artifacts, "free_bytes": -size_bytes}
    return change | {"scoped_bytes": scoped_bytes} if scoped_bytes else change


def scoped_share(quota_bytes: int) -> int:
    """How many bytes of the quota all own scopes of an owner may take together."""
    return quota_bytes * settings().scoped_share // 100


def scope_share(quota_bytes: int) -> int:
    """How many bytes one own scope may store in the time for which its artifacts are kept: a fifth of the share."""
    return scoped_share(quota_bytes) // 5


def check_share(totals: Totals, size_bytes: int, share_bytes: int) -> None:
    """Raises ScopesFull if own scopes cannot take so many more bytes."""
    if totals.scoped_bytes + size_bytes > share_bytes:
        raise ScopesFull


def has_quota(size_bytes: int, quota_bytes: int) -> Condition:
    return missing("size_bytes") | at_most(size_bytes=quota_bytes - size_bytes)


def has_share(size_bytes: int, share_bytes: int) -> Condition:
    return missing("scoped_bytes") | at_most(scoped_bytes=share_bytes - size_bytes)
