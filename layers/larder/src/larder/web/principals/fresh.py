"""What only a fresh session makes: what is trusted, and outlives the session.

These are keys with more than the cache needs, rules, the protection of a team, and its owners and admins. Otherwise, a
stolen session or key could make a credential that stays trusted after the session has ended, or the key is deleted
(docs/decisions/ci-tokens.md).
"""

from larder import clock
from larder.accounts import sessions
from larder.api_keys.models import ApiKey
from larder.api_keys.principals import Principal
from larder.errors import SessionNotFresh, SessionRequired


def is_fresh(principal: Principal) -> bool:
    """Whether the user has signed in recently. False for a key."""
    credential = principal.credential
    return not isinstance(credential, ApiKey) and sessions.is_fresh(credential, now=clock.now())


def check_fresh(principal: Principal) -> None:
    """Raises SessionRequired, SessionNotFresh."""
    if not is_fresh(principal):
        raise SessionNotFresh if principal.key is None else SessionRequired
