"""Sessions. Each sign-in starts one. Its token identifies it, and only the token's hash is stored."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder.accounts import repository
from larder.accounts.models import Session, User
from larder.accounts.service import read_account
from larder.actor import PASSWORD, Actor
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import NotSignedIn, TryAgain
from larder.hashing import hash_key, random_id
from larder.rate_limits import guesses
from larder.rate_limits.guesses import Counter
from larder.settings import settings

if TYPE_CHECKING:
    from larder.tables import Read, Write

TOKEN_LENGTH = 32
NOT_REMEMBERED_SECONDS = 86_400
"""How long a session with `rememberMe: false` is stored (docs/clients/better-auth.md#session-cookies)."""

_MAX_USER_AGENT_LENGTH = 256
_TOKEN = re.compile(rf"[A-Za-z0-9]{{{TOKEN_LENGTH}}}")
_TOKEN_HASH = re.compile(r"[A-Za-z0-9_-]{43}")


def new_session(
    user: User,
    *,
    remembered: bool = True,
    ip_address: str | None = None,
    user_agent: str | None = None,
    provider: str | None = None,
    authenticated_at: datetime | None = None,
    lifetime: timedelta | None = None,
    now: datetime,
) -> tuple[Session, str]:
    """Make a session without storing it. Returns it and its token, of which only the hash is stored.

    `provider` and `authenticated_at` are as in `Session`. `lifetime` is that of sessions of managed users.
    """
    token = random_id(TOKEN_LENGTH)
    session = Session(
        id=random_id(),
        token_hash=hash_key(token),
        user_id=user.id,
        created_at=now,
        updated_at=now,
        expires_at=min(now + (lifetime or _lifetime(remembered)), _latest_end(now)),
        generation=user.session_generation,
        remembered=remembered,
        ip_address=ip_address,
        user_agent=None if user_agent is None else user_agent[:_MAX_USER_AGENT_LENGTH],
        provider=provider,
        authenticated_at=authenticated_at,
    )
    return session, token


def start_session(
    user: User,
    *,
    remembered: bool = True,
    ip_address: str | None = None,
    user_agent: str | None = None,
    guessed: Counter | None = None,
    now: datetime,
) -> tuple[Session, str]:
    """Start a session, as `new_session` makes it. Returns it and its token.

    `guessed` counts the wrong passwords, if a password starts the session. Raises TooManyWrongPasswords during a delay.
    """
    session, token = new_session(
        user,
        remembered=remembered,
        ip_address=ip_address,
        user_agent=user_agent,
        now=now,
    )
    accepted = () if guessed is None else guesses.acceptance(guessed, now=now)
    entry = audited(user.id, Action.SIGNED_IN, session.id, Actor(PASSWORD, user.id))
    if not repository.add_session(session, *accepted, entry):
        if guessed is None:
            raise AssertionError("two session tokens are equal")  # of 190 random bits
        guesses.raise_refusal(guessed, now=now)
    return session, token


def holder_of(token_hash: str) -> str | None:
    """The id of the user whose session has this token, even if it has expired or is revoked. None if unknown."""
    return repository.holder_of(token_hash)


def find_session(token: str, *, now: datetime) -> tuple[Session, User] | None:
    """The session of a token, and its user. None if the session is unknown, expired or revoked."""
    return find_session_of(hash_key(token), now=now) if _TOKEN.fullmatch(token) else None


def find_session_of(token_hash: str, *, now: datetime) -> tuple[Session, User] | None:
    """Like `find_session`, by the hash of the token."""
    return if_valid(repository.find_session(token_hash), now=now)


def reading_session(user_id: str, token_hash: str) -> "Read[tuple[Session, User] | None]":
    """The session of a token that this user holds, valid or not, to be read together with other items."""
    return repository.reading_session(user_id, token_hash)


def if_valid(found: tuple[Session, User] | None, *, now: datetime) -> tuple[Session, User] | None:
    """None if the session has expired or was revoked."""
    return found if found is not None and _is_valid(*found, now) else None


def extend_session(session: Session, user: User, *, now: datetime) -> Session:
    """Restart the session's lifetime once the update age has passed, up to the maximum age of a session.

    Sessions that are not remembered do not change, nor do those of users whose access ends: they have to sign in again
    with their provider.
    """
    age = now - session.updated_at
    if user.access_until is not None or not session.remembered:
        return session
    if age < timedelta(seconds=settings().session_update_age_seconds):
        return session
    expires_at = min(now + _lifetime(remembered=True), _latest_end(session.created_at))
    if expires_at == session.expires_at:
        return session
    extended = replace(session, updated_at=now, expires_at=expires_at)
    same = repository.extend_session(extended, ends_at=session.expires_at)
    return extended if same else session


def is_fresh(session: Session, *, now: datetime) -> bool:
    """Whether the user has signed in recently, which actions that are hard to undo require.

    A provider can start a session for a user who signed in to the provider long before.
    """
    signed_in_at = session.authenticated_at or session.created_at
    return now - signed_in_at < timedelta(seconds=settings().session_fresh_age_seconds)


def list_sessions(user: User, *, now: datetime) -> list[Session]:
    """The user's valid sessions, newest first."""
    stored = repository.list_sessions(user.id)
    return [session for session in stored if _is_valid(session, user, now)]


def revoke_session(user_id: str, token: str, *, actor: Actor | None = None) -> None:
    """Revoke the session with this token or token hash. Does nothing if the session is not the user's."""

    def entry(session_id: str) -> "Write":
        return audited(user_id, Action.SESSION_ENDED, session_id, actor)

    if _TOKEN.fullmatch(token):
        repository.delete_session(user_id, hash_key(token), entry)
    elif _TOKEN_HASH.fullmatch(token):
        repository.delete_session(user_id, token, entry)


def revoke_sessions(
    user_id: str, *, kept: Session | None = None, actor: Actor | None = None
) -> None:
    """Revoke all of the user's sessions, or all except `kept`, from the next request on.

    Raises TryAgain. Raises NotSignedIn if the user does not exist, or if `kept` has been revoked in the meantime: of
    two sessions that revoke each other at the same time, at most one stays.
    """
    entry = audited(user_id, Action.SESSIONS_ENDED, user_id, actor)
    for _ in attempts():
        account = read_account(user_id)
        if repository.revoke_other_sessions(account, kept, entry):
            return
        if kept is not None:
            kept = repository.get_session(user_id, kept.token_hash)
            if kept is None or kept.generation < account.user.session_generation:
                raise NotSignedIn
    raise TryAgain


def _is_valid(session: Session, user: User, now: datetime) -> bool:
    ends_at = min(session.expires_at, _latest_end(session.created_at))
    is_current = session.generation == user.session_generation
    return now < ends_at and is_current and user.has_access(now)


def _latest_end(created_at: datetime) -> datetime:
    """A stolen session must not live for as long as the thief uses it."""
    return created_at + timedelta(seconds=settings().session_max_age_seconds)


def _lifetime(remembered: bool) -> timedelta:
    seconds = settings().session_expires_in_seconds if remembered else NOT_REMEMBERED_SECONDS
    return timedelta(seconds=seconds)
