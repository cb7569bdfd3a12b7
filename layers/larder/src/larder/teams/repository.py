"""The table of teams.

| pk | sk | holds |
|---|---|---|
| `team_...` | `team` | the team: slugs, name, how many owners it has, caching status, quota, block |
| `team_...` | `member#<user id>` | a member's role |
| `slug#<slug>` | `slug` | which team the slug leads to: now, or since it was called so |
| user id | `personal` | caching status, quota and block of a user acting for themselves |
| user id | `made` | the teams that the user has made over HTTP |
| `deleted` | `team_...` | a deleted team, of which something may be left |

Whatever makes or ends an owner changes the team's count of owners in the same transaction. It is that count which keeps
the last one: two owners who leave at once meet at the team's item. A team's slugs are claimed and freed in one
transaction with its item, on condition of its version.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from larder.clock import from_ms, to_ms
from larder.conditions import (
    Condition,
    above,
    begins_with,
    between,
    equals,
    exists,
    missing,
    one_of,
)
from larder.settings import settings
from larder.tables import TEAMS, Item, Key, Write, commit
from larder.teams.models import (
    Actor,
    Block,
    CachingStatus,
    MadeTeams,
    Member,
    Membership,
    OwnerState,
    Places,
    Role,
    Team,
)

_MEMBER = "member#"
_DELETED = "deleted"

TEAM_ID_PREFIX = "team_"
"""The build client only sends a team id that begins with this (docs/clients/turbo.md#teams)."""


def is_team_id(owner: str) -> bool:
    return owner.startswith(TEAM_ID_PREFIX)


def standing_keys(owner: str, user_id: str) -> list[Key]:
    """The keys whose items tell what `user_id` may do for `owner`; `parse_standing` reads the items."""
    if is_team_id(owner):
        return [(owner, "team"), (owner, _MEMBER + user_id)]
    return [(owner, "personal")]


def parse_standing(items: Iterable[Item]) -> Membership:
    by_kind = {item["sk"].partition("#")[0]: item for item in items}
    team = _team(by_kind["team"]) if "team" in by_kind else None
    member = _member(by_kind["member"]) if "member" in by_kind else None
    state = team.state if team else _state(by_kind.get("personal", {}))
    return Membership(team=team, member=member, state=state)


def read_standing(owner: str, user_id: str) -> Membership:
    return parse_standing(TEAMS.get_many(standing_keys(owner, user_id)))


def read_state(owner: str) -> OwnerState:
    """The owner's state alone, for work that nobody asked for: committed uploads and the sweep."""
    sk = "team" if is_team_id(owner) else "personal"
    return _state(TEAMS.get(owner, sk) or {})


def team_of_slug(slug: str) -> str | None:
    claim = TEAMS.get(f"slug#{slug}", "slug")
    return None if claim is None else str(claim["team_id"])


def get_team(team_id: str) -> Team | None:
    item = TEAMS.get(team_id, "team")
    return None if item is None else _team(item)


def list_teams() -> list[Team]:
    """Every team, by slug. Reads the whole table: for the operator, never on a request."""
    return sorted((_team(item) for item in TEAMS.scan(equals(sk="team"))), key=lambda one: one.slug)


def add_team(team: Team, owner_user_id: str, *, made: MadeTeams | None = None) -> bool:
    """Store the team, its claim on the slug and its first owner in one transaction; False when the slug is taken.

    `made` is what the user has made with this team; False also when it is no longer the next state of what is stored.
    """
    items: list[Item] = [
        _slug_item(team.slug, team.id),
        {
            "pk": team.id,
            "sk": "team",
            "slug": team.slug,
            "name": team.name,
            "created_at": to_ms(team.created_at),
            "updated_at": to_ms(team.updated_at),
            "created_by": team.created_by,
            "version": team.version,
            "owners": 1,
        },
        _member_item(team.id, owner_user_id, Role.OWNER, team.created_at),
    ]
    writes = [TEAMS.put(item, when=missing("pk")) for item in items]
    if made is not None:
        note = {"pk": made.user_id, "sk": "made", "team_ids": list(made.team_ids)}
        at_version = _at_version(made.version - 1)
        writes.append(TEAMS.put({**note, "version": made.version}, when=at_version))
    return commit(*writes)


def read_made(user_id: str) -> MadeTeams:
    item = TEAMS.get(user_id, "made")
    if item is None:
        return MadeTeams(user_id=user_id)
    return MadeTeams(
        user_id=user_id, team_ids=tuple(item["team_ids"]), version=int(item["version"])
    )


def forget_made(user_id: str) -> None:
    commit(TEAMS.delete(user_id, "made"))


def forget_personal_state(user_id: str) -> None:
    commit(TEAMS.delete(user_id, "personal"))


def existing_teams(team_ids: Sequence[str]) -> list[str]:
    """Those of the teams that exist, in order."""
    found = {item["pk"] for item in TEAMS.get_many([(team_id, "team") for team_id in team_ids])}
    return [team_id for team_id in team_ids if team_id in found]


def change_team(was: Team, becomes: Team, *, by: Actor | None) -> bool:
    """Write name, slugs and caching status where they differ, claiming and freeing slugs with them.

    False, and nothing is changed, when the team is no longer as it was, when a new slug is taken, or when `by` has
    another role by now.
    """
    states = {
        "name": (was.name, becomes.name),
        "slug": (was.slug, becomes.slug),
        "former_slugs": (list(was.former_slugs), list(becomes.former_slugs)),
        "caching": (was.state.caching.value, becomes.state.caching.value),
    }
    changes = {name: after for name, (before, after) in states.items() if before != after}
    stamp = {"version": was.version + 1, "updated_at": to_ms(becomes.updated_at)}
    update = TEAMS.update(was.id, "team", set=stamp | changes, when=_is_as_read(was))
    claimed = [
        TEAMS.put(_slug_item(slug, was.id), when=missing("pk"))
        for slug in becomes.slugs
        if slug not in was.slugs
    ]
    freed = [slug for slug in was.slugs if slug not in becomes.slugs]
    return commit(update, *claimed, *_freeing(was, freed), *standing_by(was.id, by))


def delete_team(team: Team, *, by: Actor | None, now: datetime) -> bool:
    """End the team and free its slugs; a note stays, by which the rest is found.

    False, and nothing is changed, when the team is no longer as it was, or `by` has another role by now.
    """
    return commit(
        TEAMS.delete(team.id, "team", when=_is_as_read(team)),
        *_freeing(team, team.slugs),
        TEAMS.put({"pk": _DELETED, "sk": team.id, "deleted_at": to_ms(now)}),
        *standing_by(team.id, by),
    )


def deleted_teams() -> Iterator[tuple[str, datetime]]:
    """Teams whose deletion is noted, and since when."""
    for item in TEAMS.query(equals(pk=_DELETED)):
        yield item["sk"], from_ms(item["deleted_at"])


def forget_deleted(team_id: str) -> None:
    commit(TEAMS.delete(_DELETED, team_id))


def clear(team_id: str, has_time: Callable[[], bool]) -> bool:
    """Delete whatever is stored of a team that is gone; False when there was no time for all of it."""
    return TEAMS.delete_each(TEAMS.query(equals(pk=team_id)), has_time)


def read_places(team_id: str, *user_ids: str) -> Places:
    keys = [(team_id, _MEMBER + user_id) for user_id in dict.fromkeys(user_ids)]
    by_key = {item["sk"]: item for item in TEAMS.get_many([(team_id, "team"), *keys])}
    team = by_key.pop("team", {})
    return Places(
        team=_team(team) if team else None,
        owners=team.get("owners", 0),
        invitations_made=team.get("invitations_made", 0),
        roles={item["user_id"]: Role(item["role"]) for item in by_key.values()},
    )


def add_member(team_id: str, user_id: str, role: Role, *, now: datetime) -> bool:
    """False when the team does not exist, or the user is a member of it."""
    return commit(*joining(team_id, user_id, role, now=now))


def joining(team_id: str, user_id: str, role: Role, *, now: datetime) -> list[Write]:
    """What makes the user a member, on condition that the team exists and that they are not in it."""
    member = _member_item(team_id, user_id, role, now)
    return [TEAMS.put(member, when=missing("pk")), _count(team_id, None, role)]


def change_role(
    team_id: str, user_id: str, was: Role, becomes: Role, *, by: Actor | None = None
) -> bool:
    """False when the user's role is not `was`, when `was` is the last owner's, or `by` has another role by now."""
    member = TEAMS.update(
        team_id, _MEMBER + user_id, set={"role": becomes.value}, when=_role_is(was)
    )
    return commit(member, _count(team_id, was, becomes), *standing_by(team_id, by, user_id))


def remove_member(
    team_id: str,
    user_id: str,
    was: Role,
    *,
    keeps_an_owner: bool = True,
    by: Actor | None = None,
) -> bool:
    """False when the user's role is not `was`, when there is no such team, when `by` has another role by now, and,
    unless `keeps_an_owner` is False, when `was` is the last owner's.
    """
    member = TEAMS.delete(team_id, _MEMBER + user_id, when=_role_is(was))
    count = _count(team_id, was, None, keeps_an_owner=keeps_an_owner)
    return commit(member, count, *standing_by(team_id, by, user_id))


def has_role(team_id: str, user_id: str, *roles: Role) -> Write:
    """The part of a transaction that fails unless the user is a member with one of the roles."""
    return TEAMS.check(team_id, _MEMBER + user_id, when=_role_is(*roles))


def delete_member(team_id: str, user_id: str) -> None:
    """For what is left of a team that is gone: there is nothing to count."""
    commit(TEAMS.delete(team_id, _MEMBER + user_id))


def teams_of(user_id: str) -> list[str]:
    """The ids of the user's teams. The index that tells them follows the table by milliseconds."""
    return [item["pk"] for item in TEAMS.query(_is_member(user_id), index="by_user")]


def page_of_teams(user_id: str, *, after: str | None, limit: int) -> list[str]:
    """The same in order, at most `limit` of them, those after the team `after` only."""
    start = None if after is None else {"user_id": user_id, "pk": after, "sk": _MEMBER + user_id}
    found, _ = TEAMS.page(_is_member(user_id), index="by_user", limit=limit, after=start)
    return [str(item["pk"]) for item in found]


def _is_member(user_id: str) -> Condition:
    return equals(user_id=user_id) & begins_with(pk=TEAM_ID_PREFIX)


def read_standings(team_ids: Sequence[str], user_id: str) -> list[Membership]:
    """The user's standing in each team, in order."""
    items: dict[str, list[Item]] = {team_id: [] for team_id in team_ids}
    keys = [key for team_id in team_ids for key in standing_keys(team_id, user_id)]
    for item in TEAMS.get_many(keys):
        items[item["pk"]].append(item)
    return [parse_standing(of_team) for of_team in items.values()]


def members(team_id: str) -> list[Member]:
    """Everybody in the team, by user id."""
    found = TEAMS.query(equals(pk=team_id) & begins_with(sk=_MEMBER))
    return [_member(item) for item in found]


def page_of_members(
    team_id: str, *, since: datetime, until: datetime, limit: int
) -> tuple[list[Member], datetime | None]:
    """Who joined in that time, both ends included, the latest first: `limit` of them, and until when the rest did.

    Those who joined in one millisecond stand on one page, which may hold more for it. The index that tells the order
    follows the table by milliseconds; what is told of each member is the table's.
    """
    if since > until:
        # DynamoDB refuses bounds that are the wrong way round.
        return [], None
    items = TEAMS.query(
        equals(pk=team_id) & between("joined_at", to_ms(since), to_ms(until)),
        index="by_joined",
        backwards=True,
        page_size=limit + 1,
    )
    found: list[Item] = []
    following = None
    for item in items:
        if len(found) >= limit and item["joined_at"] != found[-1]["joined_at"]:
            following = from_ms(found[-1]["joined_at"]) - timedelta(milliseconds=1)
            break
        found.append(item)
    stored = TEAMS.get_many([(team_id, item["sk"]) for item in found])
    by_key = {item["sk"]: _member(item) for item in stored}
    return [by_key[item["sk"]] for item in found if item["sk"] in by_key], following


def change_state(owner: str, changes: Mapping[str, str | int | None]) -> bool:
    """Set attributes of the owner's state (`caching`, `block`, `block_reason`, `quota_bytes`), or clear them by None.

    Returns False when the owner is a team that does not exist; a user's personal state begins here.
    """
    if is_team_id(owner):
        return commit(TEAMS.update(owner, "team", set=changes, when=exists("pk")))
    return commit(TEAMS.update(owner, "personal", set=changes))


def _count(
    team_id: str, was: Role | None, becomes: Role | None, *, keeps_an_owner: bool = True
) -> Write:
    """The part that the team's item has in a change of role: the team exists and, where an owner goes, has another."""
    more = (becomes is Role.OWNER) - (was is Role.OWNER)
    if not more:
        return TEAMS.check(team_id, "team", when=exists("pk"))
    has_another = above(owners=1) if more < 0 and keeps_an_owner else exists("pk")
    return TEAMS.update(team_id, "team", add={"owners": more}, when=has_another)


def standing_by(team_id: str, by: Actor | None, changed: str = "") -> list[Write]:
    """That who acts still has their role. A change of their own membership has that condition already."""
    if by is None or by.user_id == changed:
        return []
    return [has_role(team_id, by.user_id, by.role)]


def _role_is(*roles: Role) -> Condition:
    return one_of("role", [role.value for role in roles])


def _is_as_read(team: Team) -> Condition:
    return exists("pk") & _at_version(team.version)


def _at_version(version: int) -> Condition:
    """What is stored has this version; for the first one, also what has no version, or is not stored."""
    stored = equals(version=version)
    return stored if version else missing("version") | stored


def _freeing(team: Team, slugs: Iterable[str]) -> list[Write]:
    theirs = equals(team_id=team.id)
    return [TEAMS.delete(f"slug#{slug}", "slug", when=theirs) for slug in slugs]


def _slug_item(slug: str, team_id: str) -> Item:
    return {"pk": f"slug#{slug}", "sk": "slug", "team_id": team_id}


def _member_item(team_id: str, user_id: str, role: Role, joined_at: datetime) -> Item:
    return {
        "pk": team_id,
        "sk": _MEMBER + user_id,
        "user_id": user_id,
        "role": role.value,
        "joined_at": to_ms(joined_at),
    }


def _team(item: Item) -> Team:
    return Team(
        id=item["pk"],
        slug=item["slug"],
        name=item["name"],
        created_at=from_ms(item["created_at"]),
        updated_at=from_ms(item.get("updated_at") or item["created_at"]),
        created_by=item.get("created_by"),
        former_slugs=tuple(item.get("former_slugs", ())),
        version=item.get("version", 0),
        state=_state(item),
    )


def _member(item: Item) -> Member:
    return Member(
        user_id=item["user_id"], role=Role(item["role"]), joined_at=from_ms(item["joined_at"])
    )


def _state(item: Item) -> OwnerState:
    default_quota = settings().default_quota_bytes or None
    return OwnerState(
        caching=CachingStatus(item.get("caching", CachingStatus.ENABLED)),
        block=Block(item["block"]) if "block" in item else None,
        block_reason=item.get("block_reason"),
        quota_bytes=item.get("quota_bytes", default_quota),
    )
