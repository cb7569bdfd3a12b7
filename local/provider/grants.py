"""What the provider has given out: codes for an authorization, and access tokens for the claims of a person."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from dataclasses import dataclass, field

from local.provider.people import Person

LIFE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A person who has signed in, and the request for it."""

    person: Person
    redirect_uri: str
    nonce: str | None
    challenge: str
    signed_in_at: int = field(default_factory=lambda: int(time.time()))

    def is_proven_by(self, verifier: str) -> bool:
        """Whether the challenge was made from the verifier, by S256."""
        digest = hashlib.sha256(verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == self.challenge


class Grants:
    """Grants by a secret text, for a minute."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Grant]] = {}

    def add(self, grant: Grant) -> str:
        """The secret text for this grant."""
        now = time.monotonic()
        self._kept = {text: kept for text, kept in self._kept.items() if kept[0] > now}
        text = secrets.token_urlsafe(24)
        self._kept[text] = (now + LIFE_S, grant)
        return text

    def find(self, text: str) -> Grant | None:
        until, grant = self._kept.get(text, (0.0, None))
        return grant if until > time.monotonic() else None

    def take(self, text: str) -> Grant | None:
        """The grant, which then has no such text any more."""
        grant = self.find(text)
        self._kept.pop(text, None)
        return grant
