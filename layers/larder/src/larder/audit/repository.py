"""The audit table: `(owner, id)` is one entry, in order of time. Nothing in this module changes or deletes entries."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from larder.actor import Actor
from larder.audit.models import Entry, Page
from larder.clock import to_epoch_seconds
from larder.conditions import equals
from larder.records import Form
from larder.settings import settings
from larder.tables import AUDIT, Item, Write, commit

_ENTRY = Form(Entry, apart=("actor",))


def add(entry: Entry) -> None:
    commit(put(entry))


def read_page(owner: str, *, before: str | None, limit: int, now: datetime) -> Page:
    """A page of the owner's entries that have not expired, newest first. `before` is the last page's `next_before`."""
    after = None if before is None else {"owner": owner, "id": before}
    items, last = AUDIT.page(equals(owner=owner), backwards=True, limit=limit, after=after)
    # DynamoDB's time to live deletes expired items up to two days late.
    kept = [item for item in items if item["expires_at"] > to_epoch_seconds(now)]
    return Page(
        entries=tuple(_entry(item) for item in kept),
        next_before=None if last is None else str(last["id"]),
    )


def read_many(keys: Sequence[tuple[str, str]]) -> list[Entry]:
    """The entries that exist, by their owners and ids."""
    return [_entry(item) for item in AUDIT.get_many(keys)]


def put(entry: Entry) -> Write:
    """The write that stores the entry, for the transaction of the recorded action."""
    kept = timedelta(days=settings().audit_retention_days)
    item = {
        **_ENTRY.item(entry),
        "user_id": entry.actor.holder_id if entry.actor else None,
        "credential_id": entry.actor.credential_id if entry.actor else None,
        "expires_at": to_epoch_seconds(entry.at + kept),
    }
    return AUDIT.put(item)


def _entry(item: Item) -> Entry:
    return _ENTRY.record(item, actor=_actor(item))


def _actor(item: Item) -> Actor | None:
    credential_id = item.get("credential_id")
    return None if credential_id is None else Actor.of(credential_id, item.get("user_id"))
