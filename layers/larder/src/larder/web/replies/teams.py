"""Teams, members and invitations in replies, named as in the hosted service's REST API."""

from collections.abc import Sequence
from typing import Literal, TypedDict

from larder.accounts.models import User
from larder.accounts.team_members import InvitationPreview, MembersPage
from larder.clock import Milliseconds, to_ms
from larder.invitations.models import Invitation
from larder.teams.models import Member, Role, Team
from larder.web.replies.clients import username


class TeamIdJson(TypedDict):
    id: str


class CreatedTeamJson(TypedDict):
    id: str
    slug: str
    name: str


class MemberJson(TypedDict):
    uid: str
    username: str
    email: str
    name: str
    role: Role
    confirmed: Literal[True]
    createdAt: Milliseconds


class InvitationJson(TypedDict):
    id: str
    email: str
    role: Role
    isDSyncUser: Literal[False]
    createdAt: Milliseconds
    expiresAt: Milliseconds


class MembersPageJson(TypedDict):
    """Send `next` as `until` to get the next page. It is null on the last page."""

    hasNext: bool
    count: int
    next: Milliseconds | None
    prev: None


class MembersJson(TypedDict):
    """`emailInviteCodes` has the open invitations, if the caller may see them."""

    members: list[MemberJson]
    emailInviteCodes: list[InvitationJson]
    pagination: MembersPageJson


class InvitedJson(TypedDict):
    """`uid` is the id of the invitation. It stands where the id of a user will be, once they have joined."""

    uid: str
    username: str
    email: str
    role: Role
    confirmed: Literal[False]
    createdAt: Milliseconds
    expiresAt: Milliseconds


class InvitationsJson(InvitedJson):
    """The first invitation, as clients of the hosted service read it, and all of them in `invitations`."""

    invitations: list[InvitedJson]


class InvitationPreviewJson(TypedDict):
    """`invitedBy` is the address of the member who sent the invitation, null for the operator."""

    slug: str
    role: Role
    invitedBy: str | None
    expiresAt: Milliseconds


# `from` is a keyword of Python, so this is not a class.
JoinedTeamJson = TypedDict(
    "JoinedTeamJson",
    {"teamId": str, "slug": str, "name": str, "role": Role, "from": Literal["mail"]},
)


def created_json(team: Team) -> CreatedTeamJson:
    return {"id": team.id, "slug": team.slug, "name": team.name}


def members_json(page: MembersPage) -> MembersJson:
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


def invitations_json(invitations: Sequence[Invitation]) -> InvitationsJson:
    invited = [_invited_json(one) for one in invitations]
    return {**invited[0], "invitations": invited}


def _invited_json(invitation: Invitation) -> InvitedJson:
    return {
        "uid": invitation.id,
        "username": username(invitation.email),
        "email": invitation.email,
        "role": invitation.role,
        "confirmed": False,
        "createdAt": to_ms(invitation.created_at),
        "expiresAt": to_ms(invitation.expires_at),
    }


def preview_json(preview: InvitationPreview) -> InvitationPreviewJson:
    return {
        "slug": preview.slug,
        "role": preview.role,
        "invitedBy": preview.invited_by,
        "expiresAt": to_ms(preview.expires_at),
    }


def joined_json(team: Team, role: Role) -> JoinedTeamJson:
    return {
        "teamId": team.id,
        "slug": team.slug,
        "name": team.name,
        "role": role,
        "from": "mail",
    }


def _member_json(member: Member, user: User) -> MemberJson:
    return {
        "uid": user.id,
        "username": username(user.email),
        "email": user.email,
        "name": user.name,
        "role": member.role,
        "confirmed": True,
        "createdAt": to_ms(member.joined_at),
    }


def _invitation_json(invitation: Invitation) -> InvitationJson:
    return {
        "id": invitation.id,
        "email": invitation.email,
        "role": invitation.role,
        "isDSyncUser": False,
        "createdAt": to_ms(invitation.created_at),
        "expiresAt": to_ms(invitation.expires_at),
    }
