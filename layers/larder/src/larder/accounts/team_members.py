"""People in teams: who is listed, who is invited, and who joins."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from larder.accounts.addresses import canonical, parse_address
from larder.accounts.email_jobs import EmailKind, Visit, send_later
from larder.accounts.models import User
from larder.accounts.service import find_users
from larder.errors import InvalidRequest, InvitationForAnother
from larder.hashing import hash_key
from larder.invitations import service as invitations
from larder.invitations.models import Invitation, Invitee
from larder.rate_limits.models import INVITATIONS, INVITATIONS_TO_ONE
from larder.rate_limits.service import take_if_counted
from larder.teams import management
from larder.teams.models import Actor, Member, Role, Team


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationWanted:
    """Whom to invite, by an address as it was given, and as what."""

    email: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersPage:
    """Members with the users that they are, those who joined last first; `following` is until when the rest joined.

    `invitations` are the open ones, for whoever manages members, on the first page.
    """

    members: tuple[tuple[Member, User], ...]
    invitations: tuple[Invitation, ...]
    following: datetime | None


def page_of_members(
    team_id: str,
    *,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    seen_by: Role,
    now: datetime,
) -> MembersPage:
    """A page of a team's members. One who has just deleted their account is not shown."""
    found, following = management.page_of_members(team_id, since=since, until=until, limit=limit)
    users = find_users([member.user_id for member in found])
    open_ones: list[Invitation] = []
    if until is None and seen_by.manages_members:
        open_ones = invitations.open_invitations(team_id, now=now)
    return MembersPage(
        members=tuple(
            (member, users[member.user_id]) for member in found if member.user_id in users
        ),
        invitations=tuple(open_ones),
        following=following,
    )


def invite(
    team_id: str,
    wanted: Sequence[InvitationWanted],
    visit: Visit,
    *,
    by: Actor | None,
    now: datetime,
) -> list[Invitation]:
    """Invite people, all of them or nobody, and have mail sent to each. `by` is None for the operator.

    No address is looked up: neither what is answered nor how long it takes tells who has an account, or is a member.
    Somebody who is invited again gets another mail, and the earlier invitation ends. Raises InvalidEmail,
    InvalidRequest, MissingRole, InvitationLimitReached, TooManyRequests, TeamNotFound, TryAgain.
    """
    invitees = [
        Invitee(email=parse_address(one.email), address=canonical(one.email), role=one.role)
        for one in wanted
    ]
    if len({invitee.address for invitee in invitees}) < len(invitees):
        raise InvalidRequest("email", "must not name the same address twice")
    if by is not None:
        for invitee in invitees:
            _count(team_id, invitee, by, now)
    made = invitations.invite(team_id, invitees, by=by, now=now)
    for invitation in made:
        send_later(
            EmailKind.TEAM_INVITATION,
            invitation.email,
            "",
            visit,
            team_id=team_id,
            invitation_id=invitation.id,
        )
    return made


def join(user: User, token: str, *, now: datetime) -> tuple[Team, Role]:
    """Accept the invitation that a token is for; returns the team, and the role that the user has in it.

    Raises InvitationNotFound, InvitationForAnother when it was sent to another address than the user's.
    """
    invitation = invitations.find_by_token(token, now=now)
    if canonical(user.email) != invitation.address:
        raise InvitationForAnother
    return invitations.accept(invitation, user.id, now=now)


def _count(team_id: str, invitee: Invitee, by: Actor, now: datetime) -> None:
    """Each invitation sends mail to somebody who has not asked for it. Raises TooManyRequests."""
    take_if_counted(f"invitations-by#{by.user_id}", INVITATIONS, now=now)
    to_one = f"invitations-to#{team_id}#{hash_key(invitee.address)}"
    take_if_counted(to_one, INVITATIONS_TO_ONE, now=now)
