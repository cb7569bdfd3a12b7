"""Types of issuers of id tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Jwk = Mapping[str, Any]
"""A public key as the issuer publishes it (RFC 7517)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An issuer that a rule names, or that the operator has added.

    `keys` are its public keys at `fetched_at`. `next_fetch_at` is the earliest time at which an instance fetches them
    again. `jwks_uri` is set if the operator named the address of the keys; otherwise the issuer's own configuration
    does.
    """

    url: str
    is_added: bool
    jwks_uri: str | None
    keys: tuple[Jwk, ...]
    fetched_at: datetime | None
    next_fetch_at: datetime | None

    def key(self, kid: str) -> Jwk | None:
        """The key with this id. None if there is none, or several."""
        found = [key for key in self.keys if key.get("kid") == kid]
        return found[0] if len(found) == 1 else None


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
