"""The operator, team and key that a fresh data folder gets. Runs in a worker, through the layer's own services.

A key is shown once: it lies in turbo.env and nowhere else. While that file's key is there, it is kept; when the file is
gone, a new key is made and the old one revoked.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from larder.accounts import service as accounts
from larder.accounts.models import User
from larder.api_keys import service as api_keys
from larder.api_keys.models import NewKey
from larder.teams import service as teams
from larder.teams.models import Team
from local.environment import OPERATOR_EMAIL

TEAM_SLUG = "my-team"
KEY_NAME = "turbo on this machine"


def handler(event: Mapping[str, Any], _context: object) -> dict[str, str]:
    """Takes `{"key_id": ...}`, the id in turbo.env or null. Returns `team`, `key_id` and, of a new key, `token`."""
    now = datetime.now(tz=UTC)
    user = accounts.find_user_by_email(OPERATOR_EMAIL) or accounts.create_user(
        OPERATOR_EMAIL, "Operator", email_verified=True, now=now
    )
    team = _team(user, now)
    own_keys = [key for key in api_keys.list_keys(user.id) if key.name == KEY_NAME]
    if any(key.id == event["key_id"] for key in own_keys):
        return {"team": team.slug, "key_id": event["key_id"]}
    for key in own_keys:
        api_keys.revoke_key(key.id)
    new = NewKey(
        user_id=user.id,
        team_id=team.id,
        name=KEY_NAME,
        prefix="larder_",
        permissions={"artifacts": ("read", "write")},
    )
    made, token = api_keys.create_key(new, now=now)
    return {"team": team.slug, "key_id": made.id, "token": token}


def _team(user: User, now: datetime) -> Team:
    team = teams.find_team(TEAM_SLUG)
    if team is None:
        team = teams.create_team("My team", TEAM_SLUG, owner_user_id=user.id, now=now)
    return team
