"""The JSON bodies of the API key endpoints, parsed and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
)

from larder.api_keys import self_service
from larder.api_keys.keys import default_rate_limit
from larder.api_keys.models import Daily, Permissions, RateLimit, Refill
from larder.api_keys.properties import MAX_WORD_LENGTH, UNSET, KeyChanges, NewKey, Rotation, Unset
from larder.api_keys.verification import presented_form
from larder.teams.models import Member
from larder.teams.slugs import parse_team_id
from larder.web.bodies import better_auth
from larder.web.bodies.model import BodyModel
from larder.web.errors import (
    InvalidBody,
    KeyForAnother,
    OrganizationIdRequired,
    ServerOnlyProperty,
)
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.session import KeyMaker, UserPrincipal
from larder.web.queries.api_keys import OF_TEAMS, NamedKey, names_other_keys
from larder.web.request_context import request_context

MAX_PERMISSIONS = 20
"""How many actions one verification can require. One condition checks them all."""

MAX_OVERLAP_S = 30 * 86_400
"""How long a replaced key can still work. At least a minute, so that a caller whose reply got lost can ask again."""

_Word = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORD_LENGTH)]
_Permissions = dict[str, list[str]]


def _whole(sent: object) -> object:
    """JSON has only one type of number, so 3600.0 is 3600."""
    return int(sent) if isinstance(sent, float) and sent.is_integer() else sent


_Whole = Annotated[int, BeforeValidator(_whole)]


def _unless_empty(sent: object) -> object:
    """An empty text is as good as none."""
    return None if sent == "" else sent


_Config = Annotated[Literal["default", "team"] | None, BeforeValidator(_unless_empty)]


class _Verify(BodyModel):
    key: str
    permissions: Annotated[dict[_Word, list[_Word]], Field(max_length=MAX_PERMISSIONS)] = Field(
        default_factory=dict
    )
    configId: _Config = None  # noqa: N815  # the names on the wire

    @property
    def of_team(self) -> bool | None:
        return None if self.configId is None else self.configId == OF_TEAMS


class _Limits(BodyModel):
    """Owner and limits, which only operators set (docs/clients/better-auth.md#properties-that-users-can-set)."""

    userId: str | None = None  # noqa: N815
    remaining: _Whole | None = None
    refillAmount: _Whole | None = None  # noqa: N815
    refillInterval: _Whole | None = None  # noqa: N815
    rateLimitEnabled: bool | None = None  # noqa: N815
    rateLimitTimeWindow: _Whole | None = None  # noqa: N815
    rateLimitMax: _Whole | None = None  # noqa: N815

    @property
    def server_only(self) -> list[str]:
        """The fields in the body that only operators can set."""
        return [name for name in _Limits.model_fields if name != "userId" and self.has(name)]

    def has(self, name: str) -> bool:
        return getattr(self, name) is not None


class _Create(_Limits):
    name: str | None = None
    expiresIn: _Whole | None = None  # noqa: N815
    prefix: str | None = None
    metadata: Any = None
    permissions: _Permissions | None = None
    teamId: Annotated[str, AfterValidator(parse_team_id)] | None = None  # noqa: N815
    protect: bool = True
    configId: _Config = None  # noqa: N815
    organizationId: str | None = None  # noqa: N815
    dailyRequests: _Whole | None = None  # noqa: N815
    dailyBytes: _Whole | None = None  # noqa: N815
    replaces: str | None = None
    overlap: Annotated[int, Field(ge=60, le=MAX_OVERLAP_S), BeforeValidator(_whole)] = 86_400


class _Update(_Limits):
    """Null removes a value that can be removed. A missing field leaves its value unchanged."""

    keyId: str  # noqa: N815
    configId: _Config = None  # noqa: N815
    name: str = ""
    enabled: bool = True
    expiresIn: _Whole | None = None  # noqa: N815
    metadata: Any = None
    permissions: _Permissions = Field(default_factory=dict)

    def has(self, name: str) -> bool:
        return name in self.model_fields_set

    def given(self, name: str) -> Any:
        """The value in the body, or UNSET if the field is missing."""
        return getattr(self, name) if self.has(name) else UNSET


class _Named(BodyModel):
    keyId: str  # noqa: N815
    configId: _Config = None  # noqa: N815


@dataclass(frozen=True, slots=True)
class KeyToVerify:
    """The key to verify in its stored form, None if it is invalid whatever is stored.

    `of_team` is whether it has to be one that a team owns, or one of a user. None for either.
    """

    key_hash: str | None
    permissions: Permissions
    of_team: bool | None


@dataclass(frozen=True, slots=True)
class SentKey:
    """A key to create. `by` is the member who makes one that the team owns.

    `protect` is whether the first key with `artifacts: trust` of a team protects it, and `rotation` the key that the
    new one replaces.
    """

    new: NewKey
    by: Member | None
    protect: bool
    rotation: Rotation | None


@dataclass(frozen=True, slots=True)
class SentUpdate:
    """`of_team` is whether the key is one that a team owns."""

    key_id: str
    changes: KeyChanges
    of_team: bool = False


M = TypeVar("M", bound=BodyModel)


def _parsed(request: Request, model: type[M], *, takes_team: bool = False) -> M:
    """The body as a model. Raises InvalidBody, also for a field that would choose other keys."""
    sent = better_auth.auth_body(request)
    if isinstance(sent, Mapping) and (other := names_other_keys(sent, takes_team=takes_team)):
        raise InvalidBody(*other)
    return better_auth.parsed(request, model)


def verify_body(request: Request) -> KeyToVerify:
    """`{"key", "permissions"?}`. Raises InvalidBody."""
    body = _parsed(request, _Verify)
    if sum(map(len, body.permissions.values())) > MAX_PERMISSIONS:
        raise InvalidBody("permissions", f"must require at most {MAX_PERMISSIONS} actions")
    return KeyToVerify(
        presented_form(body.key, request_context(request)),
        _permissions(body.permissions),
        body.of_team,
    )


def _create_body(request: Request) -> _Create:
    """Raises InvalidBody also for fields that a team's own key cannot have, OrganizationIdRequired."""
    body = _parsed(request, _Create, takes_team=True)
    if body.configId == OF_TEAMS:
        if not body.organizationId:
            raise OrganizationIdRequired
        if body.teamId is not None:
            raise InvalidBody("teamId", "must not be sent with organizationId, which is the team")
        if body.userId is not None:
            raise InvalidBody("userId", "must not be sent for a key that a team owns")
    return body


def _update_body(request: Request) -> _Update:
    return _parsed(request, _Update)


# Body before principal: a bad body is 400 without a session too (docs/clients/better-auth.md#order-of-checks).
def sent_key(body: Annotated[_Create, Depends(_create_body)], principal: KeyMaker) -> SentKey:
    """The new key.

    Raises SessionRequired, NotInOrganization, CannotManageTeamKeys, ServerOnlyProperty, KeyForAnother, InvalidRequest.
    """
    owner = None
    if body.organizationId:
        owner = self_service.managed_team(principal, body.organizationId)
    _check_server_only(body, principal)
    user_id = principal.user.id if body.userId is None else body.userId
    new = NewKey(
        user_id=user_id if owner is None else None,
        team_id=body.teamId if owner is None else owner.team.id,
        made_by=None if owner is None else principal.user.id,
        name=body.name,
        prefix=body.prefix,
        expires_in_s=body.expiresIn,
        permissions=None if body.permissions is None else _permissions(body.permissions),
        metadata=body.metadata,
        remaining=body.remaining,
        refill=_refill(body),
        rate_limit=_rate_limit(body),
        daily=_daily(body),
    )
    rotation = None
    if body.replaces is not None:
        rotation = Rotation(key_id=body.replaces, overlap_s=body.overlap)
    return SentKey(new, None if owner is None else owner.member, body.protect, rotation)


def sent_update(body: Annotated[_Update, Depends(_update_body)], principal: KeyMaker) -> SentUpdate:
    """`{"keyId", ...}` with the changes. Raises ServerOnlyProperty, KeyForAnother, InvalidRequest."""
    _check_server_only(body, principal)
    changes = KeyChanges(
        name=body.name if body.has("name") else None,
        enabled=body.enabled if body.has("enabled") else None,
        permissions=_permissions(body.permissions) if body.has("permissions") else None,
        metadata=body.given("metadata"),
        expires_in_s=body.given("expiresIn"),
        remaining=body.given("remaining"),
        refill=_refill_change(body),
        rate_limit_enabled=body.rateLimitEnabled,
        rate_limit_window_ms=body.rateLimitTimeWindow,
        rate_limit_max=body.rateLimitMax,
    )
    return SentUpdate(body.keyId, changes, body.configId == OF_TEAMS)


def named_key(request: Request) -> NamedKey:
    """`{"keyId", "configId"?}`."""
    body = _parsed(request, _Named)
    return NamedKey(body.keyId, body.configId == OF_TEAMS)


def _check_server_only(body: _Limits, principal: UserPrincipal) -> None:
    if principal.is_operator:
        return
    if body.userId not in (None, principal.user.id):
        raise KeyForAnother
    if fields := body.server_only:
        raise ServerOnlyProperty(fields[0])


def _permissions(sent: _Permissions) -> Permissions:
    return {resource: tuple(actions) for resource, actions in sent.items()}


def _refill(body: _Limits) -> Refill | None:
    sent = _together(refillAmount=body.refillAmount, refillInterval=body.refillInterval)
    return None if sent is None else Refill(amount=sent[0], interval_ms=sent[1])


def _daily(body: _Create) -> Daily | None:
    sent = _together(dailyRequests=body.dailyRequests, dailyBytes=body.dailyBytes)
    return None if sent is None else Daily(max_requests=sent[0], max_bytes=sent[1])


def _together(**numbers: int | None) -> list[int] | None:
    """The numbers of these fields, None without any. Raises InvalidBody for some without the others."""
    sent = [number for number in numbers.values() if number is not None]
    if sent and len(sent) < len(numbers):
        missing = next(name for name, number in numbers.items() if number is None)
        raise InvalidBody(missing, f"is required: set {' and '.join(numbers)} together")
    return sent or None


def _refill_change(body: _Update) -> Refill | Unset | None:
    sent = body.has("refillAmount") or body.has("refillInterval")
    return _refill(body) if sent else UNSET


def _rate_limit(body: _Limits) -> RateLimit | None:
    """Missing numbers come from the options. A body with any number of the limit enables it."""
    enabled, window_ms, most = body.rateLimitEnabled, body.rateLimitTimeWindow, body.rateLimitMax
    if enabled is None and window_ms is None and most is None:
        return None
    default = default_rate_limit()
    return RateLimit(
        enabled=True if enabled is None else enabled,
        window_ms=default.window_ms if window_ms is None else window_ms,
        max_requests=default.max_requests if most is None else most,
    )
