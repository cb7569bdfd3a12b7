"""What the page of `turbo login` shows."""

from typing import TypedDict

from larder.accounts.models import User
from larder.clock import IsoTime, to_iso
from larder.settings import settings
from larder.teams.models import TeamMembership
from larder.turbo_login.service import Offer
from larder.web.turbo_login.parameters import LoginRequest


class LoginUserJson(TypedDict):
    """`needsPassword` is whether the session is too old to grant a key without the password."""

    email: str
    name: str
    needsPassword: bool


class LoginTeamJson(TypedDict):
    """A team that the key could be for. `writes` is whether the user's role may write to its cache."""

    id: str
    slug: str
    name: str
    writes: bool


class OfferJson(TypedDict):
    """The key that the client would get. `team` is the one that the login is for, if it names one."""

    name: str
    maxNameLength: int
    expiresAt: IsoTime | None
    team: LoginTeamJson | None
    teams: list[LoginTeamJson]


class LoginJson(TypedDict):
    """`user` and `token` are null without a session."""

    client: str
    user: LoginUserJson | None
    token: OfferJson | None


def login_user_json(user: User, *, needs_password: bool) -> LoginUserJson:
    return {"email": user.email, "name": user.name, "needsPassword": needs_password}


def login_json(asked: LoginRequest, user: LoginUserJson | None, offer: Offer | None) -> LoginJson:
    return {
        "client": asked.client.origin,
        "user": user,
        "token": None if offer is None else _offer_json(offer),
    }


def _offer_json(offer: Offer) -> OfferJson:
    return {
        "name": offer.name,
        "maxNameLength": settings().maximum_key_name_length,
        "expiresAt": to_iso(offer.expires_at),
        "team": None if offer.team is None else _team_json(offer.team),
        "teams": [_team_json(membership) for membership in offer.teams],
    }


def _team_json(membership: TeamMembership) -> LoginTeamJson:
    team, role = membership.team, membership.role
    return {"id": team.id, "slug": team.slug, "name": team.name, "writes": role.writes_cache}
