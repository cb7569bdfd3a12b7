"""Authenticate requests to `/api/auth`: the principals that handlers name in their signatures.

| Type | The principal |
|---|---|
| `SignedIn` | has a session, by its cookie or as a bearer token, or a key if the deployment accepts keys for sessions |
| `KeyMaker` | the same for creating and changing keys, where the code without a session is `UNAUTHORIZED_SESSION` |
| `SignedInInPerson` | has a session, not a key |
| `SignedInLately` | has a fresh session, not a key. By default a session is fresh for a day |
| `Operator` | has a session, not a key, and is one of the deployment's operators |
| `MaybeSignedIn` | is a `SignedIn` principal, or None |
| `MaybeSignedInInPerson` | is a `SignedInInPerson` principal, or None |
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from larder import clock
from larder.accounts import sessions
from larder.accounts.models import Session, User
from larder.accounts.service import find_user
from larder.api_keys.models import ApiKey
from larder.api_keys.principals import Principal
from larder.errors import (
    NotSignedIn,
    OperatorOnly,
    SessionNotFresh,
    SessionRequired,
)
from larder.settings import settings
from larder.web.cookies import is_signed_by_the_old_secret, renewed_cookies, session_token
from larder.web.errors import (
    UnauthorizedSession,
)
from larder.web.log import logger
from larder.web.powertools.resolver import Cookie, Depends, Request
from larder.web.principals.api_key import presented_key

_BEARER = re.compile(r"Bearer +(?P<token>[A-Za-z0-9]{32})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPrincipal(Principal):
    """A principal whose user the request has read, with the session as clients of `/api/auth` see it.

    `token` is the session's token from the request. With a key, `session` exists only during the request, and `token`
    is the key's id, never the key.
    """

    user: User
    session: Session
    token: str


def maybe_signed_in(request: Request) -> UserPrincipal | None:
    """A key goes before a session token. An invalid key is refused even if the request also has a session.

    Raises InvalidApiKey, NotSignedIn, RateLimited, UsageExceeded for a key.
    """
    key = presented_key(request)
    return _signed_in_by(key) if key is not None else maybe_signed_in_in_person(request)


def maybe_signed_in_in_person(request: Request) -> UserPrincipal | None:
    """Accept a session only. A key in the request is ignored and loses no use."""
    token = presented_token(request)
    found = sessions.find_session(token, now=clock.now()) if token else None
    if token is None or found is None:
        return None
    session, user = found
    logger().append_keys(user_id=user.id, session_id=session.id)
    return UserPrincipal(credential=session, user=user, session=session, token=token)


def _signed_in_by(key: ApiKey) -> UserPrincipal:
    """The session for a request with a key. It is not stored, and exists only during the request."""
    user = find_user(key.user_id)
    if user is None:
        raise NotSignedIn
    now = clock.now()
    lifetime = timedelta(seconds=settings().session_expires_in_seconds)
    session = Session(
        id=key.id,
        token_hash="",
        user_id=user.id,
        created_at=now,
        updated_at=now,
        expires_at=key.expires_at or now + lifetime,
        generation=user.session_generation,
        remembered=False,
        ip_address=None,
        user_agent=None,
    )
    logger().append_keys(user_id=user.id, key_id=key.id)
    return UserPrincipal(credential=key, user=user, session=session, token=key.id)


def presented_token(request: Request) -> str | None:
    """The session token of a request. A bearer token goes before the cookie."""
    match = _BEARER.fullmatch(request.headers.get("authorization", ""))
    return match["token"] if match else session_token(request)


MaybeSignedIn = Annotated[UserPrincipal | None, Depends(maybe_signed_in)]
MaybeSignedInInPerson = Annotated[UserPrincipal | None, Depends(maybe_signed_in_in_person)]


def signed_in(principal: MaybeSignedIn) -> UserPrincipal:
    if principal is None:
        raise NotSignedIn
    return principal


SignedIn = Annotated[UserPrincipal, Depends(signed_in)]


def key_maker(principal: MaybeSignedIn) -> UserPrincipal:
    if principal is None:
        raise UnauthorizedSession
    return principal


KeyMaker = Annotated[UserPrincipal, Depends(key_maker)]


def signed_in_in_person(principal: SignedIn) -> UserPrincipal:
    """For what a leaked key must not be able to do: change passwords, addresses or sessions, or delete the account."""
    if principal.key is not None:
        raise NotSignedIn
    return principal


SignedInInPerson = Annotated[UserPrincipal, Depends(signed_in_in_person)]


def signed_in_lately(principal: SignedInInPerson) -> UserPrincipal:
    if not sessions.is_fresh(principal.session, now=clock.now()):
        raise SessionNotFresh
    return principal


def operator(principal: SignedIn) -> UserPrincipal:
    if not principal.is_operator:
        raise OperatorOnly
    return principal


SignedInLately = Annotated[UserPrincipal, Depends(signed_in_lately)]
Operator = Annotated[UserPrincipal, Depends(operator)]


def current_session(principal: UserPrincipal, request: Request) -> tuple[Session, Sequence[Cookie]]:
    """The session of a browser that opens a page, which a use extends once a day, and the cookies to set for it.

    They are set again then, and after a rotation of the signing secret, so that the session outlives the next rotation
    too.
    """
    session = sessions.extend_session(principal.session, principal.user, now=clock.now())
    is_due = session != principal.session or is_signed_by_the_old_secret(request)
    if not is_due:
        return session, ()
    return session, renewed_cookies(request, principal.token, remembered=session.remembered)


def is_fresh(principal: Principal) -> bool:
    """Whether the user has signed in recently. False for a key."""
    credential = principal.credential
    return not isinstance(credential, ApiKey) and sessions.is_fresh(credential, now=clock.now())


def check_fresh(principal: Principal) -> None:
    """Call this before what is trusted and outlives the session. Raises SessionRequired, SessionNotFresh.

    These are keys with more than the cache needs, rules, the protection of a team, and its owners and admins.
    Otherwise, a stolen session or key could make a credential that stays trusted after the session has ended, or the
    key is deleted (docs/decisions/ci-tokens.md).
    """
    if not is_fresh(principal):
        raise SessionNotFresh if principal.key is None else SessionRequired
