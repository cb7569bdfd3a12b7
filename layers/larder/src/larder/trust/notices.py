"""The notice to the owners of a team that a rule got its ids from the first token."""

from contextlib import suppress

from larder.accounts.email_jobs import MailContext, RulePinned, send_later
from larder.errors import TryAgain
from larder.teams.members import list_members
from larder.trust.models import Rule


def notify_owners_if_pinned(rule: Rule, mail_context: MailContext, *, has_pinned: bool) -> None:
    """Have the notice sent to each owner. The token exists, so a failure must not look like a failed exchange."""
    if not has_pinned:
        return
    with suppress(TryAgain):
        for member in list_members(rule.team_id):
            if member.role.owns_team:
                send_later(
                    RulePinned(
                        user_id=member.user_id,
                        team_id=rule.team_id,
                        rule_id=rule.id,
                        mail_context=mail_context,
                    )
                )
