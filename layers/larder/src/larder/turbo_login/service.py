"""Tokens for `turbo login`: a signed-in user confirms in the browser, and turbo gets a key.

The token is an API key with a name and an expiry, for artifacts only. With `--sso-team`, turbo first gets a code, which
it exchanges for the key (docs/clients/turbo.md#login). The code is stored as a hash in the table of keys. The
transaction that stores the key deletes the code, so a code gives exactly one key.

A code becomes invalid when the user changes the password or ends all sessions. So an attacker with a stolen session
cannot use a code after the user has ended the sessions.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from larder.accounts.models import User
from larder.actor import CODE, Actor
from larder.api_keys import repository
from larder.api_keys.keys import audit_entries, prepare_key, store_key
from larder.api_keys.models import CACHE_ACTIONS, ApiKey, LoginCode, scope_of_user
from larder.api_keys.properties import NewKey, fit_name
from larder.api_keys.self_service import artifact_actions, within
from larder.audit.models import Action
from larder.errors import InvalidLoginCode
from larder.hashing import hash_key, random_id
from larder.settings import settings
from larder.teams.members import find_membership, list_memberships
from larder.teams.models import TeamMembership

CODE_SECONDS = 300
"""How long turbo waits for its callback. It exchanges the code at once (docs/clients/turbo.md#login)."""

MOST_TEAMS = 100
"""How many teams the page offers. For other teams, create a key with `/api-key/create`."""

_CODE = re.compile(r"[A-Za-z0-9]{32}")
_CLIENT_NAME = re.compile(r"Turbo CLI on (?P<host>.+?)(?: via .*)?")
_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The key that turbo would get. `expires_at` is None if keys of this deployment never expire.

    `team` is the team that turbo requested. If it is None, the user can choose one of `teams`.
    """

    name: str
    expires_at: datetime | None
    team: TeamMembership | None
    teams: Sequence[TeamMembership]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What the user grants to turbo: a key named `name`, for the team `team_id` or, if None, for all that the user has.

    With `sso_team`, the id or slug of the team that the login names, it is a code for a key of that team.
    """

    name: str | None = None
    team_id: str | None = None
    sso_team: str | None = None


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """The secret that turbo gets. `key_id` is the id of the key, None for a code."""

    text: str
    key_id: str | None = None


def offer(user_id: str, team: str | None, *, user_agent: str, now: datetime) -> Offer:
    """`team` is the id or slug of the requested team. Raises TeamNotFound if the user is not a member of it."""
    lifetime_s = _lifetime_s() or settings().default_key_expires_in_seconds or None
    membership, memberships = None, list[TeamMembership]()
    if team is not None:
        membership = find_membership(team, user_id, bound_to=None)
    else:
        memberships, _ = list_memberships(user_id, bound_to=None, after=None, limit=MOST_TEAMS)
    return Offer(
        name=fit_name(f"turbo on {_system(user_agent)}"),
        expires_at=None if lifetime_s is None else now + timedelta(seconds=lifetime_s),
        team=membership,
        teams=memberships,
    )


def create_token(
    user: User, grant: Grant, *, actor: Actor | None = None, now: datetime
) -> IssuedToken:
    """Create the token for turbo: a key, or a code, which the table stores as a hash.

    Raises NotATeamMember, TeamNotFound, InvalidValue for an invalid name.
    """
    if grant.sso_team is not None:
        return IssuedToken(_create_code(user, grant.sso_team, now))
    key, raw = _prepare(user.id, grant.name or fit_name("turbo"), grant.team_id, now)
    store_key(key, maker=user, actor=actor)
    return IssuedToken(raw, key.id)


def exchange_code(code: str, client_name: str, *, now: datetime) -> tuple[ApiKey, str]:
    """Exchange the code for a key of its team, named after the client. Returns the record and the secret key.

    Raises InvalidLoginCode, and NotATeamMember if the user has left the team.
    """
    found = repository.find_login_code(hash_key(code)) if _CODE.fullmatch(code) else None
    if found is None or found.expires_at <= now:
        raise InvalidLoginCode
    key, raw = _prepare(found.user_id, _name_of(client_name), found.team_id, now)
    key = replace(key, password_version=found.password_version or 0)
    entries = audit_entries(Action.KEY_CREATED, key, Actor(CODE, key.user_id))
    if not repository.add(key, *entries, spending=found):
        # Another request has just used the code, or the user was deleted, changed the password or ended the sessions.
        raise InvalidLoginCode
    return key, raw


def _create_code(user: User, team: str, now: datetime) -> str:
    membership = find_membership(team, user.id, bound_to=None)
    code = random_id()
    stored = LoginCode(
        code_hash=hash_key(code),
        user_id=user.id,
        team_id=membership.team.id,
        expires_at=now + timedelta(seconds=CODE_SECONDS),
        password_version=user.password_version,
        session_generation=user.session_generation,
    )
    repository.add_login_code(stored)
    return code


def _prepare(user_id: str, name: str, team_id: str | None, now: datetime) -> tuple[ApiKey, str]:
    """A key, not stored yet, with those `artifacts` permissions that the user's role allows."""
    holds = {"artifacts": artifact_actions(user_id, team_id)}
    new = NewKey(
        user_id=user_id,
        team_id=team_id,
        name=name,
        expires_in_s=_lifetime_s(),
        permissions=within({"artifacts": CACHE_ACTIONS}, holds),
    )
    key, raw = prepare_key(new, now=now)
    # The user confirmed it in the browser, so it writes where the user does.
    return replace(key, scope=scope_of_user(user_id)), raw


def _lifetime_s() -> int | None:
    """The option for login tokens, within the bounds for keys. None if all keys have the same lifetime."""
    options = settings()
    if options.disable_custom_key_expiry:
        return None
    least, most = options.minimum_key_expires_in_seconds, options.maximum_key_expires_in_seconds
    return max(least, min(most, options.login_token_expires_in_seconds))


def _system(user_agent: str) -> str:
    """The operating system of the browser. turbo usually runs on the same computer."""
    return next((name for mark, name in _SYSTEMS if mark in user_agent), "this computer")


def _name_of(client_name: str) -> str:
    """A key name with the host from the client's name, `Turbo CLI on <host> via <how>`. The whole name is too long."""
    match = _CLIENT_NAME.fullmatch(client_name)
    host = match["host"] if match else ""
    return fit_name(f"turbo on {host if host.isprintable() and host.strip() else 'this computer'}")
