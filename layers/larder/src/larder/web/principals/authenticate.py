"""Authenticate a request by its bearer token: a key or a session.

`Authenticated` is a principal with a valid key or session token, for any team.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from larder import clock
from larder.api_keys.models import ApiKey, Permissions
from larder.api_keys.principals import Principal
from larder.api_keys.verification import verify_key
from larder.errors import Unauthenticated
from larder.web.log import logger
from larder.web.parameters import BearerToken, Token
from larder.web.powertools.resolver import Depends

if TYPE_CHECKING:
    from larder.accounts.models import Session, User


def authenticated(token: BearerToken) -> Principal:
    return authenticate(token, {}, now=clock.now())


def authenticate(
    token: Token, needs: Permissions, *, now: datetime, checked_later: bool = False
) -> Principal:
    """The principal of the token. `needs` applies to keys only: for a session the user's role decides.

    A team's own key and the token of a CI job are refused: they stand for no user.

    With `checked_later`, the caller calls `check_not_ended` of the principal.

    Raises Unauthenticated, MissingPermission, RateLimited.
    """
    if not token.is_session:
        return key_principal(verify_key(token.hash, needs, now=now, checked_later=checked_later))
    # Imported here, because builds use keys and start faster without the account modules.
    from larder.accounts.sessions import find_session_of

    return session_principal(find_session_of(token.hash, now=now))


def key_principal(key: ApiKey) -> Principal:
    logger().append_keys(key_id=key.id)
    return Principal(credential=key)


def session_principal(found: "tuple[Session, User] | None") -> Principal:
    """Raises Unauthenticated."""
    if found is None:
        raise Unauthenticated
    session, user = found
    logger().append_keys(session_id=session.id)
    return Principal(credential=session, user=user)


def revoke_credential(principal: Principal) -> None:
    """Delete the key or session of a request. It is invalid from the next request on."""
    credential = principal.credential
    # Imported here, because only one function revokes a credential.
    if isinstance(credential, ApiKey):
        from larder.api_keys.keys import revoke_key

        revoke_key(credential, actor=principal.actor)
        return
    from larder.accounts.sessions import revoke_session

    revoke_session(credential.user_id, credential.token_hash, actor=principal.actor)


Authenticated = Annotated[Principal, Depends(authenticated)]
