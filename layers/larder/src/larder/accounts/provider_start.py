"""Begin a sign-in with an identity provider, or the linking of an account. It writes nothing."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from larder.addresses import canonical
from larder.errors import NoProviderFound, ProviderNotFound
from larder.settings import settings
from larder.sso.authorization import authorization_url
from larder.sso.memberships import mappings_of_team
from larder.sso.models import IdentityProvider, Mode
from larder.sso.service import (
    find_provider,
    list_providers,
    provider_of_address,
    provider_of_domain,
)
from larder.sso.state import Pages, PendingSignIn, begin
from larder.teams.teams import find_team

Passwords = Literal["all", "some", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderStart:
    """A request to sign in with a provider. One of the first four names it; the first one that is given counts.

    `team` is the slug of a team. `prompt` is `login` or `select_account`.
    """

    provider_id: str | None = None
    email: str | None = None
    domain: str | None = None
    team: str | None = None
    pages: Pages
    login_hint: str | None = None
    prompt: str | None = None
    redirects: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedSignIn:
    """Where the browser goes, and the state that it brings back."""

    url: str
    pending: PendingSignIn


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInChoices:
    """The providers that the sign-in page shows, and whether passwords sign in all, some or none of the users.

    `asks_address` says that the page begins with the address. It leads to a provider that is required or hidden.
    """

    providers: tuple[IdentityProvider, ...]
    passwords: Passwords
    asks_address: bool


def sign_in_choices() -> SignInChoices:
    """Hidden providers are left out."""
    providers = list_providers()
    passwords: Passwords = "none"
    if settings().enable_email_and_password:
        required = any(provider.mode is Mode.REQUIRED for provider in providers)
        passwords = "some" if required else "all"
    shown = tuple(provider for provider in providers if not provider.hidden)
    asks_address = any(provider.hidden or provider.mode is Mode.REQUIRED for provider in providers)
    return SignInChoices(providers=shown, passwords=passwords, asks_address=asks_address)


def start_sign_in(
    wanted: ProviderStart, *, session_id: str | None = None, origin: str, now: datetime
) -> StartedSignIn:
    """Begin a sign-in. With `session_id`, the account will be linked to the user of that session.

    `origin` is the deployment's. Raises ProviderNotFound, NoProviderFound, InvalidEmail, AddressTooLong.
    """
    provider = _provider(wanted)
    pending = begin(
        provider,
        wanted.pages,
        session_id=session_id,
        asks_login=wanted.prompt == "login",
        now=now,
    )
    url = authorization_url(
        provider,
        pending,
        origin=origin,
        login_hint=wanted.login_hint or wanted.email,
        prompt=wanted.prompt,
    )
    return StartedSignIn(url=url, pending=pending)


def _provider(wanted: ProviderStart) -> IdentityProvider:
    if wanted.provider_id is not None:
        found = find_provider(wanted.provider_id)
        if found is None:
            raise ProviderNotFound
        return found
    if wanted.email is not None:
        found = provider_of_address(canonical(wanted.email))
    elif wanted.domain is not None:
        found = provider_of_domain(wanted.domain.lower())
    else:
        found = _of_team(wanted.team or "")
    if found is None:
        raise NoProviderFound
    return found


def _of_team(slug: str) -> IdentityProvider | None:
    """The provider that gives memberships of the team, if it is the only one."""
    team = find_team(slug)
    providers = {provider.id: provider for provider in list_providers()}
    found = (
        []
        if team is None
        else [mapping.provider_id for mapping in mappings_of_team(team.id, providers)]
    )
    return providers[found[0]] if len(found) == 1 else None
