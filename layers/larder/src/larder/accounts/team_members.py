"""Team members as users."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from larder.accounts.models import User
from larder.accounts.repository import linked_to
from larder.accounts.service import find_users
from larder.invitations import service as invitations
from larder.invitations.models import Invitation
from larder.sso.memberships import mappings_of_team
from larder.sso.service import list_providers
from larder.teams import members
from larder.teams.models import Member, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersPage:
    """Members with their users, newest member first. Pass `following` as `until` for the next page.

    `invitations` are the open ones, and `group_roles` the ids of identity providers with the roles that they give. Both
    are on the first page, and only for callers who manage members.
    """

    members: tuple[tuple[Member, User], ...]
    invitations: tuple[Invitation, ...]
    group_roles: tuple[tuple[str, Role, str | None], ...]
    following: datetime | None


class Knower(NamedTuple):
    """A user who knows the secret of a key. `name` is None for a deleted user.

    `left_at` is when they left the team or were suspended, None for a member.
    """

    user_id: str
    name: str | None
    left_at: datetime | None


def knowers(team_id: str, user_ids: Iterable[str]) -> dict[str, Knower]:
    """The users, by id, and when they left the team. Two reads, and none without users."""
    ids = sorted({*user_ids})
    users = find_users(ids) if ids else {}
    left = members.departures(team_id, ids) if ids else {}
    found = {}
    for user_id in ids:
        user = users.get(user_id)
        suspended_at = None if user is None else user.suspended_at
        left_at = left.get(user_id) or suspended_at
        found[user_id] = Knower(user_id, None if user is None else user.name, left_at)
    return found


def _with_their_links(found: list[Member]) -> list[Member]:
    """The members. Those whose account at the provider is gone are no longer managed by it."""
    by_provider: dict[str, list[str]] = {}
    for member in found:
        if member.managed_by is not None:
            by_provider.setdefault(member.managed_by, []).append(member.user_id)
    linked = {
        (provider_id, user_id)
        for provider_id, users in by_provider.items()
        for user_id in linked_to(provider_id, users)
    }
    return [
        member
        if (member.managed_by, member.user_id) in linked
        else replace(member, managed_by=None, group=None)
        for member in found
    ]


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
    found = _with_their_links(found)
    users = find_users([member.user_id for member in found])
    open_invitations: list[Invitation] = []
    group_roles: list[tuple[str, Role, str | None]] = []
    if until is None and seen_by.manages_members:
        open_invitations = invitations.open_invitations(team_id, now=now)
        group_roles = [
            (mapping.provider_id, *given)
            for mapping in mappings_of_team(team_id, [provider.id for provider in list_providers()])
            for given in mapping.given
        ]
    return MembersPage(
        members=tuple(
            (member, users[member.user_id]) for member in found if member.user_id in users
        ),
        invitations=tuple(open_invitations),
        group_roles=tuple(group_roles),
        following=following,
    )
