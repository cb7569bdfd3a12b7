"""Who made the rules and keys of a team, what they know, and the notice to its owners when they lose the role."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from larder import clock
from larder.accounts.email_jobs import MailContext
from larder.accounts.models import User
from larder.accounts.service import find_user, find_users
from larder.accounts.team_notices import notify_owners_of_departure
from larder.api_keys.keys import trusted_keys_of
from larder.api_keys.models import ApiKey
from larder.api_keys.ownership import grace_end, known_keys
from larder.errors import TryAgain
from larder.teams.members import roles_in, rules_made_by, teams_of
from larder.teams.models import OPERATOR, Role
from larder.trust.models import Rule

MOST_KEYS = 100
"""The most keys that an email lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """Who added a rule. All are None for the operator.

    `email` is None for a user who is deleted, and `role` for one who is not in the team anymore.
    """

    user_id: str | None = None
    email: str | None = None
    role: Role | None = None

    @property
    def has_left(self) -> bool:
        return self.user_id is not None and self.role is None


Makers = Mapping[str, Maker]
"""Who added rules, by `created_by` of the rules. A rule from before this was stored has none."""


class KnownKey(NamedTuple):
    """A key of a team whose secret a user has seen. `ends_at` is None if it does not end.

    If the user has made the key and could no longer make it, it ends then.
    """

    key: ApiKey
    ends_at: datetime | None


class Traces(NamedTuple):
    """What a user leaves behind in a team: its keys that they know, and the ids of the rules that they added."""

    team_id: str
    known_keys: tuple[KnownKey, ...]
    rules: tuple[str, ...]


def makers_of(team_id: str, rules: Sequence[Rule]) -> Makers:
    """Who added the rules, with their current roles."""
    user_ids = sorted({rule.created_by for rule in rules if rule.created_by} - {OPERATOR})
    if not user_ids:
        return {OPERATOR: Maker()}
    roles, users = roles_in(team_id, user_ids), find_users(user_ids)
    emails = {user_id: user.email for user_id, user in users.items()}
    return {
        OPERATOR: Maker(),
        **{one: Maker(user_id=one, email=emails.get(one), role=roles.get(one)) for one in user_ids},
    }


def notify_of_member(team_id: str, user_id: str, mail_context: MailContext) -> None:
    """Send the owners what the user has made, unless the user is still an owner or admin.

    Call it after the member has left or has got another role, and before their keys are deleted. A failure is not
    raised, because what it is about has happened.
    """
    with suppress(TryAgain):
        role = roles_in(team_id, [user_id]).get(user_id)
        user = None if role and role.names_trusted else find_user(user_id)
        if user is not None:
            _notify(team_id, user, mail_context)


def notify_of_user(user: User, mail_context: MailContext) -> None:
    """The same for a user who loses all access, in all of their teams. Call it before they leave the teams."""
    with suppress(TryAgain):
        for team_id in teams_of(user.id):
            _notify(team_id, user, mail_context)


def _notify(team_id: str, user: User, mail_context: MailContext) -> None:
    keys = [key.id for key in trusted_keys_of(user.id) if key.team_id in (None, team_id)]
    traces = traces_in(team_id, user, now=clock.now())
    known = [key.id for key, _ in traces.known_keys]
    notify_owners_of_departure(
        team_id,
        user,
        rules=traces.rules,
        keys=keys[:MOST_KEYS],
        known=known[:MOST_KEYS],
        ending={key.id: end for key, end in traces.known_keys if end and end != key.expires_at},
        mail_context=mail_context,
    )


def traces_in(team_id: str, user: User, *, now: datetime) -> Traces:
    """What the user would leave behind in the team now. They need not be a member any more."""
    return Traces(
        team_id=team_id,
        known_keys=tuple(_known(key, user, now) for key in known_keys(team_id, user.id)),
        rules=tuple(rules_made_by(team_id, user.id)),
    )


def traces_of(user: User, *, now: datetime) -> list[Traces]:
    """The same in all of their teams."""
    return [traces_in(team_id, user, now=now) for team_id in teams_of(user.id)]


def _known(key: ApiKey, user: User, now: datetime) -> KnownKey:
    end = grace_end(key, since=now) if key.made_by == user.id else None
    return KnownKey(key, end or key.expires_at)
