"""Providers in the identity table: one provider per domain, sealed secrets, exact under parallel changes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from larder import clock, signing
from larder.audit.service import read_entries
from larder.errors import InvalidValue
from larder.issuers.models import KeySet
from larder.sso import repository, service
from larder.sso.models import Domain, IdentityProvider, Mode, VerifiedBy
from larder.tables import IDENTITY, commit
from tests.sso.providers import ENDPOINTS, LONG_AGO, SECRET, acme, add_acme

NOW = clock.now()

pytestmark = pytest.mark.usefixtures("aws_in_memory")


def change(**settings: Any) -> IdentityProvider:
    _, new = service.change_provider("acme", lambda one: replace(one, **settings), now=NOW)
    return new


def test_a_provider_is_stored_with_all_its_settings() -> None:
    """With every setting other than its default, so that a forgotten one shows."""
    provider = acme(
        domains=("acme.example", "acme.test"),
        mode=Mode.REQUIRED,
        exceptions=("root@acme.example",),
        verified_by=VerifiedBy.DOMAIN,
        scopes=("openid", "email", "groups"),
        groups_claim="groups",
        required_claims={"hd": ("acme.example", "acme.test")},
        hidden=True,
        signs_up=False,
        sends_auth_time=False,
        session_hours=8,
        keys_days=7,
        endpoints=replace(ENDPOINTS, sends_issuer=False, userinfo=None, algorithms=("ES256", "RS256")),
        created_at=LONG_AGO,
    )
    added = service.add_provider(provider, SECRET)
    assert service.find_provider("acme") == added
    assert service.list_providers() == [added]
    assert replace(added, secret=None) == provider


def test_a_domain_leads_to_its_provider() -> None:
    added = add_acme(mode=Mode.REQUIRED, exceptions=("root@acme.example",))
    assert service.find_domain("acme.example") == Domain(
        name="acme.example", provider_id="acme", mode=Mode.REQUIRED, exceptions=("root@acme.example",)
    )
    assert service.provider_of_address("ada@acme.example") == added
    assert service.provider_of_address("ada@sub.acme.example") is None
    assert service.provider_of_address("ada@example.com") is None


def test_a_domain_belongs_to_one_provider() -> None:
    """The second provider gets neither the domain nor anything else that it asked for."""
    add_acme()
    with pytest.raises(InvalidValue, match=r"acme\.example belongs to the provider acme: remove it"):
        add_acme(id="other", domains=("other.example", "acme.example"))
    assert service.find_provider("other") is None
    assert service.find_domain("other.example") is None

    add_acme(id="other", domains=("other.example",))
    with pytest.raises(InvalidValue, match="belongs to the provider other"):
        change(domains=("acme.example", "other.example"))
    assert service.require_provider("acme").domains == ("acme.example",)


def test_of_parallel_providers_one_gets_the_domain() -> None:
    def add(number: int) -> bool:
        try:
            add_acme(id=f"acme-{number}")
        except InvalidValue:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(add, range(8)))
    assert added.count(True) == 1
    (provider,) = service.list_providers()
    domain = service.find_domain("acme.example")
    assert domain is not None
    assert domain.provider_id == provider.id


def test_an_id_is_given_once() -> None:
    add_acme()
    with pytest.raises(InvalidValue, match="already a provider acme"):
        add_acme(domains=("other.example",))
    assert service.find_domain("other.example") is None


def test_parallel_changes_are_all_kept() -> None:
    add_acme(domains=())

    def add_domain(number: int) -> None:
        service.change_provider("acme", lambda one: replace(one, domains=(*one.domains, f"d{number}.example")), now=NOW)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_domain, range(4)))
    names = {f"d{number}.example" for number in range(4)}
    assert {*service.require_provider("acme").domains} == names
    assert all(service.find_domain(name) for name in names)


def test_the_domains_follow_the_provider() -> None:
    add_acme(domains=("acme.example", "acme.test"))
    change(domains=("acme.test", "acme.net"), mode=Mode.REQUIRED, exceptions=("root@acme.test",))
    assert service.find_domain("acme.example") is None
    kept, new = service.find_domain("acme.test"), service.find_domain("acme.net")
    assert kept is not None
    assert new is not None
    assert (kept.mode, kept.exceptions) == (Mode.REQUIRED, ("root@acme.test",))
    assert (new.mode, new.exceptions) == (Mode.REQUIRED, ())


@pytest.mark.parametrize(
    ("setting", "raises"),
    [
        ({"name": "Acme Inc."}, False),
        ({"hidden": True}, False),
        ({"session_hours": 8}, False),
        ({"keys_days": 8}, False),
        ({"client_id": "another"}, True),
        ({"verified_by": VerifiedBy.DOMAIN}, True),
        ({"required_claims": {"tid": ("1",)}}, True),
        ({"domains": ()}, True),
        ({"endpoints": replace(ENDPOINTS, jwks="https://keys.acme.example")}, True),
    ],
)
def test_a_change_that_affects_trust_raises_the_version(setting: dict[str, Any], raises: bool) -> None:
    before = add_acme()
    after = change(**setting)
    assert after.version - before.version == raises
    assert service.find_provider("acme") == after


def test_a_change_keeps_what_sign_ins_record() -> None:
    provider = add_acme()
    service.note_failure(provider.id, "invalid_code")
    service.note_sign_in(provider, now=NOW)
    changed = change(name="Acme Inc.")
    stored = service.require_provider("acme")
    assert (stored.name, stored.last_failure, stored.last_sign_in_at) == ("Acme Inc.", "invalid_code", NOW)
    service.note_sign_in(stored, now=NOW + timedelta(minutes=59))
    assert service.require_provider("acme").last_sign_in_at == NOW
    service.note_sign_in(stored, now=NOW + timedelta(hours=1))
    assert service.require_provider("acme").last_sign_in_at == NOW + timedelta(hours=1)
    assert changed.version == provider.version


def test_a_sign_in_notes_nothing_for_a_provider_that_is_gone() -> None:
    provider = add_acme()
    service.remove_provider("acme")
    service.note_sign_in(provider, now=NOW)
    service.note_failure(provider.id, "invalid_code")
    assert service.list_providers() == []


def test_the_client_secret_is_sealed() -> None:
    """Attack 28: a copy of the table."""
    provider = add_acme()
    item = IDENTITY.get("sso-providers", "acme")
    assert item is not None
    assert SECRET not in str(item)
    assert SECRET not in repr(provider)
    assert service.unsealed_secrets(provider, now=NOW) == [SECRET]


def test_the_former_client_secret_is_tried_for_a_day() -> None:
    before = add_acme()
    rotated = service.rotate_secret("acme", "another", now=NOW)
    assert service.unsealed_secrets(rotated, now=NOW) == ["another", SECRET]
    a_day_later = NOW + timedelta(hours=24)
    assert service.unsealed_secrets(rotated, now=a_day_later - timedelta(seconds=1))[1:]
    assert service.unsealed_secrets(rotated, now=a_day_later) == ["another"]
    # Sign-ins in progress go on.
    assert rotated.version == before.version
    assert service.find_provider("acme") == rotated


def test_secrets_are_sealed_again_before_a_signing_secret_is_dropped() -> None:
    add_acme()
    service.rotate_secret("acme", "another", now=NOW)
    add_acme(id="public", domains=())
    (current,) = signing.read_secrets().accepted
    assert service.reseal_secrets("the-next-one", [current]) == []
    signing.put_secrets(current="the-next-one", previous=None)
    signing._kept.clear()  # as another instance
    assert service.unsealed_secrets(service.require_provider("acme"), now=NOW) == ["another", SECRET]


def test_a_secret_that_no_signing_secret_has_sealed_is_named() -> None:
    add_acme()
    assert service.reseal_secrets("next", ["not the one that sealed it"]) == ["acme"]
    assert service.unsealed_secrets(service.require_provider("acme"), now=NOW) == [SECRET]
    signing.put_secrets(current="unrelated", previous=None)
    signing._kept.clear()
    assert service.unsealed_secrets(service.require_provider("acme"), now=NOW) == []


def test_removing_a_provider_frees_its_domains_and_ends_sign_ins() -> None:
    provider = add_acme()
    assert repository.claim_fetch(provider, now=NOW, until=NOW)
    assert commit(repository.still_as_read(provider))
    assert service.remove_provider("acme") == provider
    assert not commit(repository.still_as_read(provider))
    assert repository.find_keys(provider) is None
    add_acme(id="other")
    with pytest.raises(InvalidValue, match="there is no provider acme"):
        service.remove_provider("acme")


def test_a_sign_in_ends_with_a_change_that_affects_trust() -> None:
    provider = add_acme()
    change(name="Acme Inc.")
    assert commit(repository.still_as_read(provider))
    change(client_id="another")
    assert not commit(repository.still_as_read(provider))


def test_what_the_operator_does_is_audited() -> None:
    add_acme()
    change(hidden=True)
    service.rotate_secret("acme", "another", now=NOW)
    service.remove_provider("acme")
    entries = read_entries("sso#acme", limit=10, now=NOW).entries
    assert sorted((entry.action.value, entry.subject, entry.name) for entry in entries) == [
        ("provider_added", "acme", "Acme"),
        ("provider_changed", "acme", "Acme"),
        ("provider_changed", "acme", "Acme"),
        ("provider_removed", "acme", "Acme"),
    ]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"id": "credential"}, "id: must be 1 to 32"),
        ({"id": "Acme"}, "id: must be 1 to 32"),
        ({"id": "a" * 33}, "id: must be 1 to 32"),
        ({"name": ""}, "name: must have 1 to 100"),
        ({"client_id": "a b"}, "client_id: must be"),
        ({"scopes": ("email",)}, "scopes: must contain openid"),
        ({"scopes": ("openid", "a b")}, "scope: must be"),
        ({"required_claims": {"hd": ()}}, "required_claims: must have a value"),
        ({"domains": ("Acme.example",)}, "domain: Acme.example is not a domain as in DNS"),
        ({"domains": ("bücher.example",)}, "domain: bücher.example is not a domain as in DNS"),
        ({"domains": ("@acme.example",)}, "domain: @acme.example is not"),
        ({"domains": ("acme.example.",)}, "domain: acme.example. is not"),
        ({"domains": ("acme.example", "acme.example")}, "domains: must be at most 40, each once"),
        ({"exceptions": ("a@b.example",)}, "exceptions: a@b.example is not in a domain"),
        ({"exceptions": tuple(f"{n}@acme.example" for n in range(6))}, "exceptions: must be at most 5"),
        ({"session_hours": 0}, "session_hours: must be 1 to 168"),
        ({"session_hours": 169}, "session_hours: must be 1 to 168"),
        ({"keys_days": 0}, "keys_days: must be 1 to 90"),
        ({"keys_days": 91}, "keys_days: must be 1 to 90"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(InvalidValue, match=error):
        add_acme(**settings)
    assert service.list_providers() == []


def test_the_most_domains_fit_into_one_transaction() -> None:
    add_acme(domains=tuple(f"d{n}.example" for n in range(40)))
    change(domains=tuple(f"e{n}.example" for n in range(40)))
    assert service.find_domain("d39.example") is None
    assert service.find_domain("e39.example")
    service.remove_provider("acme")


def test_one_instance_fetches_the_keys() -> None:
    provider, later = add_acme(), NOW + timedelta(minutes=1)
    with ThreadPoolExecutor(4) as pool:
        claims = list(pool.map(lambda _: repository.claim_fetch(provider, now=NOW, until=later), range(4)))
    assert claims.count(True) == 1
    found = repository.find_keys(provider)
    assert found is not None
    assert (found.keys, found.fetched_at) == ((), None)
    repository.store_keys(provider, [{"kid": "1"}], now=NOW, until=later)
    found = repository.find_keys(provider)
    assert found == KeySet(keys=({"kid": "1"},), fetched_at=NOW, next_fetch_at=later)
    assert not repository.claim_fetch(provider, now=NOW, until=later)
    assert repository.claim_fetch(provider, now=later, until=later + timedelta(minutes=1))
    # The keys serve until others are there.
    assert repository.find_keys(provider) == replace(found, next_fetch_at=later + timedelta(minutes=1))


def test_keys_of_a_former_address_are_not_used() -> None:
    provider = add_acme()
    assert repository.claim_fetch(provider, now=NOW, until=NOW)
    repository.store_keys(provider, [{"kid": "1"}], now=NOW, until=NOW + timedelta(minutes=1))
    moved = change(endpoints=replace(ENDPOINTS, jwks="https://keys.acme.example"))
    assert repository.find_keys(moved) is None
    assert repository.claim_fetch(moved, now=NOW, until=NOW)
    # A request that still knows the former address.
    repository.store_keys(provider, [{"kid": "1"}], now=NOW, until=NOW)
    found = repository.find_keys(moved)
    assert found is not None
    assert found.keys == ()


def test_a_state_is_spent_once() -> None:
    assert not repository.is_state_spent("hash")
    assert commit(repository.spending_state("hash", now=NOW))
    assert repository.is_state_spent("hash")
    assert not commit(repository.spending_state("hash", now=NOW))


@pytest.mark.parametrize(
    ("mode", "address", "accepted"),
    [
        (None, "ada@acme.example", True),
        (Mode.OPTIONAL, "ada@acme.example", True),
        (Mode.REQUIRED, "ada@acme.example", False),
        (Mode.REQUIRED, "root@acme.example", True),
        (Mode.REQUIRED, "ada@example.com", True),
        (Mode.REQUIRED, "ada@sub.acme.example", True),
    ],
)
def test_a_required_provider_refuses_passwords_of_its_domains(mode: Mode | None, address: str, accepted: bool) -> None:
    if mode is not None:
        add_acme(mode=mode, exceptions=("root@acme.example",))
    assert commit(repository.accepts_password(address)) == accepted
    domain = service.find_domain(address.rpartition("@")[2])
    assert (domain is None or not domain.requires_provider(address)) == accepted
