"""Team members as users."""

from dataclasses import dataclass
from datetime import datetime

from larder.accounts.models import User
from larder.accounts.service import find_users
from larder.invitations import service as invitations
from larder.invitations.models import Invitation
from larder.teams import members
from larder.teams.models import Member, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersPage:
    """Members with their users, newest member first. Pass `following` as `until` for the next page.

    `invitations` are the open ones. They are on the first page, and only for callers who manage members.
    """

    members: tuple[tuple[Member, User], ...]
    invitations: tuple[Invitation, ...]
    following: datetime | None


def page_with_users(
    team_id: str,
    *,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    seen_by: Role,
    now: datetime,
) -> MembersPage:
    """A page of a team's members, without users who have just deleted their account."""
    found, following = members.page_of_members(team_id, since=since, until=until, limit=limit)
    users = find_users([member.user_id for member in found])
    open_invitations: list[Invitation] = []
    if until is None and seen_by.manages_members:
        open_invitations = invitations.open_invitations(team_id, now=now)
    return MembersPage(
        members=tuple(
            (member, users[member.user_id]) for member in found if member.user_id in users
        ),
        invitations=tuple(open_invitations),
        following=following,
    )
