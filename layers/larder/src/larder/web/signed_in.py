"""Who is signed in at `/api/auth`: the caller types that handlers name in their signatures.

| Type | The caller |
|---|---|
| `SignedIn` | has a session, by its cookie or its token as a bearer token |
| `SignedInLately` | has one that began lately: a day by default |
| `Operator` | is signed in, and one of the deployment's operators |
| `MaybeSignedIn` | is signed in or is None |
"""

import re
from dataclasses import dataclass
from typing import Annotated

from aws_lambda_powertools.event_handler import Request
from aws_lambda_powertools.event_handler.depends import Depends

from larder import clock
from larder.accounts import sessions
from larder.accounts.models import Session, User
from larder.accounts.service import is_operator
from larder.errors import OperatorOnly, SessionNotFresh, UnauthorizedSession
from larder.web.cookies import session_token
from larder.web.log import logger

_BEARER = re.compile(r"Bearer +(?P<token>[A-Za-z0-9]{32})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody who is signed in. `token` is the session's own, which the caller has sent."""

    user: User
    session: Session
    token: str

    @property
    def is_operator(self) -> bool:
        return is_operator(self.user)


def maybe_signed_in(request: Request) -> Caller | None:
    token = presented_token(request)
    found = sessions.find_session(token, now=clock.now()) if token else None
    if token is None or found is None:
        return None
    session, user = found
    logger().append_keys(user_id=user.id)
    return Caller(user=user, session=session, token=token)


def presented_token(request: Request) -> str | None:
    """The session token that a request carries; a bearer token goes before the cookie."""
    match = _BEARER.fullmatch(request.headers.get("authorization", ""))
    return match["token"] if match else session_token(request)


MaybeSignedIn = Annotated[Caller | None, Depends(maybe_signed_in)]


def signed_in(caller: MaybeSignedIn) -> Caller:
    if caller is None:
        raise UnauthorizedSession
    return caller


SignedIn = Annotated[Caller, Depends(signed_in)]


def signed_in_lately(caller: SignedIn) -> Caller:
    if not sessions.is_fresh(caller.session, now=clock.now()):
        raise SessionNotFresh
    return caller


def operator(caller: SignedIn) -> Caller:
    if not caller.is_operator:
        raise OperatorOnly
    return caller


SignedInLately = Annotated[Caller, Depends(signed_in_lately)]
Operator = Annotated[Caller, Depends(operator)]
