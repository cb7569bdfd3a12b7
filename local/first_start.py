"""Create the operator, team and key of a new data folder. Runs in a worker, through the layer's own services.

A key is shown once, so it is only in turbo.env. If the key in that file is still valid, it is kept. Otherwise a new key
replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from larder.accounts import service as accounts
from larder.accounts.models import User
from larder.api_keys import keys as api_keys
from larder.api_keys.models import ApiKey
from larder.api_keys.properties import NewKey, fit_name
from larder.api_keys.verification import stored_form
from larder.settings import SettingsError, environment_name, settings
from larder.teams import teams
from larder.teams.models import Team
from local.environment import OPERATOR_EMAIL

TEAM_SLUG = "my-team"
KEY_NAME = "turbo on this machine"
KEY_PREFIX = "larder_"


def handler(event: Mapping[str, Any], _context: object) -> dict[str, str]:
    """Takes `{"token": ...}`, the key in turbo.env or null.

    Returns `team`, `key_id` and, if the key is new, `token`. If a setting prevents creating a key, returns the error as
    `wrong`.
    """
    try:
        return _prepare(event["token"], datetime.now(tz=UTC))
    except SettingsError as error:
        return {"wrong": str(error)}


def _prepare(token: str | None, now: datetime) -> dict[str, str]:
    user = accounts.find_user_by_email(OPERATOR_EMAIL) or accounts.create_user(
        OPERATOR_EMAIL, "Operator", email_verified=True, now=now
    )
    team = _team(user, now)
    new = NewKey(
        user_id=user.id,
        team_id=team.id,
        name=fit_name(KEY_NAME),
        prefix=_fit_prefix(),
        permissions={"artifacts": ("read", "write")},
    )
    keys = _keys_of(user)
    kept = None if token is None else stored_form(token)
    for key in keys:
        if key.key_hash == kept and (key.expires_at is None or key.expires_at > now):
            return {"team": team.slug, "key_id": key.id}
    for key in keys:
        if (key.team_id, key.name, key.prefix) == (new.team_id, new.name, new.prefix):
            api_keys.revoke_key(key)
    key, raw = _make_key(new, now)
    return {"team": team.slug, "key_id": key.id, "token": raw}


def _team(user: User, now: datetime) -> Team:
    team = teams.find_team(TEAM_SLUG)
    if team is None:
        team = teams.create_team("My team", TEAM_SLUG, owner_user_id=user.id, now=now)
    return team


def _fit_prefix() -> str:
    shortened = KEY_PREFIX[: settings().maximum_key_prefix_length]
    return shortened.ljust(settings().minimum_key_prefix_length, "_")


def _keys_of(user: User) -> list[ApiKey]:
    try:
        return api_keys.list_keys(user.id)
    except KeyError as error:
        raise SettingsError(
            f"{environment_name('api_key_schema')} cannot change once there are keys:"
            f" the stored keys lack the attribute {error}"
        ) from None


def _make_key(new: NewKey, now: datetime) -> tuple[ApiKey, str]:
    try:
        key, raw = api_keys.prepare_key(new, now=now)
    except SettingsError:
        raise
    except Exception as error:
        if not settings().extensions:
            raise
        raise SettingsError(
            f"{environment_name('extensions')}: generate_key failed: {type(error).__name__}: {error}"
        ) from error
    api_keys.store_key(key)
    return key, raw
