"""Authenticate requests to `/api/auth`: the caller types that handlers name in their signatures.

| Type | The caller |
|---|---|
| `SignedIn` | has a session, by its cookie or as a bearer token, or a key if the deployment accepts keys for sessions |
| `KeyMaker` | the same for creating and changing keys, where the code without a session is `UNAUTHORIZED_SESSION` |
| `SignedInInPerson` | has a session, not a key |
| `SignedInLately` | has a fresh session, not a key. By default a session is fresh for a day |
| `Operator` | has a session, not a key, and is one of the deployment's operators |
| `MaybeSignedIn` | is a `SignedIn` caller, or None |
| `MaybeSignedInInPerson` | is a `SignedInInPerson` caller, or None |
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends

from larder import clock
from larder.accounts import sessions
from larder.accounts.models import Session, User
from larder.accounts.service import find_user, is_operator
from larder.api_keys.grants import Grantor
from larder.api_keys.models import ApiKey
from larder.errors import NotSignedIn, OperatorOnly, SessionNotFresh, UnauthorizedSession
from larder.extensions import RequestContext
from larder.settings import settings
from larder.web.callers.api_key import presented_key
from larder.web.cookies import session_token
from larder.web.log import logger
from larder.web.request_context import request_context

_BEARER = re.compile(r"Bearer +(?P<token>[A-Za-z0-9]{32})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A signed-in user. `token` is the session token from the request, and `ctx` describes the request.

    `key` is the API key used in place of a session, if any. Then `token` is the key's id, never the key.
    """

    user: User
    session: Session
    token: str
    ctx: RequestContext
    key: ApiKey | None = None

    @property
    def is_operator(self) -> bool:
        """False for a key: keys are in the environment of builds, so they never get an operator's rights."""
        return self.key is None and is_operator(self.user)

    @property
    def grantor(self) -> Grantor:
        """The caller as the services of API keys expect it."""
        return Grantor(
            user_id=self.user.id, is_operator=self.is_operator, key=self.key, ctx=self.ctx
        )


def maybe_signed_in(request: Request) -> Caller | None:
    """A key goes before a session token. An invalid key is refused even if the request also has a session.

    Raises InvalidApiKey, NotSignedIn, RateLimited, UsageExceeded for a key.
    """
    key = presented_key(request)
    return _signed_in_by(key, request) if key is not None else maybe_signed_in_in_person(request)


def maybe_signed_in_in_person(request: Request) -> Caller | None:
    """Accept a session only. A key in the request is ignored and loses no use."""
    token = presented_token(request)
    found = sessions.find_session(token, now=clock.now()) if token else None
    if token is None or found is None:
        return None
    session, user = found
    logger().append_keys(user_id=user.id)
    return Caller(user=user, session=session, token=token, ctx=request_context(request))


def _signed_in_by(key: ApiKey, request: Request) -> Caller:
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
    return Caller(user=user, session=session, token=key.id, ctx=request_context(request), key=key)


def presented_token(request: Request) -> str | None:
    """The session token of a request. A bearer token goes before the cookie."""
    match = _BEARER.fullmatch(request.headers.get("authorization", ""))
    return match["token"] if match else session_token(request)


MaybeSignedIn = Annotated[Caller | None, Depends(maybe_signed_in)]
MaybeSignedInInPerson = Annotated[Caller | None, Depends(maybe_signed_in_in_person)]


def signed_in(caller: MaybeSignedIn) -> Caller:
    if caller is None:
        raise NotSignedIn
    return caller


SignedIn = Annotated[Caller, Depends(signed_in)]


def key_maker(caller: MaybeSignedIn) -> Caller:
    if caller is None:
        raise UnauthorizedSession
    return caller


KeyMaker = Annotated[Caller, Depends(key_maker)]


def signed_in_in_person(caller: SignedIn) -> Caller:
    """For what a leaked key must not be able to do: change passwords, addresses or sessions, or delete the account."""
    if caller.key is not None:
        raise NotSignedIn
    return caller


SignedInInPerson = Annotated[Caller, Depends(signed_in_in_person)]


def signed_in_lately(caller: SignedInInPerson) -> Caller:
    if not sessions.is_fresh(caller.session, now=clock.now()):
        raise SessionNotFresh
    return caller


def operator(caller: SignedIn) -> Caller:
    if not caller.is_operator:
        raise OperatorOnly
    return caller


SignedInLately = Annotated[Caller, Depends(signed_in_lately)]
Operator = Annotated[Caller, Depends(operator)]
