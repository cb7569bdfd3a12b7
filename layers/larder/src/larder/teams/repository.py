"""The table of teams (docs/data-model.md#teamstable-pk-sk).

A write that adds or removes an owner changes the team's count of owners in the same transaction. The count protects the
last owner: if two owners leave at the same time, one of the transactions fails. A team's slugs are claimed and retired
in one transaction with its item, on condition of its version.

A retired slug leads nowhere, and no other team can take it: CI of the team that had it may still use it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from larder.actor import is_rule_id
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
from larder.records import Form
from larder.settings import settings
from larder.tables import IDENTITY, TEAMS, Item, Key, Read, Table, Write, batch_get, commit
from larder.teams.models import (
    TEAM_ID_PREFIX,
    UNDECIDED,
    Block,
    CachingStatus,
    MadeTeams,
    Member,
    Membership,
    Overwrites,
    OwnerState,
    People,
    Places,
    Protection,
    Role,
    RuleState,
    RunInputs,
    Team,
    Unsigned,
    UserState,
    is_team_id,
)

_MEMBER = "member#"
_LEFT = "left#"
_GROUP = "managed_group"
_CHANGED = "changed"
_GIVEN = "given"
RULE = "rule#"
"""Before the id of a rule."""

_DELETED = "deleted"
_MEMBERS = Form(Member)


def membership_keys(owner: str, holder_id: str) -> dict[Table, list[Key]]:
    """The keys of the items that decide what the holder can do for `owner`: a user, a team for its own key, or a rule.

    `parse_membership` parses them.
    """
    personal: list[Key] = [(owner, "personal")]
    of_owner = _team_keys(owner, holder_id) if is_team_id(owner) else personal
    if is_rule_id(holder_id) or is_team_id(holder_id):
        return {TEAMS: of_owner}
    return {TEAMS: of_owner, IDENTITY: [_user_key(holder_id)]}


def _team_keys(team_id: str, holder_id: str) -> list[Key]:
    if is_team_id(holder_id):
        return [(team_id, "team")]
    kind = RULE if is_rule_id(holder_id) else _MEMBER
    return [(team_id, "team"), (team_id, kind + holder_id)]


def parse_membership(found: Mapping[Table, Sequence[Item]]) -> Membership:
    by_kind = {item["sk"].partition("#")[0]: item for item in found[TEAMS]}
    team = _team(by_kind["team"]) if "team" in by_kind else None
    member = _MEMBERS.record(by_kind["member"]) if "member" in by_kind else None
    user = next(map(_user_state, found.get(IDENTITY, ())), None)
    state = team.state if team else _personal_state(by_kind.get("personal", {}), user)
    rule = _rule_state(by_kind["rule"]) if "rule" in by_kind else None
    return Membership(team=team, member=member, state=state, user=user, rule=rule)


def reading_membership(owner: str, holder_id: str) -> Read[Membership]:
    return Read(membership_keys(owner, holder_id), parse_membership)


def read_membership(owner: str, holder_id: str) -> Membership:
    return parse_membership(batch_get(membership_keys(owner, holder_id)))


def read_state(owner: str) -> OwnerState:
    """The owner's state without a member, for background work: uploads to S3 and the sweep."""
    if is_team_id(owner):
        return _team_state(TEAMS.get(owner, "team") or {})
    return read_membership(owner, owner).state


def team_of_slug(slug: str) -> str | None:
    claim = TEAMS.get(f"slug#{slug}", "slug")
    return None if claim is None or claim.get("retired") else str(claim["team_id"])


def claimant_of(slug: str) -> str | None:
    """The id of the team that has or had the slug, so that no other team can take it."""
    claim = TEAMS.get(f"slug#{slug}", "slug")
    return None if claim is None else str(claim["team_id"])


def get_team(team_id: str) -> Team | None:
    item = TEAMS.get(team_id, "team")
    return None if item is None else _team(item)


def list_teams() -> list[Team]:
    """Every team, by slug. Reads the whole table: for the operator, never on a request."""
    return sorted(
        (_team(item) for item in TEAMS.scan(equals(sk="team"))), key=lambda team: team.slug
    )


