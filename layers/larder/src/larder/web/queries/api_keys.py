"""Query parameters of the endpoints that show a user's keys, by the names of the Better Auth client."""

from collections.abc import Mapping
from dataclasses import dataclass

from larder.web.declared import text, whole
from larder.web.errors import InvalidQuery
from larder.web.powertools.resolver import Request

MAX_KEYS = 1000
"""The most keys in one reply, and the most that a user can have (`MaxKeysPerUser`)."""

MAX_OFFSET = 99_999

_DEFAULT_CONFIG = "default"
"""The `configId` of all keys."""

NO_OTHER_KEYS = "is not supported: all keys belong to users, and are made with one configuration"


def other_keys(sent: Mapping[str, object]) -> str | None:
    """The field of a request that would choose the keys of an organization or of another configuration, if it has one.

    Ignoring it would make a key of the caller's own, or list those.
    """
    if sent.get("organizationId") not in (None, ""):
        return "organizationId"
    return None if sent.get("configId") in (None, "", _DEFAULT_CONFIG) else "configId"


LIMIT = whole(
    "limit", 1, MAX_KEYS, MAX_KEYS, "The maximum number of keys to return.", refuse=InvalidQuery
)
OFFSET = whole("offset", 0, MAX_OFFSET, 0, "The number of keys to skip.", refuse=InvalidQuery)
ID = text("id", "The id of a key.")
KEY_ID = text("keyId", "Another name for `id`.")


@dataclass(frozen=True, slots=True)
class KeysQuery:
    """At most `limit` keys, after the first `offset` ones."""

    limit: int
    offset: int


def keys_query(request: Request) -> KeysQuery:
    """Raises InvalidQuery naming the parameter."""
    _check_other_keys(request)
    return KeysQuery(limit=LIMIT(request), offset=OFFSET(request))


def queried_key(request: Request) -> str:
    """`?id=`, or `?keyId=` as the other endpoints call it. Raises InvalidQuery."""
    _check_other_keys(request)
    key_id = ID(request) or KEY_ID(request)
    if not key_id:
        raise InvalidQuery("id", "is required")
    return key_id


def _check_other_keys(request: Request) -> None:
    if field := other_keys(request.query_parameters or {}):
        raise InvalidQuery(field, NO_OTHER_KEYS)
