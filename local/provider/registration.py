"""Add the provider to the deployment. Runs in a worker, through the layer's own services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from larder.sso import service
from larder.sso.models import Endpoints, IdentityProvider
from local.provider.app import CLIENT_ID, CLIENT_SECRET, ID, NAME, PATH, SCOPES
from local.provider.people import DOMAIN


def handler(event: Mapping[str, Any], _context: object) -> dict[str, str | None]:
    """Takes `{"url": ...}`, the provider's address, or null to remove it. Returns its `issuer`, or null without one.

    The issuer is the address of the first start. A later one can have another port, but accounts are of the issuer.
    """
    url, now = event["url"], datetime.now(tz=UTC)
    found = service.find_provider(ID)
    if found and not found.issuer.endswith(PATH):
        return {"issuer": None}  # Another one, which the operator has added.
    if url is None:
        if found:
            service.remove_provider(ID)
        return {"issuer": None}
    if found:
        service.change_provider(
            ID,
            lambda old: replace(old, endpoints=_endpoints(url), origin=url.removesuffix(PATH)),
            now=now,
        )
        return {"issuer": found.issuer}
    return {"issuer": service.add_provider(provider_at(url, now), CLIENT_SECRET).issuer}


def provider_at(url: str, now: datetime) -> IdentityProvider:
    """The provider as it is added, without its secret."""
    return IdentityProvider(
        id=ID,
        name=NAME,
        issuer=url,
        client_id=CLIENT_ID,
        origin=url.removesuffix(PATH),
        secret=None,
        endpoints=_endpoints(url),
        domains=(DOMAIN,),
        scopes=SCOPES,
        groups_claim="groups",
        created_at=now,
        updated_at=now,
    )


def _endpoints(url: str) -> Endpoints:
    return Endpoints(
        authorization=f"{url}/authorize",
        token=f"{url}/token",
        jwks=f"{url}/keys",
        userinfo=f"{url}/userinfo",
        sends_issuer=True,
        authentication="client_secret_basic",
        algorithms=("RS256",),
    )
