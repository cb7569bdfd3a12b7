"""The items of company sign-in in the identity table, and the roles that providers give in the table of teams
(docs/data-model.md#identitytable-pk-sk).

One transaction writes a provider and its domains, so that a domain never belongs to two providers, and its mode is
always that of the provider.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import (
    Condition,
    at_most,
    contains,
    equals,
    exists,
    missing,
    not_equals,
)
from larder.issuers.models import Jwk, KeySet
from larder.records import Form
from larder.sso.models import Domain, Endpoints, IdentityProvider, Mode, TeamMapping
from larder.tables import IDENTITY, TEAMS, Item, Key, Write, commit, failed_writes

_PROVIDERS = "sso-providers"
_DOMAIN = "domain"
_KEYS = "keys"
_USED = "used"
_MAPPINGS = "sso#"

_PROVIDER = Form(IdentityProvider, apart=("id", "endpoints"))
_ENDPOINTS = Form(Endpoints)
_MAPPING = Form(TeamMapping, apart=("provider_id", "team_id"))

_STATE_KEPT = timedelta(minutes=15)
"""Longer than a state is valid, with its sign-in and the difference of clocks."""


class DomainTaken(Exception):
    """The domain belongs to another provider."""

    def __init__(self, domain: str) -> None:
        self.domain = domain
        super().__init__(domain)


def get(provider_id: str) -> IdentityProvider | None:
    item = IDENTITY.get(_PROVIDERS, provider_id)
    return None if item is None else _provider(item)


def list_all() -> list[IdentityProvider]:
    """Every provider, by id. One query."""
    return [_provider(item) for item in IDENTITY.query(equals(pk=_PROVIDERS))]


def add(provider: IdentityProvider, *also: Write) -> bool:
    """Store a new provider and its domains. False if there is one with the id. Raises DomainTaken.

    `also` are other writes of the transaction, here as in the functions that follow.
    """
    new = IDENTITY.put(_item(provider), when=missing("pk"))
    return _commit(new, _domain_writes(None, provider), also)


def change(old: IdentityProvider, new: IdentityProvider, *also: Write) -> bool:
    """Store the settings of `new` that differ from `old`, and its domains. The secrets stay.

    False if the provider has changed in a way that affects trust since `old` was read. Raises DomainTaken.
    """
    before, after = _item(old), _item(new)
    changes = {
        name: after.get(name)
        for name in {*before, *after} - _NOT_SETTINGS
        if before.get(name) != after.get(name)
    }
    if not changes:
        return True
    changed = IDENTITY.update(_PROVIDERS, new.id, set=changes, when=unchanged(old))
    return _commit(changed, _domain_writes(old, new), also)


def change_secrets(old: IdentityProvider, new: IdentityProvider, *also: Write) -> bool:
    """Store the sealed secrets of `new`. False if those of `old` have changed, or the provider is gone."""
    after = _item(new)
    names = ("secret", "former_secret", "former_until")
    same = exists("pk")
    for name, value in (("secret", old.secret), ("former_secret", old.former_secret)):
        same = same & (missing(name) if value is None else equals(**{name: value}))
    update = IDENTITY.update(
        _PROVIDERS, new.id, set={name: after.get(name) for name in names}, when=same
    )
    return commit(update, *also)


def remove(provider: IdentityProvider, *also: Write) -> bool:
    """Delete the provider, its keys and its domains. False if it has changed since it was read."""
    gone = IDENTITY.delete(_PROVIDERS, provider.id, when=unchanged(provider))
    return _commit(
        gone,
        [
            *_domain_writes(provider, None),
            (None, IDENTITY.delete(f"sso#{provider.id}", _KEYS)),
        ],
        also,
    )


def unchanged(provider: IdentityProvider) -> Condition:
    return equals(version=provider.version)


def still_as_read(provider: IdentityProvider) -> Write:
    """A check for the transaction of a sign-in: the provider exists, and nothing that affects trust has changed."""
    return IDENTITY.check(_PROVIDERS, provider.id, when=unchanged(provider))


def note_sign_in(provider_id: str, *, now: datetime) -> None:
    changes = {"last_sign_in_at": to_ms(now)}
    commit(IDENTITY.update(_PROVIDERS, provider_id, set=changes, when=exists("pk")))


def note_failure(provider_id: str, code: str) -> None:
    changes = {"last_failure": code}
    commit(IDENTITY.update(_PROVIDERS, provider_id, set=changes, when=exists("pk")))


def domain_key(address: str) -> Key:
    """The key of the item of the domain of a canonical address, which may not exist."""
    return _key_of_domain(address.rpartition("@")[2])


def get_domain(name: str) -> Domain | None:
    item = IDENTITY.get(*_key_of_domain(name))
    return None if item is None else parse_domain(item)


def parse_domain(item: Item) -> Domain:
    return Domain(
        name=item["pk"].removeprefix("sso-domain#"),
        provider_id=item["provider"],
        mode=Mode(item["mode"]),
        exceptions=tuple(item["exceptions"]),
    )


def accepts_password(address: str) -> Write:
    """A check for the transaction of what needs a password: no provider is required for the canonical address."""
    free = missing("pk") | not_equals(mode=Mode.REQUIRED.value) | contains("exceptions", address)
    return IDENTITY.check(*domain_key(address), when=free)


def find_keys(provider: IdentityProvider) -> KeySet | None:
    """The keys that were fetched from the address that the provider has now."""
    item = IDENTITY.get(f"sso#{provider.id}", _KEYS)
    if item is None or item["jwks"] != provider.endpoints.jwks:
        return None
    fetched_at = item.get("fetched_at")
    return KeySet(
        keys=tuple(json.loads(item["keys"])) if "keys" in item else (),
        fetched_at=None if fetched_at is None else from_ms(fetched_at),
        next_fetch_at=from_ms(item["next_fetch_at"]),
    )


def claim_fetch(provider: IdentityProvider, *, now: datetime, until: datetime) -> bool:
    """Claim to fetch the keys. Only one instance gets it, until the time that it sets."""
    pk, jwks, ends_at = f"sso#{provider.id}", provider.endpoints.jwks, to_ms(until)
    due = equals(jwks=jwks) & at_most(next_fetch_at=to_ms(now))
    if commit(IDENTITY.update(pk, _KEYS, set={"next_fetch_at": ends_at}, when=due)):
        return True
    # There are no keys yet, or those of another address.
    first = {"pk": pk, "sk": _KEYS, "jwks": jwks, "next_fetch_at": ends_at}
    return commit(IDENTITY.put(first, when=not_equals(jwks=jwks)))


def store_keys(
    provider: IdentityProvider, keys: Sequence[Jwk], *, now: datetime, until: datetime
) -> None:
    """Store the keys, and that no instance fetches them again until then. Does nothing if they moved meanwhile."""
    changes = {
        "keys": json.dumps(keys),
        "fetched_at": to_ms(now),
        "next_fetch_at": to_ms(until),
    }
    same = equals(jwks=provider.endpoints.jwks)
    commit(IDENTITY.update(f"sso#{provider.id}", _KEYS, set=changes, when=same))


def spending_state(state_hash: str, *, now: datetime) -> Write:
    """The write that spends a state, for the transaction that stores the session. It fails if the state is spent."""
    item = {
        "pk": f"sso-state#{state_hash}",
        "sk": _USED,
        "expires_at": to_epoch_seconds(now + _STATE_KEPT),
    }
    return IDENTITY.put(item, when=missing("pk"))


def spend_state(state_hash: str, *, now: datetime) -> None:
    """Spend a state whose sign-in has failed, unless it is spent."""
    commit(spending_state(state_hash, now=now))


def is_state_spent(state_hash: str) -> bool:
    return IDENTITY.get(f"sso-state#{state_hash}", _USED) is not None


def _key_of_domain(name: str) -> tuple[str, str]:
    return f"sso-domain#{name}", _DOMAIN


_DomainWrite = tuple[str | None, Write]


def _domain_writes(
    old: IdentityProvider | None, new: IdentityProvider | None
) -> list[_DomainWrite]:
    """The writes of the domains that change, each with the name of a domain that another provider may have."""
    before = {} if old is None else {item["pk"]: item for item in _domain_items(old)}
    after = {} if new is None else {item["pk"]: item for item in _domain_items(new)}
    writes: list[_DomainWrite] = []
    for pk, item in after.items():
        if pk not in before:
            name = pk.removeprefix("sso-domain#")
            writes.append((name, IDENTITY.put(item, when=missing("pk"))))
        elif before[pk] != item:
            writes.append((None, IDENTITY.put(item, when=equals(provider=item["provider"]))))
    for pk, item in before.items():
        if pk not in after:
            own = equals(provider=item["provider"])
            writes.append((None, IDENTITY.delete(pk, _DOMAIN, when=own)))
    return writes


def _domain_items(provider: IdentityProvider) -> list[Item]:
    return [
        {
            "pk": f"sso-domain#{name}",
            "sk": _DOMAIN,
            "provider": provider.id,
            "mode": provider.mode.value,
            "exceptions": [one for one in provider.exceptions if one.rpartition("@")[2] == name],
        }
        for name in provider.domains
    ]


def _commit(first: Write, domains: Sequence[_DomainWrite], also: Sequence[Write]) -> bool:
    """False if the condition of the first write fails. Raises DomainTaken if only that of a domain does."""
    failed = failed_writes(first, *(write for _, write in domains), *also)
    if not failed:
        return True
    if first not in failed:
        for name, write in domains:
            if name is not None and write in failed:
                raise DomainTaken(name)
    return False


_NOT_SETTINGS = {"secret", "former_secret", "former_until", "last_sign_in_at", "last_failure"}
"""What other writes than those of the settings change."""


def _item(provider: IdentityProvider) -> Item:
    endpoints = _ENDPOINTS.item(provider.endpoints).items()
    return {
        "pk": _PROVIDERS,
        "sk": provider.id,
        **_PROVIDER.item(provider),
        "endpoints": {name: value for name, value in endpoints if value is not None},
    }


def _provider(item: Item) -> IdentityProvider:
    return _PROVIDER.record(item, id=item["sk"], endpoints=_ENDPOINTS.record(item["endpoints"]))


def list_mappings(provider_id: str) -> list[TeamMapping]:
    """The teams in which a provider gives roles, by id."""
    return [_mapping(item) for item in TEAMS.query(equals(pk=_MAPPINGS + provider_id))]


def find_mappings(team_id: str, provider_ids: Iterable[str]) -> list[TeamMapping]:
    """The roles that some providers give in a team."""
    keys = [(_MAPPINGS + provider_id, team_id) for provider_id in provider_ids]
    return [_mapping(item) for item in TEAMS.get_many(keys)]


def put_mapping(old: TeamMapping | None, new: TeamMapping) -> bool:
    """Store a mapping in place of another. False if that has changed, or the team does not exist."""
    item = {
        "pk": _MAPPINGS + new.provider_id,
        "sk": new.team_id,
        **_MAPPING.item(replace(new, version=new.version + 1)),
    }
    same = missing("pk") if old is None else equals(version=old.version)
    return commit(TEAMS.put(item, when=same), TEAMS.check(new.team_id, "team", when=exists("pk")))


def delete_mapping(mapping: TeamMapping) -> None:
    commit(TEAMS.delete(_MAPPINGS + mapping.provider_id, mapping.team_id))


def _mapping(item: Item) -> TeamMapping:
    return _MAPPING.record(item, provider_id=item["pk"].removeprefix(_MAPPINGS), team_id=item["sk"])
