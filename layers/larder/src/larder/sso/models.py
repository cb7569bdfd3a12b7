"""Types of company sign-in: identity providers, the domains that they have, and what they say about a person."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from larder.teams.models import Role


class Mode(StrEnum):
    """Whether the people of a provider's domains can also sign in with a password."""

    OPTIONAL = "optional"
    REQUIRED = "required"


class VerifiedBy(StrEnum):
    """What proves that an address of a listed domain is the person's.

    `CLAIM` is the provider's claim `email_verified`. `DOMAIN` is the domain alone, for providers that give every
    address themselves and send no such claim.
    """

    CLAIM = "claim"
    DOMAIN = "domain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The addresses of a provider and what it announces, as pinned when the operator added or refreshed it.

    `sends_issuer` says that each reply names the issuer (RFC 9207). `authentication` is how the client proves itself
    at the token endpoint: `client_secret_basic` or `client_secret_post`.
    """

    authorization: str
    token: str
    jwks: str
    userinfo: str | None
    sends_issuer: bool
    authentication: str
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    """An OpenID provider that the operator has added.

    `secret` and `former_secret` are sealed. The former one is tried until `former_until`. `version` increases with each
    change that affects trust, which ends sign-ins in progress. `session_hours` and `keys_days` count for managed users:
    how long a session lasts, and how long keys work after the last sign-in. An id token must have each of
    `required_claims` with one of its values, such as `hd` with a domain of Google Workspace. `sends_auth_time` says
    that id tokens have the time of the login. `email_claim` holds the address in place of `email`, and then only the
    domain can prove it. `origin` is that of the deployment when the provider was added: of the redirect URI that the
    provider allows, and of links in mails that no request asks for. `last_failure` is the code of the last failed
    sign-in.

    A required provider *manages* its people, except for the addresses that are exceptions: they sign in with it only,
    and their access ends some days after the last time. A link counts like a domain. Otherwise, people who have a
    private address would keep the account when they leave the company.
    """

    id: str
    name: str
    issuer: str
    client_id: str
    origin: str
    secret: str | None = field(repr=False)
    former_secret: str | None = field(default=None, repr=False)
    former_until: datetime | None = None
    endpoints: Endpoints
    domains: tuple[str, ...] = ()
    mode: Mode = Mode.OPTIONAL
    exceptions: tuple[str, ...] = ()
    verified_by: VerifiedBy = VerifiedBy.CLAIM
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    email_claim: str | None = None
    groups_claim: str | None = None
    required_claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: bool = False
    signs_up: bool = True
    sends_auth_time: bool = True
    session_hours: int = 24
    keys_days: int = 30
    version: int = 1
    created_at: datetime
    updated_at: datetime
    last_sign_in_at: datetime | None = None
    last_failure: str | None = None

    def manages(self, address: str, *, linked: bool = False) -> bool:
        """Whether it manages the user with this canonical address. `linked` users have an account here."""
        is_own = linked or address.rpartition("@")[2] in self.domains
        return is_own and self.mode is Mode.REQUIRED and address not in self.exceptions

    def access_until(self, address: str, *, linked: bool = False, now: datetime) -> datetime | None:
        """The end of the access of a user who signs in here now. None if it does not manage the user."""
        is_ended = self.manages(address, linked=linked)
        return now + timedelta(days=self.keys_days) if is_ended else None

    def session_lifetime(self, address: str) -> timedelta | None:
        """How long a session that begins here lasts. None if it does not manage the user: the options decide."""
        is_short = self.manages(address, linked=True)
        return timedelta(hours=self.session_hours) if is_short else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A domain of email addresses that belongs to a provider. One read decides about passwords.

    `exceptions` are canonical addresses that keep their passwords while the mode is required.
    """

    name: str
    provider_id: str
    mode: Mode
    exceptions: tuple[str, ...] = ()

    def requires_provider(self, address: str) -> bool:
        """Whether a password is refused for this canonical address."""
        return self.mode is Mode.REQUIRED and address not in self.exceptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person as a provider names them, after every check of the callback.

    `subject` identifies the person at the issuer, and never changes. `address` is the canonical form of the address
    that the provider sent, None without a valid one, and `email` the one to send mail to, None if no mail can reach it.
    `counts` says that the address proves whose account it is. `name` is that of a new user. `groups` is None if the
    provider did not send a usable list, and `groups_problem` says why. `authenticated_at` is when the person last
    proved themselves to the provider.
    """

    provider: IdentityProvider
    subject: str
    address: str | None
    email: str | None
    counts: bool
    name: str
    groups: tuple[str, ...] | None
    groups_problem: str | None = None
    authenticated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamMapping:
    """The roles in a team that an identity provider gives: to the people of groups, and to everyone.

    `version` increases with each change.
    """

    provider_id: str
    team_id: str
    groups: Mapping[str, Role] = field(default_factory=dict)
    everyone: Role | None = None
    version: int = 0

    @property
    def given(self) -> "list[GivenRole]":
        """Every role that it gives, the highest first."""
        given = [GivenRole(role, group) for group, role in self.groups.items()]
        if self.everyone is not None:
            given.append(GivenRole(self.everyone, None))
        return sorted(
            given,
            key=lambda gives: (_HIGHEST_FIRST.index(gives.role), gives.group is None, gives.group),
        )

    def role_of(self, groups: Collection[str]) -> "GivenRole | None":
        """The highest role of a person with these groups. None if they get none."""
        return next(
            (gives for gives in self.given if gives.group is None or gives.group in groups), None
        )


class GivenRole(NamedTuple):
    """A role in a team, and the group that gives it. None if everyone at the provider has the role."""

    role: Role
    group: str | None


_HIGHEST_FIRST = (Role.OWNER, Role.ADMIN, Role.DEVELOPER, Role.MEMBER, Role.VIEWER)
