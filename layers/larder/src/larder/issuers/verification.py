"""Verify id tokens: JSON web tokens that an issuer has signed (RFC 7519, RFC 7515).

Only the function that exchanges tokens imports this module: PyJWT and cryptography are in a layer of its own
(docs/decisions/ci-tokens.md).
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import jwt
from jwt.utils import base64url_decode

from larder.errors import ExchangeRefused
from larder.issuers.models import IdToken, Jwk
from larder.names import check_unicode

MOST_BYTES = 16 * 1024
LONGEST_S = 24 * 3600
"""The longest lifetime of a token, and its greatest age."""

LEEWAY_S = 30
_ALGORITHMS = frozenset({"RS256", "ES256"})
_REQUIRED = ["iss", "aud", "exp", "iat", "sub"]
_TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_VERIFIER = jwt.PyJWT(options={"enforce_minimum_key_length": True})


def parse(text: str) -> IdToken:
    """Read a token without verifying it. Raises ExchangeRefused."""
    if len(text) > MOST_BYTES:
        raise ExchangeRefused(f"subject_token is larger than {MOST_BYTES} bytes")
    if not _TOKEN.fullmatch(text):
        raise ExchangeRefused("subject_token is not a JSON web token of three parts")
    header, claims = (_part(part) for part in text.split(".")[:2])
    if header.get("alg") not in _ALGORITHMS:
        raise ExchangeRefused("alg of subject_token is not RS256 or ES256")
    if "crit" in header:
        raise ExchangeRefused(
            "subject_token has a header crit, which this service does not support"
        )
    if not isinstance(header.get("kid"), str):
        raise ExchangeRefused("subject_token has no kid")
    for name in ("iss", "aud", "sub"):
        if not isinstance(claims.get(name), str):
            raise ExchangeRefused(f"{name} of subject_token is not one text")
    for name in ("exp", "iat"):
        if type(claims.get(name)) is not int:
            raise ExchangeRefused(f"{name} of subject_token is not a whole number of seconds")
    if "nbf" in claims and type(claims["nbf"]) is not int:
        raise ExchangeRefused("nbf of subject_token is not a whole number of seconds")
    return IdToken(text=text, kid=header["kid"], algorithm=header["alg"], claims=claims)


def verify(token: IdToken, key: Jwk, *, now: datetime) -> None:
    """Check the signature and the times of a token. The rules check its audience. Raises ExchangeRefused."""
    try:
        public = jwt.PyJWK(dict(key))
        if public.algorithm_name != token.algorithm:
            raise ExchangeRefused("alg of subject_token is not that of the issuer's key")
        _VERIFIER.decode(
            token.text,
            key=public,
            algorithms=[public.algorithm_name],
            issuer=token.issuer,
            leeway=LEEWAY_S,
            options={"require": _REQUIRED, "verify_aud": False},
        )
    except jwt.PyJWTError as error:
        raise ExchangeRefused(f"subject_token is not valid: {_reason(error)}") from None
    _check_span(token.claims["iat"], token.claims["exp"], now)


def _check_span(issued: int, ends: int, now: datetime) -> None:
    if ends - issued > LONGEST_S or now.timestamp() - issued > LONGEST_S:
        raise ExchangeRefused("subject_token is older than a day, or valid for longer")


def _part(text: str) -> dict[str, Any]:
    try:
        found = json.loads(base64url_decode(text), object_pairs_hook=_once)
        check_unicode(found)
    except (ValueError, RecursionError):
        raise ExchangeRefused("subject_token is not a JSON web token") from None
    if not isinstance(found, dict):
        raise ExchangeRefused("subject_token is not a JSON web token")
    return found


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Two programs can read a name that comes twice differently."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


_REASONS: tuple[tuple[type[jwt.PyJWTError], str], ...] = (
    (jwt.ExpiredSignatureError, "it has expired"),
    (jwt.ImmatureSignatureError, "nbf or iat is in the future"),
    (jwt.InvalidSignatureError, "its signature is wrong"),
)


def _reason(error: jwt.PyJWTError) -> str:
    return next(
        (reason for kind, reason in _REASONS if isinstance(error, kind)),
        "its form is wrong",
    )