def add_team(
    team: Team,
    owner_user_id: str,
    *also: Write,
    made: MadeTeams | None = None,
    reuses_slug: bool = False,
) -> bool:
    """Store the team, its claim on the slug and its first owner in one transaction. False if the slug is taken.

    With `reuses_slug`, it can be a retired slug of another team.

    `also` are other writes of the transaction, here as in the functions below.

    `made` is the user's list of teams, including this one. Also False if the stored list has changed since it was read.
    """
    protection = team.state.protection
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
            "run_inputs": team.run_inputs.value,
            "inputs_key": team.inputs_key,
            "owners": 1,
            "halvings": (made.earlier if made else 0) or None,
            **({} if protection.on is None else _protection_item(protection)),
        },
        _member_item(
            team.id, Member(user_id=owner_user_id, role=Role.OWNER, joined_at=team.created_at)
        ),
    ]
    free = missing("pk")
    writes = [TEAMS.put(item, when=free) for item in items]
    if reuses_slug:
        writes[0] = TEAMS.put(items[0], when=free | equals(retired=True))
    if made is not None:
        item = {"pk": made.user_id, "sk": "made", "team_ids": list(made.team_ids)}
        at_version = _at_version(made.version - 1)
        writes.append(TEAMS.put({**item, "version": made.version}, when=at_version))
    return commit(*writes, *also)


def read_made(user_id: str) -> MadeTeams:
    item = TEAMS.get(user_id, "made")
    if item is None:
        return MadeTeams(user_id=user_id)
    return MadeTeams(
        user_id=user_id, team_ids=tuple(item["team_ids"]), version=int(item["version"])
    )


def delete_made(user_id: str) -> None:
    commit(TEAMS.delete(user_id, "made"))


def delete_personal_state(user_id: str) -> None:
    commit(TEAMS.delete(user_id, "personal"))


def existing_teams(team_ids: Sequence[str]) -> list[str]:
    """The ids of the teams that exist, in order."""
    found = {item["pk"] for item in TEAMS.get_many([(team_id, "team") for team_id in team_ids])}
    return [team_id for team_id in team_ids if team_id in found]


def change_team(
    old: Team, new: Team, *also: Write, by: Member | None, frees_slugs: bool = False
) -> bool:
    """Write the properties that differ, and claim and retire slugs, in one transaction.

    With `frees_slugs`, other teams can take the slugs that the team no longer has.

    Returns False, and changes nothing, if the team has changed since it was read, a new slug is taken, or `by` no
    longer has the role.
    """
    states = {
        "name": (old.name, new.name),
        "slug": (old.slug, new.slug),
        "former_slugs": (list(old.former_slugs), list(new.former_slugs)),
        "caching": (old.state.caching.value, new.state.caching.value),
        "run_inputs": (old.run_inputs.value, new.run_inputs.value),
        "build_hour_cents": (old.build_hour_cents, new.build_hour_cents),
        "inputs_key": (old.inputs_key, new.inputs_key),
    }
    changes = {name: after for name, (before, after) in states.items() if before != after}
    stamp = {"version": old.version + 1, "updated_at": to_ms(new.updated_at)}
    update = TEAMS.update(old.id, "team", set=stamp | changes, when=_is_as_read(old))
    claimed = [
        TEAMS.put(_slug_item(slug, old.id), when=missing("pk") | equals(team_id=old.id))
        for slug in new.slugs
        if slug not in old.slugs
    ]
    left = [slug for slug in old.slugs if slug not in new.slugs]
    leaving = _freeing(old, left) if frees_slugs else _retiring(old, left)
    return commit(update, *claimed, *leaving, *role_checks(old.id, by), *also)


def delete_team(team: Team, *also: Write, by: Member | None, now: datetime) -> bool:
    """Delete the team's item, retire its slugs, and add it to the list of deleted teams.

    Returns False, and changes nothing, if the team has changed since it was read, or `by` no longer has the role.
    """
    return commit(
        TEAMS.delete(team.id, "team", when=_is_as_read(team)),
        *_retiring(team, team.slugs),
        TEAMS.put({"pk": _DELETED, "sk": team.id, "deleted_at": to_ms(now)}),
        *role_checks(team.id, by),
        *also,
    )


def deleted_teams() -> Iterator[tuple[str, datetime]]:
    """Ids of deleted teams that may have data left, and when they were deleted."""
    for item in TEAMS.query(equals(pk=_DELETED)):
        yield item["sk"], from_ms(item["deleted_at"])


