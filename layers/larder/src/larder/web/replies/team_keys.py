"""The API keys of a team, as its owners and admins see them."""

from collections.abc import Mapping
from typing import Literal, TypedDict

from larder.accounts.team_members import Knower
from larder.api_keys.models import ApiKey, KeyPage
from larder.clock import Milliseconds
from larder.records import shaped


class KnowerJson(TypedDict):
    """A user who has seen the secret of a key. `name` is null for a deleted user.

    `leftAt` is when they left the team or were suspended, null for a member.
    """

    uid: str
    name: str | None
    leftAt: Milliseconds | None


class BoundKeyJson(TypedDict):
    """An API key without its secret. `uid` is the id of the member who owns it, null if the team does.

    For a key that the team owns, `madeBy` is the id of the user who made it, null for the operator, and `knownTo` are
    those who have seen the secret. A public read key gives `dailyRequests` and `dailyBytes` in a day of UTC at most. On
    `day`, it gave `dayRequests` and `dayBytes`. On `pausedOn`, it gives nothing more.
    """

    id: str
    owner: Literal["user", "team"]
    uid: str | None
    madeBy: str | None
    knownTo: list[KnowerJson]
    name: str | None
    start: str | None
    prefix: str | None
    enabled: bool
    permissions: dict[str, list[str]]
    createdAt: Milliseconds
    expiresAt: Milliseconds | None
    lastUsedAt: Milliseconds | None
    dailyRequests: int | None
    dailyBytes: int | None
    day: str | None
    dayRequests: int | None
    dayBytes: int | None
    pausedOn: str | None


class KeysPageJson(TypedDict):
    """Send `next` as `offset` to get the next page. It is null on the last page."""

    count: int
    next: int | None


class TeamKeysJson(TypedDict):
    keys: list[BoundKeyJson]
    pagination: KeysPageJson


class DeletedKeyJson(TypedDict):
    id: str


def team_keys_json(page: KeyPage, end: int, knowers: Mapping[str, Knower]) -> TeamKeysJson:
    following = end if page.has_more else None
    return {
        "keys": [_bound_key_json(key, knowers) for key in page.keys],
        "pagination": {"count": len(page.keys), "next": following},
    }


def _knower_json(knower: Knower) -> KnowerJson:
    return shaped(KnowerJson, knower, uid=knower.user_id)


def _bound_key_json(key: ApiKey, knowers: Mapping[str, Knower]) -> BoundKeyJson:
    return shaped(
        BoundKeyJson,
        key,
        owner="team" if key.owned_by_team else "user",
        uid=key.user_id if key.has_user else None,
        knownTo=[_knower_json(knowers[user_id]) for user_id in key.known_to],
        lastUsedAt=key.last_request,
    )
