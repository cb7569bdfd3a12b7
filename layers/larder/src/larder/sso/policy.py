"""What the mode of a provider means for the people of its domains.

People of a domain whose provider is required are *managed*, except for the addresses that are exceptions: they sign in
with the provider only, and their access ends some days after the last time.
"""

from datetime import datetime, timedelta

from larder.sso.models import Domain, IdentityProvider


def is_managed(provider: IdentityProvider, address: str) -> bool:
    """Whether the user with this canonical address is managed by the provider."""
    domain = Domain(
        name=address.rpartition("@")[2],
        provider_id=provider.id,
        mode=provider.mode,
        exceptions=provider.exceptions,
    )
    return domain.name in provider.domains and domain.requires_provider(address)


def managed_until(provider: IdentityProvider, address: str, *, now: datetime) -> datetime | None:
    """The end of the access of a user who signs in with the provider now. None for one who is not managed."""
    return now + timedelta(days=provider.keys_days) if is_managed(provider, address) else None


def session_lifetime(provider: IdentityProvider, address: str) -> timedelta | None:
    """How long a session of the user lasts. None for a user who is not managed: the options decide."""
    return timedelta(hours=provider.session_hours) if is_managed(provider, address) else None
