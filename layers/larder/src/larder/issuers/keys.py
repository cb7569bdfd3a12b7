"""The keys of accepted issuers, and the rules for all key sets.

They are kept in the table for all instances. They are fetched again when they are older than an hour, or for a key id
that is unknown, but at most once a minute, or once in two seconds for providers of sign-ins. If that fails, the kept
keys serve for a day. Without kept keys, the next try follows after two seconds.

Only functions that exchange tokens import this module: connecting to an issuer needs `http.client` and `ssl`.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from larder.errors import ExchangeRefused, IssuerUnavailable
from larder.instance import Remembered
from larder.issuers import repository
from larder.issuers.fetching import Unreachable, fetch_keys
from larder.issuers.models import Issuer, Jwk, KeySet
from larder.issuers.urls import is_trusted
from larder.metrics import counted

FRESH = timedelta(hours=1)
"""A key that the issuer has withdrawn is accepted no longer than this."""

KEPT = timedelta(hours=24)
FETCHED_AGAIN_AFTER = timedelta(minutes=1)
TRIED_AGAIN_AFTER = timedelta(seconds=2)
"""The same for an issuer without keys, because no job gets a token until they are there."""
_REMEMBERED = timedelta(minutes=5)
_WAIT_S = 4.0
"""How long a request waits for the first keys of an issuer, if another instance is fetching them."""

_POLL_S = 0.25

_issuers: Remembered[str, tuple[datetime, Issuer]] = Remembered(200)


class KeySource(Protocol):
    """Where the keys of one issuer come from, and where they are kept. `name` is for the log."""

    @property
    def name(self) -> str: ...

    def read(self, *, now: datetime) -> KeySet | None:
        """The kept keys. None if the issuer is no longer accepted."""

    def claim_fetch(self, *, now: datetime, until: datetime) -> bool:
        """Claim to fetch the keys. Only one instance gets it, until the time that it sets."""

    def fetch(self) -> list[Jwk]:
        """The keys that the issuer has now. Raises Unreachable."""

    def store(self, keys: Sequence[Jwk], *, now: datetime, until: datetime) -> None: ...

    @property
    def pause(self) -> timedelta:
        """The least time between two fetches that succeed."""


def signing_key(url: str, kid: str, *, origin: str, now: datetime) -> Jwk:
    """The key of an issuer with this id. Raises ExchangeRefused, IssuerUnavailable."""
    issuer = _known(url, now)
    if issuer is None or not (issuer.is_added or is_trusted(url)):
        raise ExchangeRefused("no rule accepts tokens of the issuer in iss")
    found = current_key(_Trusted(issuer, origin), issuer, kid, now=now)
    if found is None:
        raise ExchangeRefused("kid is not the id of one of the issuer's keys")
    return found


def current_key(source: KeySource, known: KeySet, kid: str | None, *, now: datetime) -> Jwk | None:
    """The key with this id, or without an id the only one. None if there is none. Raises IssuerUnavailable."""
    age = None if known.fetched_at is None else now - known.fetched_at
    if age is None or age >= FRESH or known.key(kid) is None:
        known = _fetched(source, known, now=now)
    if known.fetched_at is None or now - known.fetched_at >= KEPT:
        raise IssuerUnavailable
    return known.key(kid)


@dataclass(frozen=True, slots=True)
class _Trusted:
    """The keys of an issuer of CI jobs. `origin` is the deployment's."""

    issuer: Issuer
    origin: str

    @property
    def name(self) -> str:
        return self.issuer.url

    @property
    def pause(self) -> timedelta:
        """A sender of tokens chooses the key id, and can have the keys fetched."""
        return FETCHED_AGAIN_AFTER

    def read(self, *, now: datetime) -> KeySet | None:
        found = repository.find(self.issuer.url)
        if found is not None:
            _issuers[self.issuer.url] = (now, found)
        return found

    def claim_fetch(self, *, now: datetime, until: datetime) -> bool:
        return repository.claim_fetch(self.issuer.url, now=now, until=until)

    def fetch(self) -> list[Jwk]:
        return fetch_keys(self.issuer, self.origin)

    def store(self, keys: Sequence[Jwk], *, now: datetime, until: datetime) -> None:
        repository.store_keys(self.issuer.url, keys, now=now, until=until)


def _known(url: str, now: datetime) -> Issuer | None:
    remembered = _issuers.get(url)
    if remembered is not None and now - remembered[0] < _REMEMBERED:
        return remembered[1]
    found = repository.find(url)
    if found is not None:
        _issuers[url] = (now, found)
    return found


def _fetched(source: KeySource, known: KeySet, *, now: datetime) -> KeySet:
    """The keys that the issuer has now, or those that are kept."""
    has_keys = known.fetched_at is not None
    if has_keys and known.next_fetch_at is not None and now < known.next_fetch_at:
        # Without this, each token with an unknown key id would cost a write.
        return known
    pause = FETCHED_AGAIN_AFTER if has_keys else TRIED_AGAIN_AFTER
    claimed = source.claim_fetch(now=now, until=now + pause)
    if claimed:
        try:
            keys = source.fetch()
        except Unreachable as error:
            line = {"issuer": source.name, "reason": str(error), **counted("IssuerFailures", [])}
            sys.stdout.write(f"{json.dumps(line)}\n")
        else:
            source.store(keys, now=now, until=now + source.pause)
    return _read_again(source, now, waits=not claimed and not has_keys)


def _read_again(source: KeySource, now: datetime, *, waits: bool) -> KeySet:
    ends_at = time.monotonic() + (_WAIT_S if waits else 0)
    while True:
        found = source.read(now=now)
        if found is None:
            raise IssuerUnavailable
        if found.fetched_at is not None or time.monotonic() >= ends_at:
            return found
        time.sleep(_POLL_S)
