"""Signatures of cookies and of the tokens in verification links, by the deployment's signing secret.

Two secrets are accepted at once: what the previous one signed stays valid while the current one signs what is new, so
that a rotation signs nobody out (docs/operations.md).
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from larder import aws
from larder.clock import to_epoch_seconds
from larder.settings import settings

_KEPT_SECONDS = 300
"""How long an instance keeps the secrets before it asks for them again: a rotation is known everywhere by then."""

_kept: tuple[float, str, tuple[str, ...]] | None = None


class InvalidToken(Exception):
    """It was not signed here, or is no token at all."""


class ExpiredToken(Exception):
    """It was signed here, for a time that has passed."""


def sign(text: str) -> str:
    """The signature of a cookie's value: base64 of HMAC-SHA256 (reference: better-auth.md, 4)."""
    return base64.b64encode(_mac(_secrets()[0], text.encode())).decode()


def is_signed(text: str, signature: str) -> bool:
    """Whether one of the accepted secrets made the signature."""
    given = signature.encode("utf-8", "surrogatepass")
    return any(
        hmac.compare_digest(
            base64.b64encode(_mac(secret, text.encode("utf-8", "surrogatepass"))), given
        )
        for secret in _secrets()
    )


def encode_token(claims: Mapping[str, Any], *, now: datetime, lifetime_s: int) -> str:
    """A JSON Web Token (RFC 7519) with HMAC-SHA256, valid for `lifetime_s` seconds."""
    issued_at = to_epoch_seconds(now)
    payload = {**claims, "iat": issued_at, "exp": issued_at + lifetime_s}
    signed = f"{_segment({'alg': 'HS256', 'typ': 'JWT'})}.{_segment(payload)}"
    return f"{signed}.{_base64url(_mac(_secrets()[0], signed.encode()))}"


def decode_token(token: str, *, now: datetime) -> dict[str, Any]:
    """The claims of a token that was made here. Its header decides nothing. Raises InvalidToken, ExpiredToken."""
    signed, _, signature = token.rpartition(".")
    if not token.isascii() or not any(
        hmac.compare_digest(_base64url(_mac(secret, signed.encode())), signature)
        for secret in _secrets()
    ):
        raise InvalidToken
    payload = signed.partition(".")[2]
    claims: dict[str, Any] = json.loads(
        base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    )
    if to_epoch_seconds(now) >= claims["exp"]:
        raise ExpiredToken
    return claims


def _mac(secret: str, message: bytes) -> bytes:
    return hmac.digest(secret.encode(), message, hashlib.sha256)


def _segment(value: Mapping[str, Any]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def forget_secrets() -> None:
    """Forget the secrets that this instance has read."""
    global _kept  # noqa: PLW0603
    _kept = None


def _secrets() -> tuple[str, ...]:
    """The accepted secrets; the first signs. In Secrets Manager they stand as `{"current", "previous"}`."""
    global _kept  # noqa: PLW0603  # one call in five minutes instead of one a request
    named = settings().signing_secret
    if not named.startswith("arn:"):
        return tuple(named.split(","))
    if _kept is None or _kept[1] != named or time.monotonic() > _kept[0] + _KEPT_SECONDS:
        stored = json.loads(aws.read_secret(named))
        accepted = (stored["current"], stored.get("previous"))
        _kept = (time.monotonic(), named, tuple(secret for secret in accepted if secret))
    return _kept[2]
