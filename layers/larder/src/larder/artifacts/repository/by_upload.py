"""List artifacts by the time of their upload, with the index `by_upload`."""

from collections.abc import Callable
from datetime import datetime
from itertools import islice

from larder.artifacts.lists import ArtifactPage
from larder.artifacts.models import Artifact
from larder.artifacts.repository.index import parse_artifact
from larder.clock import to_ms
from larder.concurrency import map_concurrently
from larder.conditions import between, equals, missing
from larder.tables import ARTIFACTS, Item, commit

_END_OF_TIME = 10**14
_AT_ONCE = 100


def read_uploaded(
    owner: str, *, after: str, limit: int, since: datetime | None, until: datetime | None
) -> ArtifactPage:
    """One page of the owner's artifacts, newest first. `since` is included, `until` is not.

    `after` is empty, or `following` of the last page. The index lags by milliseconds, so the artifacts are read from
    the table: one that was deleted or replaced since is left out.
    """
    least = 0 if since is None else to_ms(since)
    most = _END_OF_TIME if until is None else to_ms(until) - 1
    start = _start(owner, after) if after else None
    if start is not None and start["uploaded_at"] > most:
        start = None
    if least > most or (start is not None and start["uploaded_at"] < least):
        # DynamoDB refuses bounds that are the wrong way round, and a start outside of them.
        return ArtifactPage(artifacts=(), following=None)
    if start is not None:
        # Not needed for the result. But DynamoDB Local reads all that is in the bounds, also what is before the start.
        most = start["uploaded_at"]
    items, last = ARTIFACTS.page(
        equals(owner=owner) & between("uploaded_at", least, most),
        index="by_upload",
        backwards=True,
        limit=limit,
        after=start,
    )
    stored = ARTIFACTS.get_many([(owner, item["hash"]) for item in items])
    current = {(item["hash"], item.get("uploaded_at")): item for item in stored}
    found = [current.get((item["hash"], item["uploaded_at"])) for item in items]
    return ArtifactPage(
        artifacts=tuple(parse_artifact(item) for item in found if item is not None),
        following=None if last is None else _place(int(last["uploaded_at"]), str(last["hash"])),
        read=len(items),
    )


def place_of(artifact: Artifact) -> str:
    """The `after` that continues behind this artifact."""
    return _place(to_ms(artifact.created_at), artifact.upload.index_key)


def list_undated(owner: str, *, has_time: Callable[[], bool] = lambda: True) -> None:
    """Add the owner's artifacts of older versions to the index.

    Reads all artifacts of the owner: for background work only.
    """
    attributes = ("hash", "upload_id", "created_at", "size_bytes", "uploaded_at")
    items = (
        item
        for item in ARTIFACTS.query(equals(owner=owner), only=attributes)
        if "#" not in item["hash"] and "uploaded_at" not in item
    )
    while has_time() and (batch := list(islice(items, _AT_ONCE))):
        map_concurrently(lambda item: _date(owner, item), batch)


def _date(owner: str, item: Item) -> None:
    unchanged = equals(upload_id=item["upload_id"]) & missing("uploaded_at")
    dated = {"uploaded_at": item["created_at"]}
    commit(ARTIFACTS.update(owner, item["hash"], set=dated, when=unchanged))


def _place(uploaded_at: int, key: str) -> str:
    return f"{uploaded_at}@{key}"


def _start(owner: str, place: str) -> Item:
    uploaded_at, _, key = place.partition("@")
    return {"owner": owner, "hash": key, "uploaded_at": int(uploaded_at)}
