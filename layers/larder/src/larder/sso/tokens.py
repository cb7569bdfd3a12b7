"""Requests to a provider's token endpoint and userinfo. Nothing that they return is stored or logged."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from larder.errors import TooManyRequests
from larder.issuers.fetching import Unreachable, fetch_userinfo, post_form
from larder.rate_limits.models import PROVIDER_TOKENS
from larder.rate_limits.service import take_if_counted
from larder.sso import service
from larder.sso.authorization import redirect_uri
from larder.sso.refusals import Refusal, SignInRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from larder.sso.models import IdentityProvider
    from larder.sso.state import PendingSignIn

CLIENT_SECRET_POST = "client_secret_post"  # noqa: S105  # a method
_INVALID_CLIENT = "invalid_client"
_ERRORS = frozenset(
    {
        "invalid_request",
        _INVALID_CLIENT,
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    }
)
"""The errors of RFC 6749, 5.2. Others are not logged: a provider can put any text there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The reply to a code."""

    id_token: str = field(repr=False)
    access_token: str | None = field(repr=False)


def exchange_code(
    provider: IdentityProvider,
    code: str,
    pending: PendingSignIn,
    *,
    origin: str,
    loopback: bool,
    now: datetime,
) -> Tokens:
    """Exchange a code for tokens. Raises SignInRefused.

    While a former client secret counts, it is tried if the provider does not know the current one yet.
    """
    try:
        take_if_counted(f"sso-tokens#{provider.id}", PROVIDER_TOKENS, now=now)
    except TooManyRequests:
        raise SignInRefused(Refusal.PROVIDER_UNAVAILABLE, "too_many_requests") from None
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri(provider.id, origin),
        "code_verifier": pending.verifier,
    }
    status, reply = _posted(provider, form, loopback=loopback, now=now)
    if status >= 500:
        raise SignInRefused(Refusal.PROVIDER_UNAVAILABLE, f"status_{status}")
    id_token, access_token = reply.get("id_token"), reply.get("access_token")
    if status != 200 or not isinstance(id_token, str):
        error = reply.get("error")
        known = isinstance(error, str) and error in _ERRORS
        raise SignInRefused(Refusal.INVALID_CODE, str(error) if known else f"status_{status}")
    return Tokens(
        id_token=id_token, access_token=access_token if isinstance(access_token, str) else None
    )


def _posted(
    provider: IdentityProvider, form: Mapping[str, str], *, loopback: bool, now: datetime
) -> tuple[int, dict[str, Any]]:
    """The reply to the first secret that the provider knows, or else to the last. Raises SignInRefused."""
    *others, last = _secrets(provider, now)
    for secret in others:
        status, reply = _posted_with(secret, provider, form, loopback=loopback)
        if reply.get("error") != _INVALID_CLIENT:
            return status, reply
    return _posted_with(last, provider, form, loopback=loopback)


def _posted_with(
    secret: str | None, provider: IdentityProvider, form: Mapping[str, str], *, loopback: bool
) -> tuple[int, dict[str, Any]]:
    headers, own = client_proof(provider, secret)
    try:
        return post_form(
            provider.endpoints.token, {**form, **own}, headers=headers, loopback=loopback
        )
    except Unreachable:
        raise SignInRefused(Refusal.PROVIDER_UNAVAILABLE, "token_endpoint") from None


def userinfo(provider: IdentityProvider, tokens: Tokens, *, loopback: bool) -> dict[str, Any] | str:
    """What the provider says about the person beyond the id token, empty without a userinfo endpoint.

    A provider that signs it sends a JSON web token, which the caller has to verify.

    Raises SignInRefused.
    """
    if provider.endpoints.userinfo is None or tokens.access_token is None:
        return {}
    try:
        return fetch_userinfo(provider.endpoints.userinfo, tokens.access_token, loopback=loopback)
    except Unreachable:
        raise SignInRefused(Refusal.PROVIDER_UNAVAILABLE, "userinfo") from None


def _secrets(provider: IdentityProvider, now: datetime) -> Sequence[str | None]:
    if provider.secret is None:
        return [None]
    found = service.unsealed_secrets(provider, now=now)
    if not found:
        # The signing secret that sealed it is no longer accepted.
        raise SignInRefused(Refusal.PROVIDER_UNAVAILABLE, "client_secret_is_lost")
    return found


def client_proof(
    provider: IdentityProvider, secret: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """The headers and the fields that prove the client (RFC 6749, 2.3.1: both are encoded as in a form first)."""
    if secret is None:
        return {}, {"client_id": provider.client_id}
    if provider.endpoints.authentication == CLIENT_SECRET_POST:
        return {}, {"client_id": provider.client_id, "client_secret": secret}
    pair = f"{quote_plus(provider.client_id)}:{quote_plus(secret)}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, {}
