"""The address at the provider that a sign-in leads to (OpenID Connect Core, 3.1.2.1)."""

from urllib.parse import urlencode

from larder.sso.models import IdentityProvider
from larder.sso.state import PendingSignIn

RESERVED = frozenset(
    {
        *("client_id", "client_secret", "redirect_uri", "response_type", "response_mode", "scope"),
        *("state", "nonce", "code_challenge", "code_challenge_method", "request", "request_uri"),
    }
)
"""Parameters that only Larder sets."""


def redirect_uri(provider_id: str, origin: str) -> str:
    """The address that the provider sends the browser back to. `origin` is the deployment's.

    Each provider has one of its own, so that the reply of one cannot pass for that of another.
    """
    return f"{origin}/api/auth/callback/{provider_id}"


def authorization_url(
    provider: IdentityProvider,
    pending: PendingSignIn,
    *,
    origin: str,
    login_hint: str | None = None,
    prompt: str | None = None,
) -> str:
    """PKCE is always sent, and never relied on alone: some providers ignore it. The nonce is always required."""
    query = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": redirect_uri(provider.id, origin),
        "scope": " ".join(provider.scopes),
        "state": pending.state,
        "nonce": pending.nonce,
        "code_challenge": pending.challenge,
        "code_challenge_method": "S256",
    }
    if login_hint:
        query["login_hint"] = login_hint
    if prompt:
        query["prompt"] = prompt
    if pending.asks_login:
        query["max_age"] = "0"
    address = provider.endpoints.authorization
    return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"