def delete_note(team_id: str) -> None:
    commit(TEAMS.delete(_DELETED, team_id))


def delete_team_items(team_id: str, has_time: Callable[[], bool]) -> bool:
    """Delete all items of a deleted team. False if time ran out."""
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
        managed={
            item["user_id"]: item["managed_by"] for item in by_key.values() if "managed_by" in item
        },
    )


def is_linked(user_id: str, provider_id: str) -> bool:
    """Whether the user has an account at the identity provider."""
    return IDENTITY.get(*provider_account_key(user_id, provider_id)) is not None


def read_places_of(
    user_id: str, team_ids: Sequence[str]
) -> dict[str, tuple[Places, Member | None]]:
    """The user's place in each team, and the member if they are one. One read for up to 50 teams."""
    keys = [(team_id, sk) for team_id in team_ids for sk in ("team", _MEMBER + user_id)]
    found = {(item["pk"], item["sk"]): item for item in TEAMS.get_many(keys)}
    places = {}
    for team_id in team_ids:
        team, member = found.get((team_id, "team"), {}), found.get((team_id, _MEMBER + user_id))
        place = Places(
            team=_team(team) if team else None,
            owners=team.get("owners", 0),
            invitations_made=team.get("invitations_made", 0),
            roles={} if member is None else {user_id: Role(member["role"])},
        )
        places[team_id] = place, None if member is None else _MEMBERS.record(member)
    return places


def add_member(team_id: str, user_id: str, role: Role, *also: Write, now: datetime) -> bool:
    """Add a member. False if the team does not exist, or the user is a member already."""
    return commit(*joining(team_id, user_id, role, now=now), *also)


def joining(
    team_id: str,
    user_id: str,
    role: Role,
    *,
    now: datetime,
    managed_by: str | None = None,
    group: str | None = None,
) -> list[Write]:
    """The writes that add a member, on condition that the team exists and the user is not a member.

    `managed_by` is the id of the identity provider that gives the membership, by its `group`.
    """
    member = Member(user_id=user_id, role=role, joined_at=now, managed_by=managed_by, group=group)
    return [
        TEAMS.put(_member_item(team_id, member), when=missing("pk")),
        _count(team_id, None, role),
    ]


def change_role(
    team_id: str, user_id: str, old: Role, new: Role, *also: Write, by: Member | None = None
) -> bool:
    """Change a role. False if it is not `old`, if the user is the last owner, or if `by` no longer has their role."""
    writes = changing_role(team_id, user_id, old, new)
    return commit(*writes, *role_checks(team_id, by, user_id), *also)


def changing_role(
    team_id: str, user_id: str, old: Role, new: Role, *, group: str | None = None
) -> list[Write]:
    """The writes that change a role. They fail if it is not `old`, or if the user is the last owner."""
    changed = {"role": new.value, _GROUP: group}
    member = TEAMS.update(team_id, _MEMBER + user_id, set=changed, when=_role_is(old))
    return [member, _count(team_id, old, new)]


def changing_group(team_id: str, user_id: str, member: Member, group: str | None) -> Write:
    """The write that names another group for the same role. It fails if the role has changed."""
    return TEAMS.update(team_id, _MEMBER + user_id, set={_GROUP: group}, when=_role_is(member.role))


def remove_member(
    team_id: str,
    user_id: str,
    old: Role,
    *also: Write,
    keeps_an_owner: bool = True,
    by: Member | None = None,
) -> bool:
    """Remove a member. False if the user's role is not `old`, the team does not exist, or `by` no longer has the role.

    Also False if the user is the last owner, unless `keeps_an_owner` is False.
    """
    writes = leaving(team_id, user_id, old, keeps_an_owner=keeps_an_owner)
    return commit(*writes, *role_checks(team_id, by, user_id), *also)


def leaving(team_id: str, user_id: str, old: Role, *, keeps_an_owner: bool = True) -> list[Write]:
    """The writes that remove a member. They fail if the role is not `old`, or the user is the last owner."""
    member = TEAMS.delete(team_id, _MEMBER + user_id, when=_role_is(old))
    return [member, _count(team_id, old, None, keeps_an_owner=keeps_an_owner)]


