"""What a user is, how they sign in, and what a session is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

CREDENTIAL_PROVIDER: Final = "credential"
"""The `providerId` of accounts that sign in with an address and a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person. `email` is the address as mail is sent to it; nobody else has one that mail treats as the same.

    A session counts while its generation is the user's: raising `session_generation` ends all of them at once.
    `version` goes up with every change, `password_version` with every password.
    """

    id: str
    email: str
    name: str
    image: str | None = None
    email_verified: bool = False
    created_at: datetime
    updated_at: datetime
    session_generation: int = 0
    password_version: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """The account record with the provider `credential`: the hash of a user's password."""

    password_hash: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user and how they sign in. `credential` is None for a user without a password."""

    user: User
    credential: Credential | None

    @property
    def password_hash(self) -> str | None:
        return None if self.credential is None else self.credential.password_hash


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sign-in. `token_hash` is all that the table keeps of its token.

    One that is not `remembered` ends when the browser closes, or a day after it began, whichever is first.
    """

    id: str
    token_hash: str
    user_id: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    generation: int
    remembered: bool
    ip_address: str | None
    user_agent: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange:
    """What a user changes of their own; None for what stays."""

    name: str | None = None
    image: str | None = None
    removes_image: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordChange:
    """What somebody who is signed in wants their password to be."""

    current: str
    new: str
    ends_other_sessions: bool


class EmailTaken(Exception):
    """Another user has this address, or one that mail treats as the same."""
