"""Team members in replies, named as in the hosted service's REST API."""

from typing import Literal, TypedDict

from larder.accounts.models import User
from larder.accounts.team_members import MembersPage
from larder.clock import Milliseconds, to_ms
from larder.invitations.models import Invitation
from larder.records import shaped
from larder.teams.models import Member, Role
from larder.web.replies.clients import username


class MemberJson(TypedDict):
    """`managedBy` is the id of the identity provider that gives the membership. It is null if people did.

    `managedGroup` is the group of the provider that gives the role. It is null if everyone at the provider has it.
    """

    uid: str
    username: str
    email: str
    name: str
    role: Role
    confirmed: Literal[True]
    managedBy: str | None
    managedGroup: str | None
    createdAt: Milliseconds


class InvitationJson(TypedDict):
    id: str
    email: str
    role: Role
    isDSyncUser: Literal[False]
    createdAt: Milliseconds
    expiresAt: Milliseconds


class GroupRoleJson(TypedDict):
    """The role that people with a group get when they sign in with a provider. `group` is null for everyone there."""

    providerId: str
    group: str | None
    role: Role


class MembersPageJson(TypedDict):
    """Send `next` as `until` to get the next page. It is null on the last page."""

    hasNext: bool
    count: int
    next: Milliseconds | None
    prev: None


class MembersJson(TypedDict):
    """`emailInviteCodes` has the open invitations, and `groupRoles` what providers give, if the caller may see them."""

    members: list[MemberJson]
    emailInviteCodes: list[InvitationJson]
    groupRoles: list[GroupRoleJson]
    pagination: MembersPageJson


def members_json(page: MembersPage) -> MembersJson:
    following = None if page.following is None else to_ms(page.following)
    return {
        "members": [_member_json(member, user) for member, user in page.members],
        "emailInviteCodes": [_invitation_json(invitation) for invitation in page.invitations],
        "groupRoles": [
            {"providerId": provider_id, "group": group, "role": role}
            for provider_id, role, group in page.group_roles
        ],
        "pagination": {
            "hasNext": following is not None,
            "count": len(page.members),
            "next": following,
            "prev": None,
        },
    }


def _member_json(member: Member, user: User) -> MemberJson:
    return {
        "uid": user.id,
        "username": username(user.email),
        "email": user.email,
        "name": user.name,
        "role": member.role,
        "confirmed": True,
        "managedBy": member.managed_by,
        "managedGroup": member.group,
        "createdAt": to_ms(member.joined_at),
    }


def _invitation_json(invitation: Invitation) -> InvitationJson:
    return shaped(InvitationJson, invitation, isDSyncUser=False)
