"""Verify id tokens: JSON web tokens that an issuer has signed (RFC 7519, RFC 7515).

There are two profiles. `parse` and `verify` are for tokens of CI jobs, which a client sends. `parse_sign_in` and
`verify_sign_in` are for those that Larder gets from the token endpoint of a provider, where more forms are usual.

Only functions that exchange tokens import this module: PyJWT and cryptography are in a layer of their own
(docs/decisions/ci-tokens.md).
"""

import hmac
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import jwt
from jwt.utils import base64url_decode

from larder.errors import ExchangeRefused
from larder.issuers.models import (
    SIGN_IN_ALGORITHMS,
    IdToken,
    InvalidIdToken,
    Jwk,
    SignInRules,
    SignInToken,
)
from larder.names import check_unicode

MOST_BYTES = 16 * 1024

LONGEST_S = 24 * 3600
"""The longest lifetime of a token, and its greatest age."""

LEEWAY_S = 30
SIGN_IN_LEEWAY_S = 90
"""How far the clock of a provider may be off. Many run on a server of the company."""

MOST_SUBJECT_CHARACTERS = 255
_SIGN_IN_AGE_S = 600
"""How far `iat` of a provider's token may be from now. The token is made during the sign-in."""

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
    try:
        header, claims = _header_and_claims(text)
    except ValueError:
        raise ExchangeRefused("subject_token is not a JSON web token") from None
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


def parse_sign_in(text: str, algorithms: Collection[str]) -> SignInToken:
    """Read a provider's token without verifying it. `algorithms` are the pinned ones. Raises InvalidIdToken."""
    if not _TOKEN.fullmatch(text):
        raise InvalidIdToken("form")
    try:
        header, claims = _header_and_claims(text)
    except ValueError:
        raise InvalidIdToken("form") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in SIGN_IN_ALGORITHMS or algorithm not in algorithms:
        raise InvalidIdToken("alg")
    if "crit" in header:
        raise InvalidIdToken("crit")
    if not (kid is None or isinstance(kid, str)):
        raise InvalidIdToken("kid")
    return SignInToken(text=text, kid=kid, algorithm=algorithm, claims=claims)


def verify_sign_in(token: SignInToken, key: Jwk, rules: SignInRules, *, now: datetime) -> None:
    """Check the signature and the claims of a provider's token (OpenID Connect Core, 3.1.3.7).

    Raises InvalidIdToken. The caller has found `key` by the token's `kid` in the provider's own key set.
    """
    _check_signature(token, key, rules, requires=[*_REQUIRED, "nonce"])
    claims = token.claims
    for name in ("iss", "sub", "nonce"):
        if not isinstance(claims[name], str):
            raise InvalidIdToken(name)
    if not 0 < len(claims["sub"]) <= MOST_SUBJECT_CHARACTERS:
        raise InvalidIdToken("sub")
    if not hmac.compare_digest(claims["nonce"].encode(), rules.nonce.encode()):
        raise InvalidIdToken("nonce")
    _check_audience(claims, rules.client_id)
    if abs(now.timestamp() - _seconds(claims, "iat")) > _SIGN_IN_AGE_S:
        raise InvalidIdToken("iat")
    for name in ("exp", "nbf", "auth_time"):
        if name in claims:
            _seconds(claims, name)


def verify_userinfo(token: SignInToken, key: Jwk, rules: SignInRules) -> None:
    """Check the signature of userinfo, and that it is of the issuer and for the client (OpenID Connect Core, 5.3.2).

    Raises InvalidIdToken. The caller compares `sub` with that of the id token.
    """
    _check_signature(token, key, rules, requires=["iss", "aud", "sub"])
    if "nonce" in token.claims:
        # An id token is no userinfo.
        raise InvalidIdToken("nonce")
    _check_audience(token.claims, rules.client_id)


def _check_signature(
    token: SignInToken, key: Jwk, rules: SignInRules, *, requires: Sequence[str]
) -> None:
    """Raises InvalidIdToken."""
    if key.get("alg", token.algorithm) != token.algorithm:
        raise InvalidIdToken("alg")
    try:
        _VERIFIER.decode(
            token.text,
            key=jwt.PyJWK(dict(key), algorithm=token.algorithm),
            algorithms=[token.algorithm],
            issuer=rules.issuer,
            leeway=SIGN_IN_LEEWAY_S,
            options={"require": list(requires), "verify_aud": False},
        )
    except jwt.PyJWTError as error:
        raise InvalidIdToken(type(error).__name__) from None
    except (TypeError, ValueError, OverflowError):
        raise InvalidIdToken("form") from None


def _check_audience(claims: Mapping[str, Any], client_id: str) -> None:
    audience = claims["aud"]
    named = [audience] if isinstance(audience, str) else audience
    if not isinstance(named, list) or client_id not in named:
        raise InvalidIdToken("aud")
    # A token for several clients says which of them asked for it.
    if (len(named) > 1 or "azp" in claims) and claims.get("azp") != client_id:
        raise InvalidIdToken("azp")


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    """A time. Some providers send fractions of a second."""
    value = claims[name]
    try:
        seconds = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds):
        raise InvalidIdToken(name)
    return seconds


def _header_and_claims(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Raises ValueError."""
    header, claims, _ = text.split(".")
    return _part(header), _part(claims)


def _part(text: str) -> dict[str, Any]:
    """Raises ValueError."""
    try:
        found = json.loads(base64url_decode(text), object_pairs_hook=_once)
        check_unicode(found)
    except RecursionError:
        raise ValueError from None
    if not isinstance(found, dict):
        raise ValueError
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
