"""Users, teams and tokens as the build client reads them (docs/clients/turbo.md#users-teams-and-tokens)."""

from collections.abc import Sequence
from typing import Literal, NotRequired, TypedDict

from larder.accounts.models import User
from larder.api_keys.models import ApiKey
from larder.api_keys.principals import Principal
from larder.clock import IsoTime, Milliseconds, to_ms
from larder.records import shaped
from larder.teams.models import CachingStatus, Role, RunInputs, TeamMembership


class ClientUserJson(TypedDict):
    id: str
    username: str
    email: str
    name: str


class RemoteCachingJson(TypedDict):
    enabled: bool


class MembershipJson(TypedDict):
    uid: str
    teamId: str
    role: Role
    confirmed: Literal[True]
    createdAt: Milliseconds
    created: Milliseconds


class TeamJson(TypedDict):
    """A team and the caller's membership of it. Some properties are there because clients of the hosted service
    require them.
    """

    id: str
    slug: str
    name: str
    createdAt: Milliseconds
    created: IsoTime
    updatedAt: Milliseconds
    creatorId: str | None
    avatar: None
    description: None
    stagingPrefix: Literal[""]
    formerSlugs: list[str]
    remoteCaching: RemoteCachingJson
    runInputs: RunInputs
    buildHourCents: int
    membership: MembershipJson


class TeamsPageJson(TypedDict):
    """Send `next` as `until` to get the next page. It is null on the last page."""

    count: int
    next: str | None
    prev: None


class TeamsJson(TypedDict):
    teams: list[TeamJson]
    pagination: TeamsPageJson


class TeamKeyJson(TypedDict):
    """The API key that a login for a team ends with, and its team."""

    token: str
    teamId: str | None


class UserScopeJson(TypedDict):
    type: Literal["user"]
    expiresAt: NotRequired[Milliseconds]


class TeamScopeJson(TypedDict):
    type: Literal["team"]
    teamId: str
    expiresAt: NotRequired[Milliseconds]


class TokenJson(TypedDict):
    """What a token is for. `activeAt` is when it was made."""

    scopes: list[UserScopeJson | TeamScopeJson]
    activeAt: Milliseconds


def username(email: str) -> str:
    """Clients require a username. Larder has none, so they get the local part of the email address."""
    return email.rpartition("@")[0]


def client_user_json(user: User) -> ClientUserJson:
    return shaped(ClientUserJson, user, username=username(user.email))


def team_json(membership: TeamMembership) -> TeamJson:
    team, member = membership.team, membership.member
    joined_at = to_ms(member.joined_at)
    return shaped(
        TeamJson,
        team,
        created=team.created_at,
        creatorId=team.created_by,
        avatar=None,
        description=None,
        stagingPrefix="",
        remoteCaching={"enabled": team.state.caching is CachingStatus.ENABLED},
        membership={
            "uid": member.user_id,
            "teamId": team.id,
            "role": membership.role,
            "confirmed": True,
            "createdAt": joined_at,
            "created": joined_at,
        },
    )


def teams_json(memberships: Sequence[TeamMembership], following: str | None) -> TeamsJson:
    return {
        "teams": [team_json(membership) for membership in memberships],
        "pagination": {"count": len(memberships), "next": following, "prev": None},
    }


def team_key_json(key: ApiKey, raw: str) -> TeamKeyJson:
    return {"token": raw, "teamId": key.team_id}


def token_json(principal: Principal) -> TokenJson:
    scope: UserScopeJson | TeamScopeJson = {"type": "user"}
    if principal.bound_to is not None:
        scope = {"type": "team", "teamId": principal.bound_to}
    if principal.credential.expires_at is not None:
        scope["expiresAt"] = to_ms(principal.credential.expires_at)
    # The client takes a token whose `activeAt` is later than its own clock for expired. The time of the request would
    # fail where clocks differ, so this is when the token was made.
    return {"scopes": [scope], "activeAt": to_ms(principal.credential.created_at)}
