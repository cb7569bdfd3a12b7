"""Read pages of artifacts: by hash, those with one hash by scope, and by time with the index `by_upload`."""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice

from larder.artifacts.models import Artifact, ArtifactHash
from larder.artifacts.repository.index import AFTER_NOTES, PENDING, parse_artifact
from larder.artifacts.repository.partitions import Query, page_of, query_each
from larder.artifacts.repository.table import partition_of, partitions
from larder.artifacts.selection import ArtifactPage
from larder.clock import to_ms
from larder.concurrency import map_concurrently
from larder.conditions import above, begins_with, between, equals, missing
from larder.tables import ARTIFACTS, Item, commit

_AFTER_HASHES = "~"
"""Sorts after every character of a hash and of what follows it in a key."""


def read_page(owner: str, *, after: str, limit: int, prefix: str = "") -> ArtifactPage:
    """One page of the owner's artifacts by hash, with one call. `after` is empty, or `following` of the last page.

    Offered uploads count towards `limit` but are left out, so a page can be shorter.
    """
    keys = above(hash=after or AFTER_NOTES)
    if prefix:
        first, end = max(prefix, after + "\0"), prefix + _AFTER_HASHES
        if first > end:
            # DynamoDB refuses bounds that are the wrong way round.
            return ArtifactPage(artifacts=(), following=None)
        keys = between("hash", first, end)
    queries = [{"where": equals(owner=partition) & keys} for partition in partitions(owner)]
    return _page(*page_of(queries, by="hash", limit=limit))


def read_scopes_of(
    owner: str, hash: ArtifactHash, *, after: str | None, limit: int
) -> ArtifactPage:
    """One page of the artifacts with this hash in own scopes, by scope, with one call. Otherwise as `read_page`."""
    partition = partition_of(owner, hash)
    start = None if after is None else {"owner": partition, "hash": after}
    where = equals(owner=partition) & begins_with(hash=f"{hash}.")
    return _page(*ARTIFACTS.page(where, limit=limit, after=start))


def _page(items: Sequence[Item], last: Item | None) -> ArtifactPage:
    return ArtifactPage(
        artifacts=tuple(
            parse_artifact(item) for item in items if not item["hash"].endswith(PENDING)
        ),
        following=None if last is None else str(last["hash"]),
        read=len(items),
    )


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
    queries: list[Query] = []
    for partition in partitions(owner):
        end = most if start is None else start["uploaded_at"]
        if start is not None and partition < start["owner"]:
            # Artifacts of the same millisecond are listed in the order of the partitions.
            end -= 1
        if least <= end:
            within = equals(owner=partition) & between("uploaded_at", least, end)
            is_in = start is not None and partition == start["owner"]
            queries.append(
                {"where": within, "index": "by_upload", "after": start if is_in else None}
            )
    items, last = page_of(queries, by="uploaded_at", backwards=True, limit=limit)
    stored = ARTIFACTS.get_many(
        [(partition_of(owner, item["hash"]), item["hash"]) for item in items]
    )
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
        for item in query_each(owner, only=attributes)
        if "#" not in item["hash"] and "uploaded_at" not in item
    )
    while has_time() and (batch := list(islice(items, _AT_ONCE))):
        map_concurrently(lambda item: _date(owner, item), batch)


def _date(owner: str, item: Item) -> None:
    unchanged = equals(upload_id=item["upload_id"]) & missing("uploaded_at")
    dated = {"uploaded_at": item["created_at"]}
    key = partition_of(owner, item["hash"]), item["hash"]
    commit(ARTIFACTS.update(*key, set=dated, when=unchanged))


def _place(uploaded_at: int, key: str) -> str:
    return f"{uploaded_at}@{key}"


def _start(owner: str, place: str) -> Item:
    uploaded_at, _, key = place.partition("@")
    return {"owner": partition_of(owner, key), "hash": key, "uploaded_at": int(uploaded_at)}
