"""Tokens for `turbo login`: what somebody who is signed in lets their build client have.

The token is an API key like any other, with a name and an end, for artifacts alone. With `--sso-team` the client first
gets a code, which it exchanges for the key (docs/clients/turbo.md#login). The code is stored beside the keys, as a
hash. It is spent in the same transaction that stores the key, so that it gives one, however many requests bring it. It
ends with the password and with the sessions of who gave it, as they were then: whoever had a session of somebody else's
gets no key by it once that session has been ended with all others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from larder.api_keys import repository
from larder.api_keys.grants import artifact_actions, within
from larder.api_keys.models import CACHE_ACTIONS, ApiKey, LoginCode, NewKey
from larder.api_keys.rules import fit_name
from larder.api_keys.service import prepare_key, store_key
from larder.errors import InvalidLoginCode
from larder.hashing import hash_key, random_id
from larder.settings import settings
from larder.teams.models import TeamMembership
from larder.teams.service import find_membership, list_memberships

CODE_SECONDS = 300
"""As long as the build client waits for its callback; it exchanges the code at once (docs/clients/turbo.md#login)."""

MOST_TEAMS = 100
"""How many teams a person can choose from; whoever has more makes a key by `/api-key/create`."""

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
    """What a build client would get. `expires_at` is None where the deployment's keys never end.

    `team` is the one that the client asked for, None when it asked for none; `teams` are those to choose from then.
    """

    name: str
    expires_at: datetime | None
    team: TeamMembership | None
    teams: Sequence[TeamMembership]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What somebody lets a build client have: a key named `name`, for `team_id` alone or for whatever is its user's.

    For a login that has named a team, `sso_team`, by id or slug, it is a code for a key of that team.
    """

    name: str | None = None
    team_id: str | None = None
    sso_team: str | None = None


class Giver(Protocol):
    """A user, as they were when their request found them."""

    @property
    def id(self) -> str: ...

    @property
    def password_version(self) -> int: ...

    @property
    def session_generation(self) -> int: ...


def offer(user_id: str, team: str | None, *, user_agent: str, now: datetime) -> Offer:
    """`team` is the id or slug of the team that the client asked for. Raises TeamNotFound when it is not theirs."""
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


def give(user: Giver, grant: Grant, *, now: datetime) -> str:
    """The token that the build client waits for: a new key, or a code. It exists nowhere else.

    Raises NotATeamMember, TeamNotFound, InvalidRequest for a name that does not fit.
    """
    if grant.sso_team is not None:
        return _give_code(user, grant.sso_team, now)
    key, raw = _prepare(user.id, grant.name or fit_name("turbo"), grant.team_id, now)
    store_key(key)
    return raw


def exchange_code(code: str, client_name: str, *, now: datetime) -> tuple[ApiKey, str]:
    """Spend the code; returns a new key of its team, named after the client, and the key itself.

    Raises InvalidLoginCode, and NotATeamMember when the user has left the team meanwhile.
    """
    found = repository.find_login_code(hash_key(code)) if _CODE.fullmatch(code) else None
    if found is None or found.expires_at <= now:
        raise InvalidLoginCode
    key, raw = _prepare(found.user_id, _name_of(client_name), found.team_id, now)
    if not repository.add(key, spending=found):
        # Another request has spent it at this moment, or the user is gone, has another password, or ended the sessions.
        raise InvalidLoginCode
    return key, raw


def _give_code(user: Giver, team: str, now: datetime) -> str:
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
    """A key for artifacts, as far as its user may use them, which is stored nowhere yet."""
    holds = {"artifacts": artifact_actions(user_id, team_id)}
    new = NewKey(
        user_id=user_id,
        team_id=team_id,
        name=name,
        expires_in_s=_lifetime_s(),
        permissions=within({"artifacts": CACHE_ACTIONS}, holds),
    )
    return prepare_key(new, now=now)


def _lifetime_s() -> int | None:
    """Within what the deployment allows for keys; None where it gives all of them the same lifetime."""
    options = settings()
    if options.disable_custom_key_expiry:
        return None
    least, most = options.minimum_key_expires_in_seconds, options.maximum_key_expires_in_seconds
    return max(least, min(most, options.login_token_expires_in_seconds))


def _system(user_agent: str) -> str:
    """The browser tells what it runs on, which is where the build client runs too, as a rule."""
    return next((name for mark, name in _SYSTEMS if mark in user_agent), "this computer")


def _name_of(client_name: str) -> str:
    """`Turbo CLI on <host> via <how>` is what clients call themselves: too long for a name, and only the host tells."""
    match = _CLIENT_NAME.fullmatch(client_name)
    host = match["host"] if match else ""
    return fit_name(f"turbo on {host if host.isprintable() and host.strip() else 'this computer'}")
