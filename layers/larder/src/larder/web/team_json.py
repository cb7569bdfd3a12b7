"""Teams, members and invitations on the wire, named as in the hosted service's REST API. Times in milliseconds."""

from collections.abc import Sequence
from typing import Any

from larder.accounts.models import User
from larder.accounts.team_members import MembersPage
from larder.clock import to_ms
from larder.invitations.models import Invitation
from larder.teams.models import Member, Role, Team
from larder.web.client_json import username


def created_json(team: Team) -> dict[str, Any]:
    return {"id": team.id, "slug": team.slug, "name": team.name}


def members_json(page: MembersPage) -> dict[str, Any]:
    """`next` is what asks for the next page, as `until`; null after the last one.

    Open invitations stand in `emailInviteCodes`, for whoever may see them.
    """
    following = None if page.following is None else to_ms(page.following)
    return {
        "members": [_member_json(member, user) for member, user in page.members],
        "emailInviteCodes": [_invitation_json(one) for one in page.invitations],
        "pagination": {
            "hasNext": following is not None,
            "count": len(page.members),
            "next": following,
            "prev": None,
        },
    }


def invited_json(invitations: Sequence[Invitation]) -> dict[str, Any]:
    """The first one, which is how clients of the hosted service read the answer, and in `invitations` all of them."""
    invited = [_invited_json(one) for one in invitations]
    return {**invited[0], "invitations": invited}


def _invited_json(invitation: Invitation) -> dict[str, Any]:
    """`uid` is the invitation's own id: it takes the place of a user's till somebody has joined by it."""
    return {
        "uid": invitation.id,
        "username": username(invitation.email),
        "email": invitation.email,
        "role": invitation.role.value,
        "confirmed": False,
        "createdAt": to_ms(invitation.created_at),
        "expiresAt": to_ms(invitation.expires_at),
    }


def joined_json(team: Team, role: Role) -> dict[str, Any]:
    return {
        "teamId": team.id,
        "slug": team.slug,
        "name": team.name,
        "role": role.value,
        "from": "mail",
    }


def _member_json(member: Member, user: User) -> dict[str, Any]:
    return {
        "uid": user.id,
        "username": username(user.email),
        "email": user.email,
        "name": user.name,
        "role": member.role.value,
        "confirmed": True,
        "createdAt": to_ms(member.joined_at),
    }


def _invitation_json(invitation: Invitation) -> dict[str, Any]:
    return {
        "id": invitation.id,
        "email": invitation.email,
        "role": invitation.role.value,
        "isDSyncUser": False,
        "createdAt": to_ms(invitation.created_at),
        "expiresAt": to_ms(invitation.expires_at),
    }
