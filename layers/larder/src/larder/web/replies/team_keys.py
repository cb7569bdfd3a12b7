"""The API keys of a team, as its owners and admins see them."""

from typing import TypedDict

from larder.api_keys.models import ApiKey, KeyPage
from larder.clock import Milliseconds, to_ms


class BoundKeyJson(TypedDict):
    """An API key without its secret. `uid` is the id of the member who owns it."""

    id: str
    uid: str
    name: str | None
    start: str | None
    prefix: str | None
    enabled: bool
    permissions: dict[str, list[str]]
    createdAt: Milliseconds
    expiresAt: Milliseconds | None
    lastUsedAt: Milliseconds | None


class KeysPageJson(TypedDict):
    """Send `next` as `offset` to get the next page. It is null on the last page."""

    count: int
    next: int | None


class TeamKeysJson(TypedDict):
    keys: list[BoundKeyJson]
    pagination: KeysPageJson


class DeletedKeyJson(TypedDict):
    id: str


def team_keys_json(page: KeyPage, end: int) -> TeamKeysJson:
    following = end if page.has_more else None
    return {
        "keys": [_bound_key_json(key) for key in page.keys],
        "pagination": {"count": len(page.keys), "next": following},
    }


def _bound_key_json(key: ApiKey) -> BoundKeyJson:
    return {
        "id": key.id,
        "uid": key.user_id,
        "name": key.name,
        "start": key.start,
        "prefix": key.prefix,
        "enabled": key.enabled,
        "permissions": {resource: list(actions) for resource, actions in key.permissions.items()},
        "createdAt": to_ms(key.created_at),
        "expiresAt": None if key.expires_at is None else to_ms(key.expires_at),
        "lastUsedAt": None if key.last_request is None else to_ms(key.last_request),
    }
