"""The key that signs the provider's tokens. It is kept in a file, because functions keep the public one for a day."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from larder_cli.files import write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_BITS = 2048
_KID = "example"


class SigningKey:
    """An RSA key for RS256. The first use creates it in `file`, or reads it from there."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def sign(self, claims: dict[str, Any]) -> str:
        """An id token with these claims."""
        import jwt

        return jwt.encode(claims, self._key, "RS256", headers={"kid": _KID})

    def public(self) -> dict[str, Any]:
        """The public key as a JWK."""
        from jwt.algorithms import RSAAlgorithm

        jwk: dict[str, Any] = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
        return {**jwk, "kid": _KID, "use": "sig", "alg": "RS256"}

    # PyJWT and a new key take a fifth of a second, so the start of the local cloud does not wait for them.
    @cached_property
    def _key(self) -> RSAPrivateKey:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.rsa import (
            RSAPrivateKey,
            generate_private_key,
        )

        if self._file.exists():
            key = serialization.load_pem_private_key(self._file.read_bytes(), password=None)
            assert isinstance(key, RSAPrivateKey)  # noqa: S101 - no other kind is written
            return key
        made = generate_private_key(public_exponent=65537, key_size=_BITS)
        pem = made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        write_private(self._file, pem.decode("ascii"))
        return made
