"""List artifacts by hash, and those with one hash by scope. `by_upload` lists them by time."""

from collections.abc import Sequence

from larder.artifacts.lists import ArtifactPage
from larder.artifacts.models import ArtifactHash
from larder.artifacts.repository.index import AFTER_NOTES, PENDING, parse_artifact
from larder.conditions import above, begins_with, between, equals
from larder.tables import ARTIFACTS, Item

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
    return _page(*ARTIFACTS.page(equals(owner=owner) & keys, limit=limit))


def read_scopes_of(
    owner: str, hash: ArtifactHash, *, after: str | None, limit: int
) -> ArtifactPage:
    """One page of the artifacts with this hash in own scopes, by scope, with one call. Otherwise as `read_page`."""
    start = None if after is None else {"owner": owner, "hash": after}
    where = equals(owner=owner) & begins_with(hash=f"{hash}.")
    return _page(*ARTIFACTS.page(where, limit=limit, after=start))


def _page(items: Sequence[Item], last: Item | None) -> ArtifactPage:
    return ArtifactPage(
        artifacts=tuple(
            parse_artifact(item) for item in items if not item["hash"].endswith(PENDING)
        ),
        following=None if last is None else str(last["hash"]),
        read=len(items),
    )
