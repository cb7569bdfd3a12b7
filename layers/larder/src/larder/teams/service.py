"""Create and find teams, add and remove members, and set an owner's state."""

import re
from collections.abc import Iterable
from datetime import datetime

from larder.concurrency import attempts
from larder.errors import InvalidRequest, LastOwner, SlugTaken, TeamNotFound, TryAgain
from larder.hashing import random_id
from larder.names import parse_name
from larder.teams import repository
from larder.teams.models import (
    TEAM_ID_PREFIX,
    Block,
    CachingStatus,
    Member,
    Membership,
    OwnerState,
    Places,
    Role,
    Team,
    TeamMembership,
    is_team_id,
)

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")
TEAM_ID = re.compile(r"team_[A-Za-z0-9]{1,64}")

MAX_REASON_LENGTH = 200
"""The longest reason for a block. Clients print it in one line."""


def parse_team_id(text: str) -> str:
    """Raises InvalidRequest naming the query parameter."""
    if not names_a_team(text):
        raise InvalidRequest("teamId", "must be `team_` followed by letters and digits")
    return text


def names_a_team(text: str) -> bool:
    """Whether the text has the format of a team's id."""
    return TEAM_ID.fullmatch(text) is not None


def parse_slug(text: str) -> str:
    """Raises InvalidRequest naming the query parameter."""
    if not SLUG.fullmatch(text):
        raise InvalidRequest("slug", "must be 1 to 48 lower-case letters, digits and inner hyphens")
    return text


def read_state(owner: str) -> OwnerState:
    """The state of a team, or of a user's own cache."""
    return repository.read_state(owner)


def quota_bytes(owner: str) -> int | None:
    """How much a team or user can store. None for no limit."""
    return repository.read_state(owner).quota_bytes


def create_team(name: str, slug: str, *, owner_user_id: str, now: datetime) -> Team:
    """Add a team with its first owner. Raises InvalidRequest, SlugTaken."""
    team = new_team(name, slug, made_by=owner_user_id, now=now)
    if not repository.add_team(team, owner_user_id):
        raise SlugTaken(team.slug)
    return team


def new_team(name: str, slug: str, *, made_by: str, now: datetime) -> Team:
    """Make a team without storing it. Raises InvalidRequest."""
    return Team(
        id=f"{TEAM_ID_PREFIX}{random_id(24)}",
        slug=parse_slug(slug),
        name=parse_name(name),
        created_at=now,
        updated_at=now,
        created_by=made_by,
        state=OwnerState(),
    )


def team_of_slug(slug: str) -> str | None:
    """The id of the team with this slug. None if there is none."""
    return repository.team_of_slug(slug)


def find_team(id_or_slug: str) -> Team | None:
    team_id = id_or_slug if is_team_id(id_or_slug) else repository.team_of_slug(id_or_slug)
    return None if team_id is None else repository.get_team(team_id)


def list_teams() -> list[Team]:
    """Every team, by slug. For the operator: the cost grows with the number of teams."""
    return repository.list_teams()


def role_of(team_id: str, user_id: str) -> Role | None:
    """The user's role in the team. None if they are not a member."""
    return repository.read_standing(team_id, user_id).role


def find_membership(id_or_slug: str, user_id: str, *, bound_to: str | None) -> TeamMembership:
    """The team and the user's membership in it. `bound_to` is the team that the caller's key is bound to, if any.

    Raises TeamNotFound if the team does not exist, the user is not a member, or the key is bound to another team.
    """
    team_id = id_or_slug if names_a_team(id_or_slug) else None
    if SLUG.fullmatch(id_or_slug):
        team_id = repository.team_of_slug(id_or_slug)
    if team_id is None or bound_to not in (None, team_id):
        raise TeamNotFound
    found = _memberships([repository.read_standing(team_id, user_id)])
    if not found:
        raise TeamNotFound
    return found[0]


def list_memberships(
    user_id: str, *, bound_to: str | None, after: str | None, limit: int
) -> tuple[list[TeamMembership], str | None]:
    """A page of the user's teams, by slug, and `after` for the next page, None on the last one.

    A team that the user has just joined can be missing for milliseconds. A team that they have left is never included.
    """
    if bound_to is not None:
        team_ids, following = [bound_to] if after is None else [], None
    else:
        found = repository.page_of_teams(user_id, after=after, limit=limit + 1)
        team_ids = found[:limit]
        following = team_ids[-1] if len(found) > limit else None
    memberships = _memberships(repository.read_standings(team_ids, user_id))
    return sorted(memberships, key=lambda one: one.team.slug), following


def _memberships(standings: Iterable[Membership]) -> list[TeamMembership]:
    return [
        TeamMembership(team=standing.team, member=standing.member)
        for standing in standings
        if standing.team is not None and standing.member is not None
    ]


