"""Providers that tests add."""

from datetime import UTC, datetime, timedelta
from typing import Any

from larder import clock
from larder.accounts import repository
from larder.accounts.models import ProviderAccount, Session, User
from larder.accounts.sessions import new_session
from larder.hashing import random_id
from larder.sso import service
from larder.sso.models import Endpoints, IdentityProvider
from larder.tables import commit

SECRET = "the-client-secret"

ENDPOINTS = Endpoints(
    authorization="https://login.acme.example/authorize",
    token="https://login.acme.example/token",
    jwks="https://login.acme.example/keys",
    userinfo="https://login.acme.example/userinfo",
    sends_issuer=True,
    authentication="client_secret_basic",
    algorithms=("RS256",),
)


def acme(**settings: Any) -> IdentityProvider:
    """A provider `acme` of the domain acme.example, which is not stored."""
    now = clock.now()
    given = {
        "id": "acme",
        "name": "Acme",
        "issuer": "https://login.acme.example",
        "client_id": "larder",
        "origin": "https://cache.example.com",
        "secret": None,
        "endpoints": ENDPOINTS,
        "domains": ("acme.example",),
        "created_at": now,
        "updated_at": now,
        **settings,
    }
    return IdentityProvider(**given)


def add_acme(**settings: Any) -> IdentityProvider:
    """The same provider, stored, with the client secret `SECRET`."""
    return service.add_provider(acme(**settings), SECRET)


def signed_in(
    user: User, *, provider: str = "acme", authenticated_at: datetime, lifetime: timedelta | None = None, now: datetime
) -> tuple[Session, str]:
    """A stored session that a provider has started, and its token."""
    session, token = new_session(user, provider=provider, authenticated_at=authenticated_at, lifetime=lifetime, now=now)
    assert repository.add_session(session)
    return session, token


def link(user: User, provider: IdentityProvider, subject: str = "") -> ProviderAccount:
    """An account of the user at the provider, as if they had signed in with it. By default the user's id names them."""
    now = clock.now()
    account = ProviderAccount(
        id=random_id(),
        user_id=user.id,
        provider_id=provider.id,
        issuer=provider.issuer,
        subject=subject or user.id,
        address=user.email,
        created_at=now,
        updated_at=now,
    )
    assert commit(*repository.linking(account))
    return account


LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
