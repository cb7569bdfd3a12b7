"""Signatures of cookies and of the tokens in links, and the encryption of mail in the outbox, by the signing secret.

Two secrets are accepted: the current and the previous one, so that a rotation signs no user out (docs/operations.md).
An instance caches the secrets for some minutes, so after a rotation some instances do not have the new one yet and
would refuse its signatures. Therefore the new secret is accepted at once, but signs only when every instance has it.
Instances do not read the secret again on an unknown signature, because attackers could then cause any number of reads.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from larder import aws, clock
from larder.clock import to_epoch_seconds
from larder.errors import TryAgain
from larder.instance import Remembered
from larder.settings import edge_key_file, settings

_KEPT = timedelta(minutes=5)
"""How long an instance caches the secrets."""

KNOWN_AFTER = _KEPT + timedelta(minutes=1)
"""How long after a rotation every instance has the new secret. One minute of it is for clock differences."""

_SECRET_BYTES = 32
_NONCE_BYTES = 16
_MAC_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningSecrets:
    """The accepted secrets. `put_at` is the time of the last rotation, or of the first secret, by AWS's clock."""

    current: str = field(repr=False)
    previous: str | None = field(repr=False)
    put_at: datetime | None

    @property
    def accepted(self) -> tuple[str, ...]:
        return (self.current, self.previous) if self.previous else (self.current,)

    def signing(self, *, now: datetime) -> str:
        """The secret that signs: the current one as soon as every instance accepts it."""
        if self.previous and self.put_at and now < self.put_at + KNOWN_AFTER:
            return self.previous
        return self.current


@dataclass(frozen=True, slots=True)
class EdgeKey:
    """The key that signs addresses of the edge. The edge finds it by its id (docs/edge.md)."""

    id: str
    key: str = field(repr=False)


class EdgeKeyUnreadable(Exception):
    """The key of the edge cannot be read, or is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    read_at: datetime
    secrets: SigningSecrets


_kept: Remembered[str, _Kept] = Remembered(1)
"""By the ARN of the secret."""


class InvalidToken(Exception):
    """The token is not from this deployment, or not a token at all."""


class ExpiredToken(Exception):
    """The token is from this deployment, but has expired."""


def sign(text: str) -> str:
    """The signature of a cookie's value: base64 of HMAC-SHA256 (docs/clients/better-auth.md#session-cookies)."""
    return base64.b64encode(_mac(_signing_secret(), text.encode())).decode()


def is_signed(text: str, signature: str) -> bool:
    """Whether one of the accepted secrets made the signature."""
    return any(_is_signed_by(secret, text, signature) for secret in _secrets().accepted)


def is_signed_anew(text: str, signature: str) -> bool:
    """Whether the secret that signs now made the signature, so that it stays valid after the next rotation."""
    return _is_signed_by(_signing_secret(), text, signature)


def encode_token(claims: Mapping[str, Any], *, now: datetime, lifetime_s: int) -> str:
    """A JSON Web Token (RFC 7519) with HMAC-SHA256, valid for `lifetime_s` seconds."""
    issued_at = to_epoch_seconds(now)
    payload = {**claims, "iat": issued_at, "exp": issued_at + lifetime_s}
    signed = f"{_segment({'alg': 'HS256', 'typ': 'JWT'})}.{_segment(payload)}"
    return f"{signed}.{_base64url(_mac(_signing_secret(), signed.encode()))}"


def decode_token(token: str, *, now: datetime) -> dict[str, Any]:
    """Verify a token and return its claims. Its header is ignored. Raises InvalidToken, ExpiredToken."""
    signed, _, signature = token.rpartition(".")
    # Users know the signature of their session's token, by the same secret. It has no header.
    if (
        not token.isascii()
        or "." not in signed
        or not any(
            hmac.compare_digest(_base64url(_mac(secret, signed.encode())), signature)
            for secret in _secrets().accepted
        )
    ):
        raise InvalidToken
    payload = signed.partition(".")[2]
    claims: dict[str, Any] = json.loads(
        base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    )
    if to_epoch_seconds(now) >= claims["exp"]:
        raise ExpiredToken
    return claims


def seal(text: str, *, purpose: str, with_secret: str | None = None) -> str:
    """Encrypt a text with a key for this purpose, which is derived from the signing secret. `unseal` decrypts it.

    A rotation names the secret that will stay, `with_secret`.
    """
    secret = with_secret or _signing_secret()
    data = text.encode("utf-8", "surrogatepass")
    nonce = secrets.token_bytes(_NONCE_BYTES)
    encrypted = _encrypted(secret, purpose, nonce, data)
    tag = _sealing_mac(secret, purpose, nonce + encrypted)
    return base64.b64encode(tag + nonce + encrypted).decode()


def unseal(sealed: str, *, purpose: str, accepted: Collection[str] = ()) -> str:
    """Decrypt a sealed text. Raises InvalidToken for any other text, also if none of the accepted secrets sealed it.

    These are those of the deployment, unless a rotation names others.
    """
    try:
        data = base64.b64decode(sealed, validate=True)
    except ValueError:
        raise InvalidToken from None
    tag, rest = data[:_MAC_BYTES], data[_MAC_BYTES:]
    nonce, encrypted = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
    for secret in accepted or _secrets().accepted:
        if hmac.compare_digest(_sealing_mac(secret, purpose, rest), tag):
            return _encrypted(secret, purpose, nonce, encrypted).decode("utf-8", "surrogatepass")
    raise InvalidToken


