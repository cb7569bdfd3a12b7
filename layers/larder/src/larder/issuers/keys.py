"""The keys of accepted issuers.

They are kept in the table for all instances. They are fetched again when they are older than an hour, or for a key id
that is unknown, but at most once a minute. If that fails, the kept keys serve for a day. Without kept keys, the next
try follows after two seconds.

Only the function that exchanges tokens imports this module: connecting to an issuer needs `http.client` and `ssl`.
"""

import json
import sys
import time
from datetime import datetime, timedelta

from larder.errors import ExchangeRefused, IssuerUnavailable
from larder.instance import Remembered
from larder.issuers import repository
from larder.issuers.fetching import Unreachable, fetch_keys
from larder.issuers.models import Issuer, Jwk
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


def signing_key(url: str, kid: str, *, origin: str, now: datetime) -> Jwk:
    """The key of an issuer with this id. Raises ExchangeRefused, IssuerUnavailable."""
    issuer = _known(url, now)
    if issuer is None or not (issuer.is_added or is_trusted(url)):
        raise ExchangeRefused("no rule accepts tokens of the issuer in iss")
    age = None if issuer.fetched_at is None else now - issuer.fetched_at
    if age is None or age >= FRESH or issuer.key(kid) is None:
        issuer = _fetched(issuer, origin=origin, now=now)
    if issuer.fetched_at is None or now - issuer.fetched_at >= KEPT:
        raise IssuerUnavailable
    found = issuer.key(kid)
    if found is None:
        raise ExchangeRefused("kid is not the id of one of the issuer's keys")
    return found


def _known(url: str, now: datetime) -> Issuer | None:
    remembered = _issuers.get(url)
    if remembered is not None and now - remembered[0] < _REMEMBERED:
        return remembered[1]
    found = repository.find(url)
    if found is not None:
        _issuers[url] = (now, found)
    return found


def _fetched(issuer: Issuer, *, origin: str, now: datetime) -> Issuer:
    """The issuer with the keys that it has now, or with those that are kept."""
    has_keys = issuer.fetched_at is not None
    if has_keys and issuer.next_fetch_at is not None and now < issuer.next_fetch_at:
        # Without this, each token with an unknown key id would cost a write.
        return issuer
    pause = FETCHED_AGAIN_AFTER if has_keys else TRIED_AGAIN_AFTER
    claimed = repository.claim_fetch(issuer.url, now=now, until=now + pause)
    if claimed:
        try:
            keys = fetch_keys(issuer, origin)
        except Unreachable as error:
            line = {"issuer": issuer.url, "reason": str(error), **counted("IssuerFailures", [])}
            sys.stdout.write(f"{json.dumps(line)}\n")
        else:
            repository.store_keys(issuer.url, keys, now=now, until=now + FETCHED_AGAIN_AFTER)
    return _read_again(issuer.url, now, waits=not claimed and not has_keys)


def _read_again(url: str, now: datetime, *, waits: bool) -> Issuer:
    ends_at = time.monotonic() + (_WAIT_S if waits else 0)
    while True:
        found = repository.find(url)
        if found is None:
            raise IssuerUnavailable
        if found.fetched_at is not None or time.monotonic() >= ends_at:
            _issuers[url] = (now, found)
            return found
        time.sleep(_POLL_S)
