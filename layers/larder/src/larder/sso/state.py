"""The state of a sign-in in progress. It is sealed in a cookie, so that a start writes nothing.

docs/decisions/sso.md#the-state-is-in-a-cookie
"""

import base64
import hashlib
import json
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hmac import compare_digest

from larder.clock import from_ms, to_ms
from larder.errors import AddressTooLong
from larder.signing import InvalidToken, seal, unseal
from larder.sso.models import IdentityProvider

LIFETIME = timedelta(minutes=10)
MOST_CHARACTERS_OF_PAGES = 2048
"""Of the three addresses together. A browser keeps a cookie of 4,096 bytes, and sealing makes it a third longer."""

_PURPOSE = "sso-state"
_STATE = re.compile(r"(?P<flow>[0-9a-f]{8})\.[A-Za-z0-9_-]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Where the browser goes after a sign-in, after a failed one, and after the first of a new user.

    The last is empty if it is the first.
    """

    callback_url: str
    error_url: str
    new_user_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSignIn:
    """A sign-in between the button and the callback.

    `provider_id` and `provider_version` are those at the start. `session_id` is set if the account is to be linked to
    the user of that session. `asks_login` says that the provider was asked for a new login.
    """

    provider_id: str
    provider_version: int
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    pages: Pages
    session_id: str | None
    asks_login: bool
    started_at: datetime

    @property
    def flow(self) -> str:
        """The part of the cookie's name that says which sign-in it is of."""
        return self.state.partition(".")[0]

    @property
    def state_hash(self) -> str:
        return hashlib.sha256(self.state.encode()).hexdigest()

    @property
    def challenge(self) -> str:
        """The PKCE challenge of the verifier (RFC 7636, S256)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def has_state(self, state: str) -> bool:
        return compare_digest(self.state.encode(), state.encode("utf-8", "surrogatepass"))

    def is_valid(self, now: datetime) -> bool:
        return self.started_at <= now < self.started_at + LIFETIME


def begin(
    provider: IdentityProvider,
    pages: Pages,
    *,
    session_id: str | None = None,
    asks_login: bool = False,
    now: datetime,
) -> PendingSignIn:
    """Begin a sign-in. Raises AddressTooLong."""
    urls = (pages.callback_url, pages.error_url, pages.new_user_url)
    if sum(map(len, urls)) > MOST_CHARACTERS_OF_PAGES:
        raise AddressTooLong
    return PendingSignIn(
        provider_id=provider.id,
        provider_version=provider.version,
        state=f"{secrets.token_hex(4)}.{secrets.token_urlsafe(24)}",
        nonce=secrets.token_urlsafe(24),
        verifier=secrets.token_urlsafe(32),
        pages=pages,
        session_id=session_id,
        asks_login=asks_login,
        started_at=now,
    )


def flow_of(state: str) -> str | None:
    """The part of the cookie's name. None if the text is no state."""
    match = _STATE.fullmatch(state)
    return None if match is None else match["flow"]


def sealed(pending: PendingSignIn) -> str:
    """The value of the cookie."""
    pages = pending.pages
    values = [
        pending.provider_id,
        pending.provider_version,
        pending.state,
        pending.nonce,
        pending.verifier,
        [pages.callback_url, pages.error_url, pages.new_user_url],
        pending.session_id,
        pending.asks_login,
        to_ms(pending.started_at),
    ]
    return seal(json.dumps(values, separators=(",", ":")), purpose=_PURPOSE)


def unsealed(value: str) -> PendingSignIn | None:
    """The sign-in of a cookie's value. None if Larder did not seal it."""
    try:
        text = unseal(value, purpose=_PURPOSE)
    except InvalidToken:
        return None
    provider_id, version, state, nonce, verifier, urls, session_id, asks, started = json.loads(text)
    callback_url, error_url, new_user_url = urls
    return PendingSignIn(
        provider_id=provider_id,
        provider_version=version,
        state=state,
        nonce=nonce,
        verifier=verifier,
        pages=Pages(callback_url=callback_url, error_url=error_url, new_user_url=new_user_url),
        session_id=session_id,
        asks_login=asks,
        started_at=from_ms(started),
    )