def still_last_owner(team_id: str, user_id: str) -> Write:
    """A check that the user is an owner still. That they are the last one can change right after it."""
    return has_role(team_id, user_id, Role.OWNER)


def release_member(team_id: str, user_id: str, provider_id: str) -> None:
    """Make a membership that a provider gave one of people."""
    same = equals(managed_by=provider_id)
    commit(
        TEAMS.update(team_id, _MEMBER + user_id, set={"managed_by": None, _GROUP: None}, when=same)
    )


def note_departure(team_id: str, user_id: str, *, now: datetime) -> Write:
    """The write that stores when a member leaves, for the transaction of their removal."""
    return TEAMS.update(team_id, _LEFT + user_id, set={"left_at": to_ms(now)})


def noting_change(user_id: str, *team_ids: str) -> Write:
    """The write that notes that the user has left the teams or got another role, for the transaction of the change."""
    return TEAMS.update(_CHANGED, user_id, add={"teams": {*team_ids}, "version": 1})


def note_change(user_id: str, *team_ids: str) -> None:
    """The same for a change that is not in this table: the user has lost all access, or got it back."""
    if team_ids:
        commit(noting_change(user_id, *team_ids))


def noted_changes() -> Iterator[tuple[str, list[str], int]]:
    """Ids of users with the teams in which something has changed, and the version of the note."""
    for item in TEAMS.query(equals(pk=_CHANGED)):
        yield item["sk"], sorted(item["teams"]), int(item["version"])


def forget_change(user_id: str, version: int) -> None:
    """Delete the note, unless there has been another change since it was read."""
    commit(TEAMS.delete(_CHANGED, user_id, when=equals(version=version)))


def giving(provider_id: str, user_id: str, until: datetime) -> Write:
    """The write that notes until when the memberships last that the provider gives to the user."""
    return TEAMS.put({"pk": _GIVEN, "sk": f"{provider_id}#{user_id}", "given_until": to_ms(until)})


def still_given(provider_id: str, user_id: str, until: datetime) -> Write:
    """A check that fails the transaction if the user has signed in with the provider since the note was read."""
    return TEAMS.check(_GIVEN, f"{provider_id}#{user_id}", when=equals(given_until=to_ms(until)))


def given() -> Iterator[tuple[str, str, datetime]]:
    """The providers and users with memberships that a provider has given, and until when these last."""
    for item in TEAMS.query(equals(pk=_GIVEN)):
        provider_id, _, user_id = item["sk"].partition("#")
        yield provider_id, user_id, from_ms(item["given_until"])


def forget_given(provider_id: str, user_id: str, until: datetime) -> None:
    """Delete the note, unless the user has signed in with the provider since it was read."""
    same = equals(given_until=to_ms(until))
    commit(TEAMS.delete(_GIVEN, f"{provider_id}#{user_id}", when=same))


def end_membership(writes: Iterable[Write]) -> bool:
    """Do the writes that end what a provider has given. False if one of their conditions fails."""
    return commit(*writes)


def departures(team_id: str, user_ids: Sequence[str]) -> dict[str, datetime]:
    """When those of the users left who are not members now."""
    keys = [(team_id, kind + user_id) for user_id in user_ids for kind in (_MEMBER, _LEFT)]
    found = {item["sk"]: item for item in TEAMS.get_many(keys)}
    return {
        user_id: from_ms(found[_LEFT + user_id]["left_at"])
        for user_id in user_ids
        if _LEFT + user_id in found and _MEMBER + user_id not in found
    }


def has_role(team_id: str, user_id: str, *roles: Role) -> Write:
    """A check that fails the transaction unless the user is a member with one of the roles."""
    return TEAMS.check(team_id, _MEMBER + user_id, when=_role_is(*roles))


def delete_member(team_id: str, user_id: str) -> None:
    """Delete a member of a deleted team, which has no count of owners."""
    commit(TEAMS.delete(team_id, _MEMBER + user_id))


def teams_of(user_id: str) -> list[str]:
    """The ids of the user's teams. The index lags behind the table by milliseconds."""
    return [item["pk"] for item in TEAMS.query(_is_member(user_id), index="by_user")]


