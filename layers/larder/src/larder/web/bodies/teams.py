"""The JSON bodies of the endpoints of teams, parsed and checked: the types that handlers name in their signatures.

Names are from the REST API of the hosted service. Unknown fields are ignored: clients send some that only the hosted
service has.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeVar

from pydantic import Field, TypeAdapter

from larder.accounts.team_invitations import InvitationWanted
from larder.addresses import parse_address
from larder.errors import InvalidEmail, NoValuesToUpdate
from larder.names import parse_name
from larder.teams.models import CachingStatus, Overwrites, People, Role, RunInputs, Unsigned
from larder.teams.protection import ProtectionChange
from larder.teams.slugs import parse_slug
from larder.teams.teams import TeamChange
from larder.web.bodies.model import BodyModel, parsed_json
from larder.web.bodies.raw import sent_json
from larder.web.errors import InvalidRequest
from larder.web.guards import check_rate
from larder.web.parameters import BearerToken
from larder.web.powertools.resolver import Request

MAX_INVITATIONS = 10
"""How many people one request can invite."""

DEFAULT_ROLE = Role.VIEWER
"""The default role of an invitation: the one with the fewest rights, as in the hosted service."""

MAX_BUILD_HOUR_CENTS = 100_000
"""The most that an hour of builds can cost, in US cents: 1,000 dollars."""

Choice = TypeVar("Choice", bound=StrEnum)


class _NewTeam(BodyModel):
    slug: str
    name: str | None = None


class _RemoteCaching(BodyModel):
    enabled: bool | None = None


class _TeamChange(BodyModel):
    name: str | None = None
    slug: str | None = None
    formerSlugs: list[str] | None = None  # noqa: N815  # the names on the wire
    remoteCaching: _RemoteCaching | None = None  # noqa: N815
    runInputs: str | None = None  # noqa: N815
    buildHourCents: Annotated[int, Field(ge=0, le=MAX_BUILD_HOUR_CENTS)] | None = None  # noqa: N815


class _Protection(BodyModel):
    protected: bool
    people: str | None = None
    overwrites: str | None = None
    unsigned: str | None = None
    keepStored: bool = False  # noqa: N815


class _Invitation(BodyModel):
    email: str
    role: str = DEFAULT_ROLE.value


class _RoleChange(BodyModel):
    role: str


class _Join(BodyModel):
    token: str | None = None
    inviteCode: str | None = None  # noqa: N815


class _Preview(BodyModel):
    token: str


_NEW_TEAM = TypeAdapter(_NewTeam)
_TEAM_CHANGE = TypeAdapter(_TeamChange)
_PROTECTION = TypeAdapter(_Protection)
_INVITATION = TypeAdapter(_Invitation)
_INVITATIONS = TypeAdapter(
    Annotated[list[_Invitation], Field(min_length=1, max_length=MAX_INVITATIONS)]
)
_ROLE_CHANGE = TypeAdapter(_RoleChange)
_JOIN = TypeAdapter(_Join)
_PREVIEW = TypeAdapter(_Preview)


@dataclass(frozen=True, slots=True)
class NewTeam:
    """A team to create. The default name is the slug."""

    slug: str
    name: str


def new_team(_token: BearerToken, request: Request) -> NewTeam:
    """`{"slug", "name"?}`"""
    body = parsed_json(_NEW_TEAM, request)
    slug = parse_slug(body.slug)
    return NewTeam(slug, parse_name(slug if body.name is None else body.name))


def team_change(_token: BearerToken, request: Request) -> TeamChange:
    """`{"name"?, "slug"?, "formerSlugs"?, "remoteCaching"?: {"enabled"}, "runInputs"?, "buildHourCents"?}`

    Raises NoValuesToUpdate without a field.
    """
    body = parsed_json(_TEAM_CHANGE, request)
    enabled = None if body.remoteCaching is None else body.remoteCaching.enabled
    former = None if body.formerSlugs is None else tuple(map(parse_slug, body.formerSlugs))
    change = TeamChange(
        name=None if body.name is None else parse_name(body.name),
        slug=None if body.slug is None else parse_slug(body.slug),
        former_slugs=former,
        caching=None if enabled is None else _caching(enabled),
        run_inputs=_choice(RunInputs, body.runInputs, "runInputs"),
        build_hour_cents=body.buildHourCents,
    )
    if change == TeamChange():
        raise NoValuesToUpdate
    return change


def sent_protection(_token: BearerToken, request: Request) -> ProtectionChange:
    """`{"protected", "people"?, "overwrites"?, "unsigned"?, "keepStored"?}`"""
    body = parsed_json(_PROTECTION, request)
    if body.keepStored and not body.protected:
        raise InvalidRequest("keepStored", "is only allowed together with protected: true")
    return ProtectionChange(
        protected=body.protected,
        people=_choice(People, body.people, "people"),
        overwrites=_choice(Overwrites, body.overwrites, "overwrites"),
        unsigned=_choice(Unsigned, body.unsigned, "unsigned"),
        keep_stored=body.keepStored,
    )


def sent_invitations(_token: BearerToken, request: Request) -> list[InvitationWanted]:
    """`{"email", "role"?}`, or a list of up to MAX_INVITATIONS of them."""
    several = isinstance(sent_json(request), list)
    invitation = None if several else parsed_json(_INVITATION, request)
    sent = [invitation] if invitation else parsed_json(_INVITATIONS, request)
    places = [f"{place}." if several else "" for place in range(len(sent))]
    return [
        InvitationWanted(
            email=_email(invitation.email, f"{place}email"),
            role=_role(invitation.role, f"{place}role"),
        )
        for place, invitation in zip(places, sent, strict=True)
    ]


def sent_role(_token: BearerToken, request: Request) -> Role:
    """`{"role"}`"""
    return _role(parsed_json(_ROLE_CHANGE, request).role)


def invitation_token(_token: BearerToken, request: Request) -> str:
    """`{"token"}`, or `{"inviteCode"}` as in the hosted service."""
    body = parsed_json(_JOIN, request)
    token = body.token or body.inviteCode
    if not token:
        raise InvalidRequest("token", "is required")
    return token


def previewed_token(request: Request) -> str:
    """`{"token"}`, from anyone. Raises TooManyRequests."""
    check_rate(request, request.route)
    return parsed_json(_PREVIEW, request).token


def _email(text: str, field: str) -> str:
    try:
        return parse_address(text)
    except InvalidEmail:
        raise InvalidRequest(field, "must be an email address") from None


def _role(text: str, field: str = "role") -> Role:
    return _one_of(Role, text, field)


def _choice(choices: type[Choice], text: str | None, field: str) -> Choice | None:
    return None if text is None else _one_of(choices, text, field)


def _one_of(choices: type[Choice], text: str, field: str) -> Choice:
    try:
        return choices(text)
    except ValueError:
        raise InvalidRequest(field, f"must be one of {', '.join(choices)}") from None


def _caching(enabled: bool) -> CachingStatus:
    return CachingStatus.ENABLED if enabled else CachingStatus.DISABLED
