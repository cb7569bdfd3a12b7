"""Notices to the owners of a team about how it trusts credentials."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from larder.accounts.email_jobs import (
    OF_SCHEDULE,
    EmailJob,
    KeyPaused,
    MailContext,
    MakerLeft,
    RulePinned,
    TeamProtected,
    TrustGiven,
    send_later,
)
from larder.accounts.models import User
from larder.api_keys.keys import delete_paused_note, paused_notes
from larder.clock import to_ms
from larder.errors import TryAgain
from larder.teams.members import list_members, roles_in, teams_of


def notify_owners_of_protection(
    team_id: str, mail_context: MailContext, *, ended: bool = False
) -> None:
    """Send the owners an email that the team is protected, or that this has ended."""
    _notify_owners(
        team_id,
        lambda user_id: TeamProtected(
            user_id=user_id, team_id=team_id, ended=ended, mail_context=mail_context
        ),
    )


def notify_owners_of_pinned_rule(team_id: str, rule_id: str, mail_context: MailContext) -> None:
    """Send the owners an email that the rule got the ids of its repository from the first token."""
    _notify_owners(
        team_id,
        lambda user_id: RulePinned(
            user_id=user_id, team_id=team_id, rule_id=rule_id, mail_context=mail_context
        ),
    )


def notify_owners_of_trust(
    team_id: str,
    mail_context: MailContext,
    *,
    rule_id: str = "",
    key_id: str = "",
    made_by: str = "",
) -> None:
    """Send the owners an email about a new rule or trusted key, also those that protect the team."""
    _notify_owners(
        team_id,
        lambda user_id: TrustGiven(
            user_id=user_id,
            team_id=team_id,
            rule_id=rule_id,
            key_id=key_id,
            made_by=made_by,
            mail_context=mail_context,
        ),
    )


def notify_owners_of_key(
    key_id: str, user_id: str | None, team_id: str | None, made_by: str, mail_context: MailContext
) -> None:
    """The same for a trusted key of a user. Without a team, it acts for all teams that trust its user.

    Without a user, the team owns it.
    """
    if user_id is None:
        notify_owners_of_trust(team_id or "", mail_context, key_id=key_id, made_by=made_by)
        return
    with suppress(TryAgain):
        for id in [team_id] if team_id else teams_of(user_id):
            role = roles_in(id, [user_id]).get(user_id)
            if role is not None and role.names_trusted:
                notify_owners_of_trust(id, mail_context, key_id=key_id, made_by=made_by)


def notify_owners_of_departure(
    team_id: str,
    maker: User,
    *,
    rules: Sequence[str],
    keys: Sequence[str],
    known: Sequence[str],
    ending: Mapping[str, datetime],
    mail_context: MailContext,
) -> None:
    """Send the owners an email about what a user leaves behind, if anything.

    These are the rules that they have added, the ids of their trusted keys, and of the keys of the team whose secret
    they know. `ending` says which of the latter end, and when. Call it when the user has left the team, is no longer an
    owner or admin, or has lost all access.
    """
    with suppress(TryAgain):
        if rules or keys or known:
            _notify_owners(
                team_id,
                lambda user_id: MakerLeft(
                    user_id=user_id,
                    team_id=team_id,
                    maker=maker.email,
                    rules=[*rules],
                    keys=[*keys],
                    known=[*known],
                    ending={key_id: to_ms(end) for key_id, end in ending.items()},
                    mail_context=mail_context,
                ),
            )


def notify_owners_of_paused_keys(*, has_time: Callable[[], bool]) -> None:
    """Send the owners an email about each public read key that has reached its bound. A mail can come twice."""
    for key_id, team_id, day, base_url in paused_notes():
        if not has_time():
            return
        context = MailContext(base_url=base_url, request=OF_SCHEDULE)
        _notify_owners(
            team_id,
            partial(KeyPaused, team_id=team_id, key_id=key_id, day=day, mail_context=context),
        )
        delete_paused_note(key_id, day)


def _notify_owners(team_id: str, job_for: Callable[..., EmailJob]) -> None:
    """Hand over a job for each owner. A failure is not raised, because what it is about has happened."""
    with suppress(TryAgain):
        for member in list_members(team_id):
            if member.role.owns_team:
                send_later(job_for(user_id=member.user_id))
