"""Create, find, change and delete teams.

`by` is the member who makes a change, with the role that the request read, or None for the operator. Each write is
conditional on that role, so that two admins who remove each other at the same time do not both succeed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from secrets import token_hex
from typing import TYPE_CHECKING

from larder.actor import Actor
from larder.concurrency import attempts
from larder.errors import (
    OWNERS_ONLY,
    InvalidValue,
    MissingRole,
    SlugTaken,
    TeamLimitReached,
    TeamNotFound,
    TryAgain,
)
from larder.hashing import random_id
from larder.names import parse_name
from larder.settings import settings
from larder.teams import repository
from larder.teams.models import (
    ID_LENGTH,
    PARTITIONED_PREFIX,
    UNDECIDED,
    CachingStatus,
    Member,
    Places,
    Role,
    RunInputs,
    Team,
)
from larder.teams.slugs import named_team, parse_slug
from larder.teams.state import audited_lazily

if TYPE_CHECKING:
    from larder.tables import Write

MAX_FORMER_SLUGS = 5
"""The most former slugs that lead to a team. One more retires the oldest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamChange:
    """Changes to a team. None leaves a property as it is.

    `former_slugs` lists the ones to keep. The rest then leads nowhere. Only the operator lets other teams take it.
    """

    name: str | None = None
    slug: str | None = None
    former_slugs: tuple[str, ...] | None = None
    caching: CachingStatus | None = None
    run_inputs: RunInputs | None = None
    build_hour_cents: int | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The names of the properties to change."""
        changes = (
            ("name", self.name),
            ("slug", self.slug),
            ("former_slugs", self.former_slugs),
            ("caching", self.caching),
            ("run_inputs", self.run_inputs),
            ("build_hour_cents", self.build_hour_cents),
        )
        return tuple(name for name, value in changes if value is not None)

    @property
    def renames(self) -> bool:
        return self.named not in ((), ("caching",))

    def is_open_to(self, role: Role) -> bool:
        """Whether this role can make the change."""
        return (role.renames_team or not self.renames) and (role.owns_team or self.caching is None)


def create_team(
    name: str,
    slug: str,
    *,
    owner_user_id: str,
    limited: bool = False,
    reuses_slug: bool = False,
    actor: Actor | None = None,
    now: datetime,
) -> Team:
    """Create a team with its first owner.

    `limited` applies the limit of existing teams that one user has created, and halves the quota for each. Both are
    exact under parallel requests, and do not apply to the operator.

    With `reuses_slug`, the slug can be one that a deleted or renamed team had. It is for the operator: CI of that team
    may still use it.

    Raises InvalidValue, SlugTaken, TeamLimitReached, TryAgain.
    """
    protection = UNDECIDED
    if settings().protect_new_teams == "always":
        protection = replace(UNDECIDED, on=True, trusted_from=now)
    team = Team(
        id=PARTITIONED_PREFIX + random_id(ID_LENGTH - len(PARTITIONED_PREFIX)),
        slug=parse_slug(slug),
        name=parse_name(name),
        created_at=now,
        updated_at=now,
        created_by=owner_user_id,
        run_inputs=RunInputs.NAMES,
        inputs_key=token_hex(32),
        state=repository.new_team_state(protection),
    )
    entries = [audited_lazily(team.id, "team_created", owner_user_id, actor)]
    if protection.on:
        entries.append(audited_lazily(team.id, "protection_set", protection.summary, actor))
    most = settings().max_teams_per_user
    for _ in attempts():
        made = None
        if limited:
            old = repository.read_made(owner_user_id)
            existing = repository.existing_teams(old.team_ids)
            if most and len(existing) >= most:
                raise TeamLimitReached
            made = old._replace(team_ids=(*existing, team.id), version=old.version + 1)
            state = repository.new_team_state(protection, earlier=made.earlier)
            team = replace(team, state=state)
        if repository.add_team(team, owner_user_id, *entries, made=made, reuses_slug=reuses_slug):
            return team
        if repository.claimant_of(team.slug) is not None:
            raise SlugTaken(team.slug)
    raise TryAgain


def find_team(id_or_slug: str) -> Team | None:
    team_id = named_team(id_or_slug)
    return None if team_id is None else repository.get_team(team_id)


def list_teams() -> list[Team]:
    """Every team, by slug. For the operator: the cost grows with the number of teams."""
    return repository.list_teams()


def change_team(
    team_id: str,
    change: TeamChange,
    *,
    by: Member | None,
    actor: Actor | None = None,
    now: datetime,
) -> Team:
    """Apply a change, all of it or nothing, and return the changed team.

    A former slug still leads to the team, so clients that use it continue to work. Raises InvalidValue, SlugTaken,
    MissingRole, TeamNotFound, TryAgain.
    """
    for _ in attempts():
        team, acting, _ = acting_in(team_id, by)
        if acting is not None and not change.is_open_to(acting.role):
            raise MissingRole(None if change.caching is None else OWNERS_ONLY)
        new = _changed(team, change)
        if new == team:
            return new
        new = replace(new, updated_at=now)
        entries = _entries(team, new, actor)
        frees = by is None and change.former_slugs is not None
        if repository.change_team(team, new, *entries, by=acting, frees_slugs=frees):
            return replace(new, version=new.version + 1)
        if repository.claimant_of(new.slug) not in (None, team_id):
            raise SlugTaken(new.slug)
    raise TryAgain


def delete_team(
    team_id: str, *, by: Member | None, actor: Actor | None = None, now: datetime
) -> Team:
    """Delete the team and retire its slugs, from the next request on. Returns the deleted team.

    Its other data is deleted later (`deleted_teams`). Raises MissingRole, TeamNotFound, TryAgain.
    """
    entry = audited_lazily(team_id, "team_deleted", team_id, actor)
    for _ in attempts():
        team, acting, _ = acting_in(team_id, by)
        if acting is not None and not acting.role.owns_team:
            raise MissingRole(OWNERS_ONLY)
        if repository.delete_team(team, entry, by=acting, now=now):
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
            repository.delete_note(team_id)
    return gone


def delete_team_items(team_id: str, *, has_time: Callable[[], bool]) -> bool:
    """Delete members and invitations of a deleted team. False if time ran out."""
    return repository.delete_team_items(team_id, has_time)


def finish_deletion(team_id: str) -> None:
    """Take the team off the list of deleted teams, once none of its data is left."""
    repository.delete_note(team_id)


def acting_in(
    team_id: str, by: Member | None, *user_ids: str
) -> tuple[Team, Member | None, Places]:
    """Read the team, the actor with their current role, and the roles of the actor and of `user_ids`.

    Raises TeamNotFound if the team does not exist or the actor has left it.
    """
    actors = () if by is None else (by.user_id,)
    places = repository.read_places(team_id, *actors, *user_ids)
    if places.team is None:
        raise TeamNotFound
    if by is None:
        return places.team, None, places
    role = places.roles.get(by.user_id)
    if role is None:
        raise TeamNotFound
    return places.team, replace(by, role=role), places


def _entries(old: Team, new: Team, actor: Actor | None) -> "list[Write]":
    """The audit entries of a change: one for the caching status, one for everything else."""
    properties = {
        "name": old.name != new.name,
        "slug": old.slug != new.slug,
        "former_slugs": old.former_slugs != new.former_slugs,
        "run_inputs": old.run_inputs is not new.run_inputs,
        "build_hour_cents": old.build_hour_cents != new.build_hour_cents,
    }
    entries = []
    if any(properties.values()):
        changed = ",".join(name for name, differs in properties.items() if differs)
        entries.append(audited_lazily(old.id, "team_changed", changed, actor))
    if old.state.caching is not new.state.caching:
        entries.append(audited_lazily(old.id, "caching_set", new.state.caching.value, actor))
    return entries


def _changed(team: Team, change: TeamChange) -> Team:
    name = team.name if change.name is None else parse_name(change.name)
    slug = team.slug if change.slug is None else parse_slug(change.slug)
    caching = team.state.caching if change.caching is None else change.caching
    former = [old for old in (*team.former_slugs, team.slug) if old != slug]
    if change.former_slugs is not None:
        if unknown := [old for old in change.former_slugs if old not in team.slugs]:
            raise InvalidValue("former_slugs", f"{unknown[0]!r} is not a former slug of the team")
        former = [old for old in former if old in change.former_slugs]
    run_inputs = team.run_inputs if change.run_inputs is None else change.run_inputs
    hour_cents = change.build_hour_cents
    needs_key = run_inputs is not RunInputs.OFF and not team.inputs_key
    return replace(
        team,
        name=name,
        slug=slug,
        former_slugs=tuple(former[-MAX_FORMER_SLUGS:]),
        run_inputs=run_inputs,
        build_hour_cents=team.build_hour_cents if hour_cents is None else hour_cents,
        inputs_key=token_hex(32) if needs_key else team.inputs_key,
        state=replace(team.state, caching=caching),
    )