def page_of_teams(user_id: str, *, after: str | None, limit: int) -> list[str]:
    """At most `limit` ids of the user's teams, in order, starting after the team `after`."""
    start = None if after is None else {"user_id": user_id, "pk": after, "sk": _MEMBER + user_id}
    found, _ = TEAMS.page(_is_member(user_id), index="by_user", limit=limit, after=start)
    return [str(item["pk"]) for item in found]


def _is_member(user_id: str) -> Condition:
    return equals(user_id=user_id) & begins_with(pk=TEAM_ID_PREFIX)


def read_memberships(team_ids: Sequence[str], user_id: str) -> list[Membership]:
    """The user's membership in each team, in order."""
    items: dict[str, list[Item]] = {team_id: [] for team_id in team_ids}
    keys = [key for team_id in team_ids for key in _team_keys(team_id, user_id)]
    for item in TEAMS.get_many(keys):
        items[item["pk"]].append(item)
    return [parse_membership({TEAMS: of_team}) for of_team in items.values()]


def rules_made_by(team_id: str, user_id: str) -> list[str]:
    """The ids of the rules that a user has added to the team."""
    found = TEAMS.query(equals(pk=team_id) & begins_with(sk=RULE))
    return sorted(one["sk"].removeprefix(RULE) for one in found if one.get("created_by") == user_id)


def list_members(team_id: str) -> list[Member]:
    """All members of the team, by user id."""
    found = TEAMS.query(equals(pk=team_id) & begins_with(sk=_MEMBER))
    return [_MEMBERS.record(item) for item in found]


def page_of_members(
    team_id: str, *, since: datetime, until: datetime, limit: int
) -> tuple[list[Member], datetime | None]:
    """Up to `limit` members who joined from `since` to `until` (inclusive), newest first. Also the next page's `until`.

    Members who joined in the same millisecond are on the same page, which can then be longer. The index that gives the
    order lags by milliseconds; the members themselves are read from the table.
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
    by_key = {item["sk"]: _MEMBERS.record(item) for item in stored}
    return [by_key[item["sk"]] for item in found if item["sk"] in by_key], following


def change_state(owner: str, changes: Mapping[str, str | int | None], *also: Write) -> bool:
    """Set attributes of the owner's state (`caching`, `block`, `block_reason`, `quota_bytes`). None removes one.

    Returns False if the owner is a team that does not exist. A user's item is created if needed.
    """
    if is_team_id(owner):
        return commit(TEAMS.update(owner, "team", set=changes, when=exists("pk")), *also)
    return commit(TEAMS.update(owner, "personal", set=changes), *also)


def _count(
    team_id: str, old: Role | None, new: Role | None, *, keeps_an_owner: bool = True
) -> Write:
    """The write to the team's item for a change of role. It counts owners, and fails if the last one would go."""
    change = (new is Role.OWNER) - (old is Role.OWNER)
    if not change:
        return TEAMS.check(team_id, "team", when=exists("pk"))
    has_another = above(owners=1) if change < 0 and keeps_an_owner else exists("pk")
    return TEAMS.update(team_id, "team", add={"owners": change}, when=has_another)


def role_checks(team_id: str, by: Member | None, changed: str = "") -> list[Write]:
    """A check that the actor still has their role. Empty if they change their own item, which has that condition."""
    if by is None or by.user_id == changed:
        return []
    return [has_role(team_id, by.user_id, by.role)]


def _role_is(*roles: Role) -> Condition:
    return one_of("role", [role.value for role in roles])


def _is_as_read(team: Team) -> Condition:
    return exists("pk") & _at_version(team.version)


def _at_version(version: int) -> Condition:
    """The item has this version. For version 0, it can also have none, or not exist."""
    has_version = equals(version=version)
    return has_version if version else missing("version") | has_version


def _freeing(team: Team, slugs: Iterable[str]) -> list[Write]:
    of_team = equals(team_id=team.id)
    return [TEAMS.delete(f"slug#{slug}", "slug", when=of_team) for slug in slugs]


def _retiring(team: Team, slugs: Iterable[str]) -> list[Write]:
    of_team = equals(team_id=team.id)
    return [
        TEAMS.update(f"slug#{slug}", "slug", set={"retired": True}, when=of_team) for slug in slugs
    ]


