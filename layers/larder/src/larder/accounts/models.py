"""Types of accounts: users, credentials, sessions."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

from larder.records import Name

CREDENTIAL_PROVIDER: Final = "credential"
"""The `providerId` of accounts that sign in with an address and a password."""

WARNED_BEFORE: Final = timedelta(days=7)
"""How long before the end of their access users are warned.

If the time from the last sign-in to the end is short, they are warned in its last quarter.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user. `email` is the address to send email to. No other user has an address with the same canonical form.

    `email_verified` says that someone opened a link in a mail to the address. That may have been a mail scanner, and
    anyone may have created the account. `proven` says that the person who uses the account receives mail at the
    address: they opened the link while signed in, or set a password with a mailed link, or the operator created the
    account. A proven address is also verified.

    A session is valid while its generation equals the user's, so raising `session_generation` ends all sessions at
    once. `version` increases with every change, `password_version` with every new password. An API key that was created
    when `password_version` was below `keys_from` has ended.

    Sessions and keys of the user are refused from `access_until` on, which each sign-in with a required provider moves,
    and while `suspended_at` is set. Both are None for no end. `managed_by` is the id of the required provider of a
    managed user. Users of version 0.2.0 have none until their next sign-in; the domain of their address says it.
    """

    id: Annotated[str, Name("user_id", "id")]
    email: str
    name: str
    image: str | None = None
    email_verified: bool = False
    proven: bool = False
    created_at: datetime
    updated_at: datetime
    session_generation: int = 0
    password_version: int = 0
    keys_from: Annotated[int, Name(absent=0)] = 0
    access_until: datetime | None = None
    managed_by: str | None = None
    suspended_at: datetime | None = None
    version: int = 0

    def has_access(self, now: datetime) -> bool:
        """Whether sessions and keys of the user work."""
        return self.suspended_at is None and (self.access_until is None or now < self.access_until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """The account record with the provider `credential`: the hash of a user's password."""

    password_hash: Annotated[str, Name("password")]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user with their credential, which is None for a user without a password."""

    user: User
    credential: Credential | None

    @property
    def password_hash(self) -> str | None:
        return None if self.credential is None else self.credential.password_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sign-in. The table stores only `token_hash`, not the token itself.

    A session that is not `remembered` ends when the browser closes, but at the latest after a day. `provider` is the id
    of the identity provider that it was started with, and `authenticated_at` is when the user last signed in there.
    Both are None for a password.
    """

    id: str
    token_hash: str
    user_id: str
    created_at: datetime
    updated_at: datetime
    expires_at: Annotated[datetime, Name("ends_at", "expiresAt")]
    generation: int
    remembered: bool
    ip_address: str | None
    user_agent: str | None
    provider: str | None = None
    authenticated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccount:
    """The account record of a user at an identity provider. A user has at most one for each provider.

    `issuer` and `subject` identify the person. `address` is the canonical form of the address that the provider named,
    None if it named none. `version` increases with each sign-in.
    """

    id: str
    user_id: str
    provider_id: str
    issuer: str
    subject: Annotated[str, Name("account_id")]
    address: str | None
    created_at: datetime
    updated_at: datetime
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetToken:
    """What a reset link can change: the password of this user, while version and address are still the same.

    `address` is the canonical form of the address that the link was sent to. It is None in tokens of version 0.1.0.
    """

    user_id: str
    password_version: int
    address: str | None
    expires_at: Annotated[datetime, Name("ends_at")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange:
    """Changes to a user's profile. None leaves a property as it is."""

    name: str | None = None
    image: str | None = None
    removes_image: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordChange:
    """A signed-in user's request for a new password."""

    current: str
    new: str
    ends_other_sessions: bool
    ends_keys: bool = False


class EmailTaken(Exception):
    """Another user has this address, or one with the same canonical form."""
