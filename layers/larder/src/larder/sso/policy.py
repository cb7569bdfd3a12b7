"""What the mode of a provider means for its people: those with an address of its domains, and those linked to it.

While the provider is required, they are *managed*, except for the addresses that are exceptions: they sign in with the
provider only, and their access ends some days after the last time. A link counts like a domain. Otherwise, people who
have a private address would keep the account when they leave the company.
"""

from datetime import datetime, timedelta

from larder.sso.models import Domain, IdentityProvider


def is_managed(provider: IdentityProvider, address: str, *, linked: bool = False) -> bool:
    """Whether the provider manages the user with this canonical address. `linked` users have an account there."""
    domain = Domain(
        name=address.rpartition("@")[2],
        provider_id=provider.id,
        mode=provider.mode,
        exceptions=provider.exceptions,
    )
    return (linked or domain.name in provider.domains) and domain.requires_provider(address)


def managed_until(
    provider: IdentityProvider, address: str, *, linked: bool = False, now: datetime
) -> datetime | None:
    """The end of the access of a user who signs in with the provider now. None for one who is not managed."""
    is_ended = is_managed(provider, address, linked=linked)
    return now + timedelta(days=provider.keys_days) if is_ended else None


def session_lifetime(provider: IdentityProvider, address: str) -> timedelta | None:
    """How long a session with the provider lasts. None for a user who is not managed: the options decide."""
    is_short = is_managed(provider, address, linked=True)
    return timedelta(hours=provider.session_hours) if is_short else None
