"""Types of issuers of id tokens."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Jwk = Mapping[str, Any]
"""A public key as the issuer publishes it (RFC 7517)."""

SIGN_IN_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""The algorithms of providers: every usual one with a public key."""


class InvalidIdToken(Exception):
    """A provider's token is refused. The message names the part that breaks a rule, without its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """The public keys of an issuer at `fetched_at`. No instance fetches them again before `next_fetch_at`."""

    keys: tuple[Jwk, ...] = ()
    fetched_at: datetime | None = None
    next_fetch_at: datetime | None = None

    def key(self, kid: str | None) -> Jwk | None:
        """The key with this id. None if there is none, or several. Without an id, the only key of the set.

        An issuer whose keys have no ids can still name one in its tokens.
        """
        named = any("kid" in key for key in self.keys)
        found = [key for key in self.keys if kid is None or not named or key.get("kid") == kid]
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer(KeySet):
    """An issuer that a rule names, or that the operator has added.

    `jwks_uri` is set if the operator named the address of the keys; otherwise the issuer's own configuration does.
    """

    url: str
    is_added: bool
    jwks_uri: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdToken:
    """An id token before its verification. Its claims are what the sender says."""

    text: str
    kid: str
    algorithm: str
    claims: Mapping[str, Any]

    @property
    def issuer(self) -> str:
        return str(self.claims["iss"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInToken:
    """The id token of a provider before its verification."""

    text: str = field(repr=False)
    kid: str | None
    algorithm: str
    claims: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRules:
    """What the id token of one sign-in must have. `nonce` is that of the sign-in."""

    issuer: str
    client_id: str
    nonce: str = field(repr=False)
