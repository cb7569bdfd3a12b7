"""Invite people to a team by email, and accept invitations.

The email contains a token, which is made when the email is sent and stored as a hash. Only a user with the invited
address can use it, once, and only while the member who invited them can still invite.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import (
    InvitationLimitReached,
    InvitationNotFound,
    MemberNotFound,
    TryAgain,
)
from larder.hashing import hash_key, random_id
from larder.invitations import repository
from larder.invitations.models import Invitation, Invitee
from larder.settings import settings
from larder.teams.members import check_manages, remove_member
from larder.teams.models import Member, Role, Team
from larder.teams.repository import read_places
from larder.teams.teams import acting_in

if TYPE_CHECKING:
    from larder.tables import Write

ID_PREFIX = "inv_"
TOKEN_LENGTH = 40

_ID = re.compile(rf"{ID_PREFIX}[A-Za-z0-9]{{24}}")
_TOKEN = re.compile(rf"[A-Za-z0-9]{{{TOKEN_LENGTH}}}")


def create_invitations(
    team_id: str,
    invitees: Sequence[Invitee],
    *,
    by: Member | None,
    actor: Actor | None = None,
    now: datetime,
) -> list[Invitation]:
    """Create invitations, all of them or none. Each replaces an earlier one to the same address.

    Only owners can invite an owner or replace such an invitation. `by` is None for the operator. Even with parallel
    requests, a team never has more open invitations than the deployment allows. Raises MissingRole,
    InvitationLimitReached, TeamNotFound, TryAgain.
    """
    created = [
        Invitation(
            id=f"{ID_PREFIX}{random_id(24)}",
            team_id=team_id,
            email=invitee.email,
            address=invitee.address,
            role=invitee.role,
            invited_by=None if by is None else by.user_id,
            created_at=now,
        )
        for invitee in invitees
    ]
    addresses = {invitation.address for invitation in created}
    entries = [_entry(Action.MEMBER_INVITED, invitation, actor) for invitation in created]
    for _ in attempts():
        # Read the team and its count first, so that an invitation made after this read changes the count.
        _, acting, places = acting_in(team_id, by)
        open_now = open_invitations(team_id, now=now)
        if acting is not None:
            replaced = [
                invitation.role for invitation in open_now if invitation.address in addresses
            ]
            check_manages(acting.role, *replaced, *(invitation.role for invitation in created))
        others = [invitation for invitation in open_now if invitation.address not in addresses]
        if len(others) + len(created) > settings().max_open_invitations:
            raise InvitationLimitReached
        if repository.add(created, *entries, made=places.invitations_made, by=acting):
            return created
    raise TryAgain


def _entry(action: Action, invitation: Invitation, actor: Actor | None) -> "Write":
    return audited(
        invitation.team_id,
        action,
        invitation.id,
        actor,
        name=invitation.email,
        role=invitation.role.value,
    )


def open_invitations(team_id: str, *, now: datetime) -> list[Invitation]:
    """The team's invitations that have not expired, oldest first. The deployment limits their number."""
    found = [invitation for invitation in repository.stored(team_id) if invitation.is_open(now)]
    return sorted(found, key=lambda invitation: (invitation.created_at, invitation.address))


def is_invitation_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def withdraw(
    team_id: str,
    invitation_id: str,
    *,
    by: Member | None,
    actor: Actor | None = None,
    now: datetime,
) -> Invitation:
    """Delete an invitation, so that its token no longer works. Returns the deleted invitation.

    Only owners can withdraw the invitation of an owner. Raises MemberNotFound if it is used, replaced or expired;
    MissingRole, TeamNotFound, TryAgain.
    """
    for _ in attempts():
        _, acting, _ = acting_in(team_id, by)
        found = [
            invitation
            for invitation in open_invitations(team_id, now=now)
            if invitation.id == invitation_id
        ]
        if not found:
            raise MemberNotFound
        if acting is not None:
            check_manages(acting.role, found[0].role)
        invitation = found[0]
        entry = _entry(Action.INVITATION_WITHDRAWN, invitation, actor)
        if repository.delete(invitation, entry, by=acting):
            return invitation
    raise TryAgain


def remove_member_or_withdraw(
    team_id: str, uid: str, *, by: Member, actor: Actor | None = None, now: datetime
) -> None:
    """Remove a member or withdraw an invitation, depending on the kind of id.

    Raises MemberNotFound, MissingRole, LastOwner, TeamNotFound, TryAgain.
    """
    if is_invitation_id(uid):
        withdraw(team_id, uid, by=by, actor=actor, now=now)
    else:
        remove_member(team_id, uid, by=by, actor=actor)


def find(team_id: str, address: str, invitation_id: str, *, now: datetime) -> Invitation | None:
    """The open invitation with this id. None if it is used, withdrawn, replaced or expired."""
    found = repository.get(team_id, address)
    if found is None or found.id != invitation_id or not found.is_open(now):
        return None
    return found


def is_invited(address: str, *, now: datetime) -> bool:
    """Whether the canonical address has an open invitation to any team. One read."""
    return repository.is_invited(address, now=now)


def delete_all(team_id: str, *, has_time: Callable[[], bool]) -> bool:
    """Delete the invitations to a deleted team. False if time ran out."""
    return repository.delete_all(team_id, has_time)


def issue_token(invitation: Invitation) -> str:
    """Issue a token for the invitation; only its hash is stored. Earlier tokens stay valid."""
    token = random_id(TOKEN_LENGTH)
    repository.add_token(hash_key(token), invitation)
    return token


def find_by_token(token: str, *, now: datetime) -> Invitation:
    """The open invitation of a token. Does not use it up. Raises InvitationNotFound."""
    found = repository.find_by_token(hash_key(token)) if _TOKEN.fullmatch(token) else None
    if found is None or not found.is_open(now):
        raise InvitationNotFound
    return found


def team_of(invitation: Invitation) -> Team:
    """The team of an invitation that its author could still create. Raises InvitationNotFound."""
    return _team_and_roles(invitation)[0]


def accept(
    invitation: Invitation, user_id: str, *, actor: Actor | None = None, now: datetime
) -> tuple[Team, Role]:
    """Add the user to the team and delete the invitation. Of parallel requests, one succeeds.

    Returns the team and the user's role in it. A user who is a member already keeps their role. Raises
    InvitationNotFound, TryAgain.
    """
    team_id, role = invitation.team_id, invitation.role
    entry = audited(team_id, Action.MEMBER_ADDED, user_id, actor, role=role.value)
    for _ in attempts():
        team, roles = _team_and_roles(invitation, user_id)
        if user_id in roles:
            done = repository.delete(invitation, by=None)
        else:
            done = repository.accept(invitation, user_id, _inviters(role), entry, now=now)
        if done:
            return team, roles.get(user_id, role)
        current = find(invitation.team_id, invitation.address, invitation.id, now=now)
        if current is None:
            raise InvitationNotFound
    raise TryAgain


def _inviters(role: Role) -> list[Role]:
    """The roles that can invite someone with this role."""
    return [inviter for inviter in Role if inviter.manages(role)]


def _team_and_roles(invitation: Invitation, *user_ids: str) -> tuple[Team, Mapping[str, Role]]:
    """The team of an invitation that its author could still create, and the roles of users.

    Raises InvitationNotFound.
    """
    author = invitation.invited_by
    places = read_places(invitation.team_id, *user_ids, *([] if author is None else [author]))
    if places.team is None:
        raise InvitationNotFound
    if author is not None and places.roles.get(author) not in _inviters(invitation.role):
        raise InvitationNotFound
    return places.team, places.roles
