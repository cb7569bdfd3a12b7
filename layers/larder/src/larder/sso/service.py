"""Identity providers: find them, and what the operator does with them.

Functions read providers here, and note sign-ins and failures. `larder.sso.discovery` reads the configuration of a
provider, for the command alone.
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from larder import signing
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import InvalidValue, TryAgain
from larder.names import parse_name
from larder.sso import repository
from larder.sso.memberships import release
from larder.sso.models import Domain, IdentityProvider
from larder.sso.repository import DomainTaken

if TYPE_CHECKING:
    from larder.tables import Write

MAX_DOMAINS = 40
"""One transaction replaces all of them. It takes 100 writes."""

MAX_EXCEPTIONS = 5
SESSION_HOURS = range(1, 169)
KEYS_DAYS = range(1, 91)

FORMER_SECRET_KEPT = timedelta(hours=24)
"""How long a client secret is tried after another has replaced it."""

_NOTED_AGAIN_AFTER = timedelta(hours=1)
_PURPOSE = "sso-secret"
_ID = re.compile(r"[a-z0-9-]{1,32}")
_DOMAIN = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9-]{1,63}")
_WORD = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,255}")
_NO_TRUST = ("name", "hidden", "session_hours", "keys_days", "updated_at")
"""Settings that a sign-in in progress need not know."""


def find_provider(provider_id: str) -> IdentityProvider | None:
    """The provider. None for an id that no provider can have, which the table may refuse as a key."""
    return repository.get(provider_id) if _ID.fullmatch(provider_id) else None


def list_providers() -> list[IdentityProvider]:
    """Every provider, by id. One query."""
    return repository.list_all()


def find_domain(name: str) -> Domain | None:
    """The domain, in its ASCII form, if it belongs to a provider."""
    return repository.get_domain(name) if _DOMAIN.fullmatch(name) else None


def domain_of_address(address: str) -> Domain | None:
    """The domain of a canonical address, if it belongs to a provider."""
    return find_domain(address.rpartition("@")[2])


def provider_of_address(address: str) -> IdentityProvider | None:
    """The provider that has the domain of a canonical address, in any mode."""
    return provider_of_domain(address.rpartition("@")[2])


def provider_of_domain(name: str) -> IdentityProvider | None:
    """The provider that has the domain, in any mode."""
    domain = find_domain(name)
    return None if domain is None else find_provider(domain.provider_id)


def unsealed_secrets(provider: IdentityProvider, *, now: datetime) -> list[str]:
    """The client secrets to try: the current one, and the former one while it counts. Empty for a public client.

    A secret that the signing secrets cannot unseal is left out.
    """
    sealed = [provider.secret]
    if provider.former_until is not None and now < provider.former_until:
        sealed.append(provider.former_secret)
    return [text for secret in sealed if secret and (text := _unsealed(secret)) is not None]


def note_sign_in(provider: IdentityProvider, *, now: datetime) -> None:
    """Record a sign-in, at most once an hour."""
    last = provider.last_sign_in_at
    if last is None or now - last >= _NOTED_AGAIN_AFTER:
        repository.note_sign_in(provider.id, now=now)


def note_failure(provider_id: str, code: str) -> None:
    """Record the code of a failed sign-in, if the last one had another."""
    provider = find_provider(provider_id)
    if provider is not None and provider.last_failure != code:
        repository.note_failure(provider_id, code)


def add_provider(provider: IdentityProvider, secret: str | None) -> IdentityProvider:
    """Add a provider with its client secret. Raises InvalidValue, also if the id or a domain is taken."""
    check_provider(provider)
    new = replace(provider, secret=None if secret is None else _sealed(secret), version=1)
    added = audited(_owner(new.id), Action.PROVIDER_ADDED, new.id, None, name=new.name)
    with _explained():
        if not repository.add(new, added):
            raise InvalidValue("id", f"there is already a provider {new.id}")
    return new


def change_provider(
    provider_id: str, changed: Callable[[IdentityProvider], IdentityProvider], *, now: datetime
) -> tuple[IdentityProvider, IdentityProvider]:
    """Apply `changed` to the settings. Returns the provider before and after. Id, issuer and secrets stay.

    A change that affects trust raises the version, which ends sign-ins in progress. Parallel changes come one after the
    other. Raises InvalidValue, TryAgain.
    """
    for _ in attempts():
        old = require_provider(provider_id)
        new = changed(old)
        if new == old:
            return old, old
        new = replace(new, updated_at=now, version=old.version + _affects_trust(old, new))
        check_provider(new)
        entry = audited(_owner(new.id), Action.PROVIDER_CHANGED, new.id, None, name=new.name)
        with _explained():
            if repository.change(old, new, entry):
                return old, new
    raise TryAgain


def rotate_secret(provider_id: str, secret: str, *, now: datetime) -> IdentityProvider:
    """Replace the client secret. The former one is tried for a day. Sign-ins in progress go on."""

    def rotated(old: IdentityProvider) -> IdentityProvider:
        return replace(
            old,
            secret=_sealed(secret),
            former_secret=old.secret,
            former_until=None if old.secret is None else now + FORMER_SECRET_KEPT,
        )

    return _change_secrets(provider_id, rotated, noting=True)


def reseal_secrets(with_secret: str, accepted: Collection[str]) -> list[str]:
    """Seal every client secret with one signing secret, before another is dropped.

    `accepted` are the signing secrets that may have sealed them. Returns the ids of providers whose secret none of them
    has sealed: it is lost, and the operator must set it again.
    """
    lost = []
    for provider in list_providers():

        def resealed(old: IdentityProvider) -> IdentityProvider:
            return replace(
                old,
                secret=_resealed(old.secret, with_secret, accepted),
                former_secret=_resealed(old.former_secret, with_secret, accepted),
            )

        try:
            _change_secrets(provider.id, resealed)
        except signing.InvalidToken:
            lost.append(provider.id)
        except InvalidValue:
            # The provider was removed in the meantime.
            continue
    return lost


def remove_provider(provider_id: str) -> IdentityProvider:
    """Remove the provider with its domains, which ends sign-ins in progress.

    Memberships that its groups gave stay, and people manage them. Raises InvalidValue, TryAgain.
    """
    for _ in attempts():
        old = require_provider(provider_id)
        entry = audited(_owner(old.id), Action.PROVIDER_REMOVED, old.id, None, name=old.name)
        if repository.remove(old, entry):
            release(provider_id)
            return old
    raise TryAgain


def require_provider(provider_id: str) -> IdentityProvider:
    """Raises InvalidValue if there is no such provider."""
    found = find_provider(provider_id)
    if found is None:
        raise InvalidValue(
            "id", f"there is no provider {provider_id}: `larder sso list` lists them"
        )
    return found


def check_provider(provider: IdentityProvider) -> None:
    """Check the settings of a provider, without its addresses. Raises InvalidValue."""
    if not _ID.fullmatch(provider.id) or provider.id == "credential":
        raise InvalidValue("id", "must be 1 to 32 of a-z, 0-9 and -, and not `credential`")
    parse_name(provider.name)
    _check_words("client_id", [provider.client_id])
    _check_words("scope", provider.scopes)
    if "openid" not in provider.scopes:
        raise InvalidValue("scopes", "must contain openid")
    _check_words(
        "claim",
        [*provider.required_claims, *filter(None, [provider.groups_claim, provider.email_claim])],
    )
    if not all(all(values) and values for values in provider.required_claims.values()):
        raise InvalidValue("required_claims", "must have a value for each claim")
    _check_domains(provider)
    if provider.session_hours not in SESSION_HOURS:
        raise InvalidValue("session_hours", "must be 1 to 168")
    if provider.keys_days not in KEYS_DAYS:
        raise InvalidValue("keys_days", "must be 1 to 90")


def _check_domains(provider: IdentityProvider) -> None:
    for name in provider.domains:
        if not _DOMAIN.fullmatch(name):
            raise InvalidValue(
                "domain",
                f"{name} is not a domain as in DNS, such as acme.com or xn--bcher-kva.example",
            )
    if len({*provider.domains}) != len(provider.domains) or len(provider.domains) > MAX_DOMAINS:
        raise InvalidValue("domains", f"must be at most {MAX_DOMAINS}, each once")
    if len(provider.exceptions) > MAX_EXCEPTIONS:
        raise InvalidValue("exceptions", f"must be at most {MAX_EXCEPTIONS} addresses")
    for address in provider.exceptions:
        if address.rpartition("@")[2] not in provider.domains:
            raise InvalidValue("exceptions", f"{address} is not in a domain of the provider")


def _check_words(field: str, words: Collection[str]) -> None:
    for word in words:
        if not _WORD.fullmatch(word):
            raise InvalidValue(field, "must be 1 to 255 ASCII characters without spaces and quotes")


def _affects_trust(old: IdentityProvider, new: IdentityProvider) -> bool:
    same = {name: getattr(old, name) for name in _NO_TRUST}
    return replace(new, **same, version=old.version) != old


def _change_secrets(
    provider_id: str,
    changed: Callable[[IdentityProvider], IdentityProvider],
    *,
    noting: bool = False,
) -> IdentityProvider:
    for _ in attempts():
        old = require_provider(provider_id)
        new = changed(old)
        entries: list[Write] = []
        if noting:
            action = Action.PROVIDER_CHANGED
            entries.append(audited(_owner(new.id), action, new.id, None, name=new.name))
        if repository.change_secrets(old, new, *entries):
            return new
    raise TryAgain


@contextmanager
def _explained() -> Iterator[None]:
    """Raise InvalidValue for DomainTaken, with the provider that has the domain."""
    try:
        yield
    except DomainTaken as error:
        other = find_domain(error.domain)
        whose = "another provider" if other is None else f"the provider {other.provider_id}"
        raise InvalidValue(
            "domain", f"{error.domain} belongs to {whose}: remove it there first"
        ) from None


def _owner(provider_id: str) -> str:
    """The owner of audit entries about a provider."""
    return f"sso#{provider_id}"


def _sealed(secret: str, with_secret: str | None = None) -> str:
    return signing.seal(secret, purpose=_PURPOSE, with_secret=with_secret)


def _unsealed(sealed: str) -> str | None:
    try:
        return signing.unseal(sealed, purpose=_PURPOSE)
    except signing.InvalidToken:
        return None


def _resealed(sealed: str | None, with_secret: str, accepted: Collection[str]) -> str | None:
    """Raises InvalidToken."""
    if sealed is None:
        return None
    return _sealed(signing.unseal(sealed, purpose=_PURPOSE, accepted=accepted), with_secret)