def _slug_item(slug: str, team_id: str) -> Item:
    return {"pk": f"slug#{slug}", "sk": "slug", "team_id": team_id}


def _member_item(team_id: str, member: Member) -> Item:
    return {"pk": team_id, "sk": _MEMBER + member.user_id, **_MEMBERS.item(member)}


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
        run_inputs=RunInputs(item.get("run_inputs", RunInputs.OFF)),
        build_hour_cents=item.get("build_hour_cents", 0),
        inputs_key=item.get("inputs_key", ""),
        state=_team_state(item),
    )


def _rule_state(item: Item) -> RuleState:
    return RuleState(enabled=item["enabled"], version=item["version"])


def _state(item: Item, default_quota_bytes: int | None) -> OwnerState:
    """The state in an item of a team or user. `default_quota_bytes` applies without a quota of their own."""
    return OwnerState(
        caching=CachingStatus(item.get("caching", CachingStatus.ENABLED)),
        block=Block(item["block"]) if "block" in item else None,
        block_reason=item.get("block_reason"),
        quota_bytes=item.get("quota_bytes", default_quota_bytes),
        protection=_protection(item),
    )


def decide_protection(team_id: str, protection: Protection) -> Write:
    """The write that sets the protection of a team, unless it is decided already. Fails only without the team."""
    decision = _protection_item(protection)
    return TEAMS.update(team_id, "team", set_if_missing=decision, when=exists("pk"))


def change_protection(
    team_id: str, old: Protection, new: Protection, *also: Write, by: Member | None
) -> bool:
    """Returns False, and changes nothing, if the protection is not `old`, or `by` no longer has their role."""
    unchanged = exists("pk") & _is_protection(old)
    update = TEAMS.update(team_id, "team", set=_protection_item(new), when=unchanged)
    return commit(update, *role_checks(team_id, by), *also)


def _is_protection(protection: Protection) -> Condition:
    if protection.on is None:
        return missing("protected")
    return equals(**_protection_item(protection))


def _protection_item(protection: Protection) -> Item:
    return {
        "protected": bool(protection.on),
        "trusted_from": to_ms(protection.trusted_from),
        "people": protection.people.value,
        "overwrites": protection.overwrites.value,
        "unsigned": protection.unsigned.value,
    }


def _protection(item: Item) -> Protection:
    if "protected" not in item:
        return UNDECIDED
    return Protection(
        on=item["protected"],
        trusted_from=from_ms(item["trusted_from"]),
        people=People(item.get("people", UNDECIDED.people)),
        overwrites=Overwrites(item.get("overwrites", UNDECIDED.overwrites)),
        unsigned=Unsigned(item.get("unsigned", UNDECIDED.unsigned)),
    )


def new_team_state(protection: Protection, *, earlier: int = 0) -> OwnerState:
    """`earlier` is the number of teams that the creator had before."""
    return replace(_team_state({"halvings": earlier}), protection=protection)


def _team_state(item: Item) -> OwnerState:
    # Half for each team that its creator had before, so that the quotas of all add up to less than two.
    default_quota_bytes = settings().default_quota_bytes
    quota_bytes = max(1, default_quota_bytes >> item.get("halvings", 0))
    return _state(item, quota_bytes if default_quota_bytes else None)


def provider_account_key(user_id: str, provider_id: str) -> tuple[str, str]:
    """The key of the item of the user's account at an identity provider."""
    return user_id, f"account#{provider_id}"


def _user_key(user_id: str) -> tuple[str, str]:
    """The key of the user's item in the identity table. A request reads it without the rest of the account."""
    return user_id, "user"


def _user_state(item: Item) -> UserState:
    ends_at = item.get("access_until")
    return UserState(
        # Version 0.1.0 did not store it.
        proven=item.get("proven", False),
        keys_from=item.get("keys_from", 0),
        access_until=None if ends_at is None else from_ms(ends_at),
        is_suspended="suspended_at" in item,
    )


def _personal_state(item: Item, user: UserState | None) -> OwnerState:
    options = settings()
    quota_bytes = options.personal_quota_bytes or None
    if user is None or not user.proven:
        unverified = options.unverified_quota_bytes
        quota_bytes = unverified if quota_bytes is None else min(quota_bytes, unverified)
    return _state(item, quota_bytes)
