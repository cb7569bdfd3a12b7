"""The keys of providers. They are apart from those of issuers of CI jobs, so that neither can pass for the other.

The rules for fetching and keeping them are the same (`larder.issuers.keys`). The address of the keys is pinned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from larder.instance import Remembered
from larder.issuers.fetching import fetch_json, public_keys
from larder.issuers.keys import TRIED_AGAIN_AFTER, current_key
from larder.issuers.models import Jwk, KeySet
from larder.sso import repository
from larder.sso.models import IdentityProvider

_TYPES = frozenset({"RSA", "EC", "OKP"})
_REMEMBERED = timedelta(minutes=5)

_kept: Remembered[tuple[str, str], tuple[datetime, KeySet]] = Remembered(100)
"""By the id of the provider and the address of its keys."""


def signing_key(
    provider: IdentityProvider, kid: str | None, *, loopback: bool, now: datetime
) -> Jwk | None:
    """The provider's key with this id, or without an id the only one. None if there is none.

    Raises IssuerUnavailable.
    """
    source = _Pinned(provider, loopback)
    remembered = _kept.get(source.place)
    is_recent = remembered is not None and now - remembered[0] < _REMEMBERED
    known = remembered[1] if remembered and is_recent else source.read(now=now)
    return current_key(source, known, kid, now=now)


@dataclass(frozen=True, slots=True)
class _Pinned:
    provider: IdentityProvider
    loopback: bool

    @property
    def name(self) -> str:
        return self.provider.issuer

    @property
    def pause(self) -> timedelta:
        """Short, so that a new key counts at once: only the provider itself chooses the key ids of its tokens."""
        return TRIED_AGAIN_AFTER

    @property
    def place(self) -> tuple[str, str]:
        return self.provider.id, self.provider.endpoints.jwks

    def read(self, *, now: datetime) -> KeySet:
        found = repository.find_keys(self.provider) or KeySet()
        _kept[self.place] = (now, found)
        return found

    def claim_fetch(self, *, now: datetime, until: datetime) -> bool:
        return repository.claim_fetch(self.provider, now=now, until=until)

    def fetch(self) -> list[Jwk]:
        document = fetch_json(self.provider.endpoints.jwks, loopback=self.loopback)
        return [key for key in public_keys(document.get("keys")) if key["kty"] in _TYPES]

    def store(self, keys: Sequence[Jwk], *, now: datetime, until: datetime) -> None:
        repository.store_keys(self.provider, keys, now=now, until=until)