def _encrypted(secret: str, purpose: str, nonce: bytes, data: bytes) -> bytes:
    """`data` XOR a key stream. Doing it twice decrypts it. Each nonce has a stream of its own."""
    key = _mac(secret, f"encrypt\0{purpose}".encode())
    stream = hashlib.shake_256(key + nonce).digest(len(data))
    return bytes(byte ^ other for byte, other in zip(data, stream, strict=True))


def _sealing_mac(secret: str, purpose: str, message: bytes) -> bytes:
    key = _mac(secret, f"authenticate\0{purpose}".encode())
    return hmac.digest(key, message, hashlib.sha256)


def _is_signed_by(secret: str, text: str, signature: str) -> bool:
    made = base64.b64encode(_mac(secret, text.encode("utf-8", "surrogatepass")))
    return hmac.compare_digest(made, signature.encode("utf-8", "surrogatepass"))


def _mac(secret: str, message: bytes) -> bytes:
    return hmac.digest(secret.encode(), message, hashlib.sha256)


def _segment(value: Mapping[str, Any]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def read_secrets() -> SigningSecrets:
    """Read the accepted secrets. Secrets Manager holds them as `{"current", "previous"}`; `put_edge_key` adds to it."""
    named = settings().signing_secret
    if not named.startswith("arn:"):
        current, _, previous = named.partition(",")
        return SigningSecrets(current=current, previous=previous or None, put_at=None)
    text, put_at = aws.read_secret(named)
    stored = json.loads(text)
    return SigningSecrets(
        current=stored["current"],
        previous=stored.get("previous") or None,
        put_at=_rotated_at(stored) or put_at,
    )


def put_secrets(*, current: str, previous: str | None) -> None:
    """Store the secrets that a stack accepts from now on. The key of the edge stays."""
    arn = settings().signing_secret
    before = json.loads(aws.read_secret(arn)[0])
    stored = {"current": current, "previous": previous or ""}
    if edge := before.get("edge"):
        stored["edge"] = edge
    aws.write_secret(arn, json.dumps(stored))


def _rotated_at(stored: Mapping[str, Any]) -> datetime | None:
    """When the secrets were rotated, if the key of the edge was stored after that."""
    rotated_at = stored.get("rotated_at")
    return datetime.fromisoformat(rotated_at) if rotated_at else None


def read_edge_key() -> EdgeKey | None:
    """Read the key of the edge. None if the edge is not in use. Raises EdgeKeyUnreadable."""
    try:
        stored = _stored_edge_key()
        return _edge_key(stored["id"], stored["key"]) if stored else None
    except (
        TryAgain,
        aws.ClientError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    ) as error:
        raise EdgeKeyUnreadable from error


def _edge_key(id: str, key: str) -> EdgeKey:
    """Raises ValueError for a key that the edge cannot have."""
    if not (id and id.isalnum() and len(id) <= 16 and len(bytes.fromhex(key)) == _SECRET_BYTES):
        raise ValueError("edge: not an id and a key")
    return EdgeKey(id, key)


def _stored_edge_key() -> dict[str, str] | None:
    if path := edge_key_file():
        try:
            with open(path) as file:  # noqa: PTH123 - pathlib makes cold starts longer
                stored: dict[str, str] = json.load(file)
        except FileNotFoundError:
            return None
        return stored
    named = settings().signing_secret
    if not named.startswith("arn:"):
        return None
    of_stack: dict[str, str] | None = json.loads(aws.read_secret(named)[0]).get("edge")
    return of_stack


def put_edge_key(key: EdgeKey | None) -> None:
    """Store the key of the edge, so that functions use it within five minutes. With None, they stop using the edge.

    The secrets, and when they were rotated, stay.
    """
    described = None if key is None else {"id": key.id, "key": key.key}
    if path := edge_key_file():
        _write_or_delete(path, described)
        return
    arn = settings().signing_secret
    text, put_at = aws.read_secret(arn)
    stored = json.loads(text)
    stored["rotated_at"] = clock.to_iso(_rotated_at(stored) or put_at)
    stored.pop("edge", None)
    if described:
        stored["edge"] = described
    aws.write_secret(arn, json.dumps(stored))


def _write_or_delete(path: str, described: Mapping[str, str] | None) -> None:
    # Only the operator's command gets here.
    from pathlib import Path

    if described is None:
        Path(path).unlink(missing_ok=True)
        return
    # A reader finds the whole file, old or new. Only its owner can read it.
    temporary = Path(f"{path}.tmp")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(described))
    temporary.replace(path)


def random_secret() -> str:
    return secrets.token_hex(_SECRET_BYTES)


def _signing_secret() -> str:
    return _secrets().signing(now=clock.now())


def _secrets() -> SigningSecrets:
    """The same, cached: one call per five minutes instead of one per request."""
    named = settings().signing_secret
    if not named.startswith("arn:"):
        return read_secrets()
    now = clock.now()
    # Wall-clock time, because the monotonic clock stops while Lambda freezes an instance.
    kept = _kept.get(named)
    if kept is None or not timedelta() <= now - kept.read_at < _KEPT:
        kept = _kept[named] = _Kept(read_at=now, secrets=read_secrets())
    return kept.secrets