def members(team_id: str) -> list[Member]:
    """All members of the team, oldest first. The cost grows with their number."""
    return sorted(repository.members(team_id), key=lambda one: (one.joined_at, one.user_id))


def add_member(team_id: str, user_id: str, role: Role, *, now: datetime) -> None:
    """Add a member, or change the role of an existing one, which keeps the time of joining.

    Raises InvalidRequest for a team that does not exist, LastOwner, TryAgain.
    """
    for _ in attempts():
        places = repository.read_places(team_id, user_id)
        if places.team is None:
            raise InvalidRequest("team", "does not exist")
        current_role = places.roles.get(user_id)
        if current_role is role:
            return
        if current_role is None:
            done = repository.add_member(team_id, user_id, role, now=now)
        else:
            check_not_last(current_role, places)
            done = repository.change_role(team_id, user_id, current_role, role)
        if done:
            return
    raise TryAgain


def remove_member(team_id: str, user_id: str) -> None:
    """Takes effect at the member's next request. Raises LastOwner, TryAgain."""
    _remove(team_id, user_id, keeps_an_owner=True)


def leave_teams(user_id: str) -> bool:
    """Remove a deleted user from all teams. Does not raise: returns False if memberships may be left.

    This also removes a last owner. The operator can then name another.
    """
    left = True
    try:
        repository.forget_made(user_id)
        for team_id in repository.teams_of(user_id):
            try:
                _remove(team_id, user_id, keeps_an_owner=False)
            except TryAgain:
                left = False
    except TryAgain:
        return False
    return left


def forget_personal_state(user_id: str) -> None:
    """Delete the caching status, block and quota of a deleted user."""
    repository.forget_personal_state(user_id)


def owned_alone(user_id: str) -> list[str]:
    """The slugs of the teams that the user is the only owner of, in order."""
    slugs = []
    for team_id in repository.teams_of(user_id):
        owners = {
            member.user_id for member in repository.members(team_id) if member.role is Role.OWNER
        }
        team = repository.get_team(team_id)
        if owners == {user_id} and team is not None:
            slugs.append(team.slug)
    return sorted(slugs)


def change_state(
    owner: str,
    *,
    caching: CachingStatus | None = None,
    block: Block | None = None,
    block_reason: str | None = None,
    unblock: bool = False,
    quota_bytes: int | None = None,
    default_quota: bool = False,
) -> OwnerState:
    """Change the given parts of the owner's state. `owner` is the id of a team or a user.

    `block_reason` needs `block`, and clients get its text; a block without a reason removes the earlier reason.
    `unblock` lifts a block. `default_quota` returns to the deployment's quota. Raises InvalidRequest for a team that
    does not exist, a quota below 1, a reason that is empty, too long or not printable, and the status `over_limit`,
    which follows from the quota.
    """
    if caching is CachingStatus.OVER_LIMIT:
        raise InvalidRequest("caching", "over_limit follows from the quota; it cannot be set")
    if quota_bytes is not None and quota_bytes < 1:
        raise InvalidRequest("quota", "must be a positive number of bytes")
    if block_reason is not None:
        _check_reason(block_reason, block)
    changes: dict[str, str | int | None] = {}
    if caching is not None:
        changes["caching"] = caching.value
    if unblock:
        changes |= {"block": None, "block_reason": None}
    elif block is not None:
        changes |= {"block": block.value, "block_reason": block_reason}
    if default_quota:
        changes["quota_bytes"] = None
    elif quota_bytes is not None:
        changes["quota_bytes"] = quota_bytes
    if changes and not repository.change_state(owner, changes):
        raise InvalidRequest("team", "does not exist")
    return repository.read_state(owner)


def _check_reason(reason: str, block: Block | None) -> None:
    if block is None:
        raise InvalidRequest("reason", "is only allowed together with a block")
    if not (1 <= len(reason) <= MAX_REASON_LENGTH and reason.isprintable() and reason.strip()):
        raise InvalidRequest("reason", f"must hold 1 to {MAX_REASON_LENGTH} printable characters")


def _remove(team_id: str, user_id: str, *, keeps_an_owner: bool) -> None:
    for _ in attempts():
        places = repository.read_places(team_id, user_id)
        current_role = places.roles.get(user_id)
        if current_role is None:
            return
        if places.team is None:
            repository.delete_member(team_id, user_id)
            return
        if keeps_an_owner:
            check_not_last(current_role, places)
        if repository.remove_member(team_id, user_id, current_role, keeps_an_owner=keeps_an_owner):
            return
    raise TryAgain


def check_not_last(role: Role, places: Places) -> None:
    """Raises LastOwner for the role of the only owner of a team."""
    if role is Role.OWNER and places.owners <= 1:
        raise LastOwner
