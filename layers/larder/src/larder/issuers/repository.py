"""The items of issuers in the table of teams: `issuer#<SHA-256 of the URL>`, `issuer`.

An item holds the issuer's keys, when they were fetched, and when they may be fetched again.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from larder.clock import from_ms, to_ms
from larder.conditions import at_most, equals, exists, missing
from larder.issuers.models import Issuer, Jwk
from larder.tables import TEAMS, Item, Write, commit

_SK = "issuer"


def find(url: str) -> Issuer | None:
    item = TEAMS.get(_pk(url), _SK)
    return None if item is None else _issuer(item)


def named(url: str) -> Write:
    """The write that makes an issuer known, for the transaction of the rule that names it."""
    return TEAMS.update(_pk(url), _SK, set_if_missing={"issuer": url})


def claim_fetch(url: str, *, now: datetime, until: datetime) -> bool:
    """Claim to fetch the keys. Only one instance gets it, until the time that it sets."""
    free = missing("next_fetch_at") | at_most(next_fetch_at=to_ms(now))
    changes = {"next_fetch_at": to_ms(until)}
    return commit(TEAMS.update(_pk(url), _SK, set=changes, when=exists("pk") & free))


def store_keys(url: str, keys: Sequence[Jwk], *, now: datetime, until: datetime) -> None:
    """Store the keys, and that no instance fetches them again until then."""
    changes = {
        "keys": json.dumps(keys),
        "fetched_at": to_ms(now),
        "next_fetch_at": to_ms(until),
    }
    commit(TEAMS.update(_pk(url), _SK, set=changes, when=exists("pk")))


def add(url: str, jwks_uri: str | None) -> None:
    """Add an issuer for the operator. Keys that were fetched from another address are forgotten."""
    changes = {
        "issuer": url,
        "added": True,
        "jwks_uri": jwks_uri,
        "keys": None,
        "fetched_at": None,
        "next_fetch_at": None,
    }
    commit(TEAMS.update(_pk(url), _SK, set=changes))


def remove(url: str) -> bool:
    """Remove what the operator added. False if the operator has not added the issuer."""
    changes = {
        "added": None,
        "jwks_uri": None,
        "keys": None,
        "fetched_at": None,
        "next_fetch_at": None,
    }
    return commit(TEAMS.update(_pk(url), _SK, set=changes, when=equals(added=True)))


def list_all() -> list[Issuer]:
    """Every issuer. Reads the whole table: for the operator, never on a request."""
    return sorted(map(_issuer, TEAMS.scan(equals(sk=_SK))), key=lambda issuer: issuer.url)


def _pk(url: str) -> str:
    return f"issuer#{sha256(url.encode()).hexdigest()}"


def _issuer(item: Item) -> Issuer:
    def moment(name: str) -> datetime | None:
        return from_ms(item[name]) if name in item else None

    return Issuer(
        url=item["issuer"],
        is_added=item.get("added", False),
        jwks_uri=item.get("jwks_uri"),
        keys=tuple(json.loads(item.get("keys", "[]"))),
        fetched_at=moment("fetched_at"),
        next_fetch_at=moment("next_fetch_at"),
    )
