"""Changes that members make in their teams: create, rename and delete teams, change roles, remove members.

The member who makes a change is an Actor, with the role that the request read. Each write is conditional on that role,
so that two admins who remove each other at the same time do not both succeed.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from larder.concurrency import attempts
from larder.errors import (
    InvalidRequest,
    MemberNotFound,
    MissingRole,
    SlugTaken,
    TeamLimitReached,
    TeamNotFound,
    TryAgain,
)
from larder.names import parse_name
from larder.settings import settings
from larder.teams import repository
from larder.teams.models import Actor, Member, Places, Role, Team, TeamChange
from larder.teams.service import check_not_last, new_team, parse_slug

MAX_FORMER_SLUGS = 5
"""The most former slugs that lead to a team. One more frees the oldest."""

_USER_ID = re.compile(r"[A-Za-z0-9]{1,64}")
"""The format of a user id. Checked because DynamoDB refuses keys that are too long."""
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_END = datetime(9999, 1, 1, tzinfo=UTC)
_OWNERS_ONLY = "Only an owner of the team can add, change and remove owners."


def make_team(name: str, slug: str, *, user_id: str, now: datetime) -> Team:
    """Create a team that the user owns, unless they have reached the limit of existing teams that they created.

    The limit is exact under parallel requests. Raises InvalidRequest, SlugTaken, TeamLimitReached, TryAgain.
    """
    team = new_team(name, slug, made_by=user_id, now=now)
    most = settings().max_teams_per_user
    for _ in attempts():
        made = None
        if most:
            old = repository.read_made(user_id)
            existing = repository.existing_teams(old.team_ids)
            if len(existing) >= most:
                raise TeamLimitReached
            made = replace(old, team_ids=(*existing, team.id), version=old.version + 1)
        if repository.add_team(team, user_id, made=made):
            return team
        if repository.team_of_slug(team.slug) is not None:
            raise SlugTaken(team.slug)
    raise TryAgain


def change_team(team_id: str, change: TeamChange, *, by: Actor | None, now: datetime) -> Team:
    """Apply a change, all of it or nothing, and return the changed team. `by` is None for the operator.

    A former slug still leads to the team, so clients that use it continue to work. Raises InvalidRequest, SlugTaken,
    MissingRole, TeamNotFound, TryAgain.
    """
    for _ in attempts():
        team, acting, _ = acting_in(team_id, by)
        if acting is not None and not change.is_open_to(acting.role):
            raise MissingRole
        new = _changed(team, change)
        if new == team:
            return new
        new = replace(new, updated_at=now)
        if repository.change_team(team, new, by=acting):
            return replace(new, version=new.version + 1)
        if repository.team_of_slug(new.slug) not in (None, team_id):
            raise SlugTaken(new.slug)
    raise TryAgain


def delete_team(team_id: str, *, by: Actor | None, now: datetime) -> Team:
    """Delete the team and free its slugs, from the next request on. Returns the deleted team.

    Its other data is deleted later (`deleted_teams`). Raises MissingRole, TeamNotFound, TryAgain.
    """
    for _ in attempts():
        team, acting, _ = acting_in(team_id, by)
        if acting is not None and not acting.role.owns_team:
            raise MissingRole
        if repository.delete_team(team, by=acting, now=now):
            return team
    raise TryAgain


def deleted_teams() -> list[tuple[str, datetime]]:
    """Ids of deleted teams that may have data left, and when they were deleted.

    A team that exists again, because a table was restored, is left out and no longer listed as deleted.
    """
    gone = []
    for team_id, deleted_at in repository.deleted_teams():
        if repository.get_team(team_id) is None:
            gone.append((team_id, deleted_at))
        else:
            repository.forget_deleted(team_id)
    return gone


def clear_team(team_id: str, *, has_time: Callable[[], bool]) -> bool:
    """Delete members and invitations of a deleted team. False if time ran out."""
    return repository.clear(team_id, has_time)


def forget_deleted_team(team_id: str) -> None:
    """Remove the team from the list of deleted teams, once none of its data is left."""
    repository.forget_deleted(team_id)


def page_of_members(
    team_id: str, *, since: datetime | None, until: datetime | None, limit: int
) -> tuple[list[Member], datetime | None]:
    """A page of members, newest first, and `until` for the next page, None on the last one.

    Each member is on exactly one page. A member who has just joined can be missing for milliseconds.
    """
    return repository.page_of_members(
        team_id, since=since or _BEGINNING, until=until or _END, limit=limit
    )


def change_member(team_id: str, user_id: str, role: Role, *, by: Actor) -> None:
    """Change a member's role. Only owners can give or take the role of an owner.

    Raises MemberNotFound, MissingRole, LastOwner, TeamNotFound, TryAgain.
    """
    for _ in attempts():
        acting, current_role, places = _acting_on(team_id, user_id, by)
        check_manages(acting.role, current_role, role)
        if current_role is role:
            return
        check_not_last(current_role, places)
        if repository.change_role(team_id, user_id, current_role, role, by=acting):
            return
    raise TryAgain


def remove_member(team_id: str, user_id: str, *, by: Actor) -> None:
    """Remove a member from the team, or leave it. Takes effect at their next request.

    Raises MemberNotFound, MissingRole, LastOwner, TeamNotFound, TryAgain.
    """
    for _ in attempts():
        acting, current_role, places = _acting_on(team_id, user_id, by)
        if user_id != by.user_id:
            check_manages(acting.role, current_role)
        check_not_last(current_role, places)
        if repository.remove_member(team_id, user_id, current_role, by=acting):
            return
    raise TryAgain


def check_manages(role: Role, *others: Role) -> None:
    """Check that this role can add, change and remove members with the other roles. Raises MissingRole."""
    if not all(role.manages(other) for other in others):
        raise MissingRole(_OWNERS_ONLY if role.manages_members else None)


def acting_in(team_id: str, by: Actor | None, *user_ids: str) -> tuple[Team, Actor | None, Places]:
    """Read the team, the actor with their current role, and the roles of the actor and of `user_ids`.

    Raises TeamNotFound if the team does not exist or the actor has left it.
    """
    actors = () if by is None else (by.user_id,)
    places = repository.read_places(team_id, *actors, *user_ids)
    if places.team is None:
        raise TeamNotFound
    return places.team, None if by is None else _with_current_role(by, places), places


def _with_current_role(by: Actor, places: Places) -> Actor:
    role = places.roles.get(by.user_id)
    if role is None:
        raise TeamNotFound
    return Actor(user_id=by.user_id, role=role)


def _acting_on(team_id: str, user_id: str, by: Actor) -> tuple[Actor, Role, Places]:
    """The actor with their current role, the current role of the member `user_id`, and both their places."""
    if not _USER_ID.fullmatch(user_id):
        raise MemberNotFound
    _, _, places = acting_in(team_id, by, user_id)
    current_role = places.roles.get(user_id)
    if current_role is None:
        raise MemberNotFound
    return _with_current_role(by, places), current_role, places


def _changed(team: Team, change: TeamChange) -> Team:
    name = team.name if change.name is None else parse_name(change.name)
    slug = team.slug if change.slug is None else parse_slug(change.slug)
    caching = team.state.caching if change.caching is None else change.caching
    former = [one for one in (*team.former_slugs, team.slug) if one != slug]
    if change.former_slugs is not None:
        if unknown := [one for one in change.former_slugs if one not in team.slugs]:
            raise InvalidRequest("formerSlugs", f"{unknown[0]!r} is not a former slug of the team")
        former = [one for one in former if one in change.former_slugs]
    return replace(
        team,
        name=name,
        slug=slug,
        former_slugs=tuple(former[-MAX_FORMER_SLUGS:]),
        state=replace(team.state, caching=caching),
    )
