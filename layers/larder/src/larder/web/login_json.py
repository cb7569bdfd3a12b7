"""What the page of `turbo login` shows."""

from typing import Any

from larder.accounts.models import User
from larder.api_keys.logins import Offer
from larder.clock import to_iso
from larder.settings import settings
from larder.teams.models import TeamMembership
from larder.web.login_parameters import LoginRequest


def login_json(asked: LoginRequest, user: User | None, offer: Offer | None) -> dict[str, Any]:
    """Of teams nothing is told while nobody is signed in."""
    return {
        "client": asked.client.origin,
        "user": user and {"email": user.email, "name": user.name},
        "token": offer and _offer_json(offer),
    }


def _offer_json(offer: Offer) -> dict[str, Any]:
    return {
        "name": offer.name,
        "maxNameLength": settings().maximum_key_name_length,
        "expiresAt": to_iso(offer.expires_at),
        "team": offer.team and _team_json(offer.team),
        "teams": [_team_json(membership) for membership in offer.teams],
    }


def _team_json(membership: TeamMembership) -> dict[str, Any]:
    team, role = membership.team, membership.role
    return {"id": team.id, "slug": team.slug, "name": team.name, "writes": role.writes_cache}
