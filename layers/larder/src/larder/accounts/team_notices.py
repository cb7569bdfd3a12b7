"""Notices to the owners of a team about how it trusts credentials."""

from collections.abc import Callable
from contextlib import suppress

from larder.accounts.email_jobs import EmailJob, MailContext, RulePinned, TeamProtected, send_later
from larder.errors import TryAgain
from larder.teams.members import list_members


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


def _notify_owners(team_id: str, job_for: Callable[[str], EmailJob]) -> None:
    """Hand over a job for each owner. A failure is not raised, because what it is about has happened."""
    with suppress(TryAgain):
        for member in list_members(team_id):
            if member.role.owns_team:
                send_later(job_for(member.user_id))
