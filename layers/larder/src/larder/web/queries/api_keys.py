"""Query parameters of the endpoints that show keys, by the names of the Better Auth client.

`configId` says whether a request is about keys that teams own, `team`, or about those of users, `default`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from larder.web.declared import text, whole
from larder.web.errors import InvalidQuery, OrganizationIdRequired
from larder.web.powertools.resolver import Request

MAX_KEYS = 1000
"""The most keys in one reply, and the most that a user or team can have (`MaxKeysPerUser`)."""

MAX_OFFSET = 99_999

OF_USERS = "default"
OF_TEAMS = "team"
"""The values of `configId`."""


def names_other_keys(
    sent: Mapping[str, object], *, takes_team: bool = False, needs_config: bool = True
) -> tuple[str, str] | None:
    """The field of a request that chooses keys which the endpoint does not have, and why. None if all is well.

    Ignoring it would make a key of the caller's own, or list those. `takes_team` is whether the endpoint takes
    `organizationId`, and `needs_config` whether that also needs `configId`.
    """
    config = sent.get("configId")
    if config not in (None, "", OF_USERS, OF_TEAMS):
        return "configId", f"must be {OF_USERS} or {OF_TEAMS}"
    if sent.get("organizationId") in (None, ""):
        return None
    if not takes_team:
        return "organizationId", "is not supported here: the id of the key is enough"
    if config == OF_TEAMS or (config in (None, "") and not needs_config):
        return None
    return "organizationId", f"needs configId {OF_TEAMS}"


LIMIT = whole(
    "limit", 1, MAX_KEYS, MAX_KEYS, "The maximum number of keys to return.", refuse=InvalidQuery
)
OFFSET = whole("offset", 0, MAX_OFFSET, 0, "The number of keys to skip.", refuse=InvalidQuery)
ID = text("id", "The id of a key.")
KEY_ID = text("keyId", "Another name for `id`.")
CONFIG_ID = text(
    "configId",
    "`team` for a key that a team owns, `default` or nothing for one of a user.",
    {"type": "string", "enum": [OF_USERS, OF_TEAMS, ""], "default": OF_USERS},
)
ORGANIZATION_ID = text("organizationId", "The id or slug of a team, for the keys that it owns.")


@dataclass(frozen=True, slots=True)
class KeysQuery:
    """At most `limit` keys, after the first `offset` ones: the caller's, or those of the team `organization`."""

    limit: int
    offset: int
    organization: str | None


@dataclass(frozen=True, slots=True)
class NamedKey:
    """The id of a key, and whether a team owns it."""

    key_id: str
    of_team: bool


def keys_query(request: Request) -> KeysQuery:
    """Raises InvalidQuery naming the parameter, OrganizationIdRequired."""
    _check_other_keys(request, takes_team=True, needs_config=False)
    organization = ORGANIZATION_ID(request) or None
    if organization is None and CONFIG_ID(request) == OF_TEAMS:
        raise OrganizationIdRequired
    return KeysQuery(limit=LIMIT(request), offset=OFFSET(request), organization=organization)


def queried_key(request: Request) -> NamedKey:
    """`?id=`, or `?keyId=` as the other endpoints call it. Raises InvalidQuery."""
    _check_other_keys(request)
    key_id = ID(request) or KEY_ID(request)
    if not key_id:
        raise InvalidQuery("id", "is required")
    return NamedKey(key_id, CONFIG_ID(request) == OF_TEAMS)


def _check_other_keys(
    request: Request, *, takes_team: bool = False, needs_config: bool = True
) -> None:
    sent = request.query_parameters or {}
    if other := names_other_keys(sent, takes_team=takes_team, needs_config=needs_config):
        raise InvalidQuery(*other)
