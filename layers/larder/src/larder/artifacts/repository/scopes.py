"""The own scopes of an owner: who writes each, and how much it holds.

An upload to a scope of a protected team records it, at most once an hour for each instance. The daily check of the
totals counts what each own scope holds. Only what people are shown depends on that. How much a scope may store depends
on the bytes that it has stored in a window.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from larder.artifacts.models import CacheRequest
from larder.artifacts.records import OwnScope
from larder.clock import from_ms, to_ms
from larder.concurrency import map_concurrently
from larder.conditions import Condition, at_most, begins_with, equals, missing
from larder.settings import settings
from larder.tables import ARTIFACTS, Item, Key, Write, commit

_SCOPE = "#scope#"
_SHARED = "#shared"

_STORED = "stored#"
"""Before the number of a window, in an attribute with the bytes that the scope has stored in it."""

_FORGOTTEN_AFTER = timedelta(days=1)
"""An empty scope is deleted after this time. Uploads record their scope more often, so no scope in use is missed."""


def record_upload(request: CacheRequest) -> None:
    """Record who writes the own scope of the view. Of the shared scope, only the time is recorded."""
    owner, view, at = request.owner, request.view, {"last_upload_at": to_ms(request.now)}
    if view.scope is None:
        commit(ARTIFACTS.update(owner, _SHARED, set=at))
        return
    writing = {"name": view.scope_name, "user_id": request.writer.holder_id, **at}
    commit(ARTIFACTS.update(*_key(owner, view.scope), set=writing))


def take_budget(owner: str, scope: str, size_bytes: int, *, most: int, now: datetime) -> bool:
    """Count bytes that are stored in an own scope. False, and counts nothing, if the scope has stored too many.

    A scope may store `most` bytes in each window, which is as long as its artifacts are kept. Exact under parallel
    uploads, because one conditional write checks and counts. Bytes of before are forgotten.
    """
    window = _window(now)
    fits = missing(f"{_STORED}{window}") | at_most(**{f"{_STORED}{window}": most - size_bytes})
    forgotten = {f"{_STORED}{window - ago}": None for ago in (1, 2)}
    added = {f"{_STORED}{window}": size_bytes}
    if size_bytes > most:
        return False
    return commit(ARTIFACTS.update(*_key(owner, scope), set=forgotten, add=added, when=fits))


def give_budget_back(owner: str, scope: str, size_bytes: int, *, now: datetime) -> None:
    """Count bytes out that were not stored after all."""
    commit(ARTIFACTS.update(*_key(owner, scope), add={f"{_STORED}{_window(now)}": -size_bytes}))


def _window(now: datetime) -> int:
    return int(now.timestamp()) // (settings().scoped_retention_days * 86_400)


def last_shared_upload(owner: str) -> datetime | None:
    """When an upload to the shared scope of a protected team was last recorded. None if never."""
    item = ARTIFACTS.get(owner, _SHARED)
    return None if item is None else from_ms(item["last_upload_at"])


def read_page(owner: str, *, after: str | None, limit: int) -> tuple[list[OwnScope], str | None]:
    """A page of the owner's scopes, by id, and `after` for the next page, None on the last one."""
    start = None if after is None else {"owner": owner, "hash": _SCOPE + after}
    items, last = ARTIFACTS.page(_of(owner), limit=limit, after=start)
    following = None if last is None else str(last["hash"]).removeprefix(_SCOPE)
    return [_scope(item) for item in items], following


def set_counts(owner: str, counts: Mapping[str, tuple[int, int]], *, now: datetime) -> None:
    """Store the bytes and the number of artifacts of each scope, and forget the scopes that nobody uses any more."""
    known = {scope.id: scope for scope in map(_scope, ARTIFACTS.query(_of(owner)))}
    for id in counts:
        known.setdefault(id, OwnScope(id=id))
    map_concurrently(
        commit, [_counting(owner, scope, counts.get(id), now) for id, scope in known.items()]
    )


def delete_all(owner: str, *, has_time: Callable[[], bool]) -> bool:
    """Delete what is recorded of the scopes of a deleted owner. False if there was no time for all of it."""
    commit(ARTIFACTS.delete(owner, _SHARED))
    return ARTIFACTS.delete_each(ARTIFACTS.query(_of(owner)), has_time)


def _counting(owner: str, scope: OwnScope, count: tuple[int, int] | None, now: datetime) -> Write:
    key, last = _key(owner, scope.id), scope.last_upload_at
    if count is None and (last is None or last < now - _FORGOTTEN_AFTER):
        unused = missing("last_upload_at") if last is None else equals(last_upload_at=to_ms(last))
        return ARTIFACTS.delete(*key, when=unused)
    size_bytes, artifacts = count or (0, 0)
    counted = {"size_bytes": size_bytes, "artifacts": artifacts, "counted_at": to_ms(now)}
    return ARTIFACTS.update(*key, set=counted)


def _of(owner: str) -> Condition:
    return equals(owner=owner) & begins_with(hash=_SCOPE)


def _key(owner: str, id: str) -> Key:
    return owner, _SCOPE + id


def _scope(item: Item) -> OwnScope:
    def moment(name: str) -> datetime | None:
        return from_ms(item[name]) if name in item else None

    return OwnScope(
        id=item["hash"].removeprefix(_SCOPE),
        name=item.get("name"),
        user_id=item.get("user_id"),
        last_upload_at=moment("last_upload_at"),
        size_bytes=item.get("size_bytes"),
        artifacts=item.get("artifacts"),
        counted_at=moment("counted_at"),
    )
