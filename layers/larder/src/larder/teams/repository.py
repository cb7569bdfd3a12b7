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

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from larder import aws
from larder.clock import from_ms, to_ms
from larder.settings import settings
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


def standing_keys(owner: str, user_id: str) -> list[aws.Item]:
    """The keys whose items tell what `user_id` may do for `owner`; `parse_standing` reads the items."""
    if is_team_id(owner):
        return [{"pk": owner, "sk": "team"}, {"pk": owner, "sk": _MEMBER + user_id}]
    return [{"pk": owner, "sk": "personal"}]


def parse_standing(items: Iterable[aws.Item]) -> Membership:
    by_kind = {item["sk"].partition("#")[0]: item for item in items}
    team = _team(by_kind["team"]) if "team" in by_kind else None
    member = _member(by_kind["member"]) if "member" in by_kind else None
    state = team.state if team else _state(by_kind.get("personal", {}))
    return Membership(team=team, member=member, state=state)


def read_standing(owner: str, user_id: str) -> Membership:
    table = settings().teams_table
    return parse_standing(aws.batch_get({table: standing_keys(owner, user_id)})[table])


def read_state(owner: str) -> OwnerState:
    """The owner's state alone, for work that nobody asked for: committed uploads and the sweep."""
    sk = "team" if is_team_id(owner) else "personal"
    return _state(get_item(owner, sk) or {})


def team_of_slug(slug: str) -> str | None:
    claim = get_item(f"slug#{slug}", "slug")
    return None if claim is None else str(claim["team_id"])


def get_team(team_id: str) -> Team | None:
    item = get_item(team_id, "team")
    return None if item is None else _team(item)


def list_teams() -> list[Team]:
    """Every team, by slug. Reads the whole table: for the operator, never on a request."""
    pages = (
        aws.dynamodb()
        .get_paginator("scan")
        .paginate(
            TableName=settings().teams_table,
            FilterExpression="sk = :team",
            ExpressionAttributeValues=aws.serialize({":team": "team"}),
        )
    )
    teams = [_team(aws.deserialize(item)) for page in pages for item in page["Items"]]
    return sorted(teams, key=lambda team: team.slug)


def add_team(team: Team, owner_user_id: str, *, made: MadeTeams | None = None) -> bool:
    """Store the team, its claim on the slug and its first owner in one transaction; False when the slug is taken.

    `made` is what the user has made with this team; False also when it is no longer the next state of what is stored.
    """
    items: list[aws.Item] = [
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
    writes = [_put(item, {"ConditionExpression": "attribute_not_exists(pk)"}) for item in items]
    if made is not None:
        note = {"pk": made.user_id, "sk": "made", "team_ids": list(made.team_ids)}
        writes.append(_put({**note, "version": made.version}, _at_version(made.version - 1)))
    return aws.write_together(writes)


def read_made(user_id: str) -> MadeTeams:
    item = get_item(user_id, "made")
    if item is None:
        return MadeTeams(user_id=user_id)
    return MadeTeams(
        user_id=user_id, team_ids=tuple(item["team_ids"]), version=int(item["version"])
    )


def forget_made(user_id: str) -> None:
    _delete_item(user_id, "made")


def forget_personal_state(user_id: str) -> None:
    _delete_item(user_id, "personal")


def existing_teams(team_ids: Sequence[str]) -> list[str]:
    """Those of the teams that exist, in order."""
    table = settings().teams_table
    found: set[str] = set()
    for batch in aws.in_batches(team_ids):
        keys = [{"pk": team_id, "sk": "team"} for team_id in batch]
        found.update(item["pk"] for item in aws.batch_get({table: keys})[table])
    return [team_id for team_id in team_ids if team_id in found]


def change_team(was: Team, becomes: Team, *, by: Actor | None) -> bool:
    """Write name, slugs and caching status where they differ, claiming and freeing slugs with them.

    False, and nothing is changed, when the team is no longer as it was, when a new slug is taken, or when `by` has
    another role by now.
    """
    names = {"#version": "version", "#updated_at": "updated_at"}
    values: aws.Item = {":next": was.version + 1, ":updated_at": to_ms(becomes.updated_at)}
    changes = {
        "name": (was.name, becomes.name),
        "slug": (was.slug, becomes.slug),
        "former_slugs": (list(was.former_slugs), list(becomes.former_slugs)),
        "caching": (was.state.caching.value, becomes.state.caching.value),
    }
    clauses = ["#version = :next", "#updated_at = :updated_at"]
    for name, (before, after) in changes.items():
        if before != after:
            names[f"#{name}"], values[f":{name}"] = name, after
            clauses.append(f"#{name} = :{name}")
    condition = _at_version(was.version, exists=True)
    update = {
        **target(was.id, "team"),
        "UpdateExpression": "SET " + ", ".join(clauses),
        "ConditionExpression": condition["ConditionExpression"],
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {
            **aws.serialize(values),
            **condition["ExpressionAttributeValues"],
        },
    }
    unclaimed = {"ConditionExpression": "attribute_not_exists(pk)"}
    claimed = [
        _put(_slug_item(slug, was.id), unclaimed) for slug in becomes.slugs if slug not in was.slugs
    ]
    freed = [slug for slug in was.slugs if slug not in becomes.slugs]
    return aws.write_together(
        [{"Update": update}, *claimed, *_freeing(was, freed), *standing_by(was.id, by)]
    )


def delete_team(team: Team, *, by: Actor | None, now: datetime) -> bool:
    """End the team and free its slugs; a note stays, by which the rest is found.

    False, and nothing is changed, when the team is no longer as it was, or `by` has another role by now.
    """
    delete = {**target(team.id, "team"), **_at_version(team.version, exists=True)}
    note = {"pk": _DELETED, "sk": team.id, "deleted_at": to_ms(now)}
    return aws.write_together(
        [
            {"Delete": delete},
            *_freeing(team, team.slugs),
            _put(note, {}),
            *standing_by(team.id, by),
        ]
    )


def deleted_teams() -> Iterator[tuple[str, datetime]]:
    """Teams whose deletion is noted, and since when."""
    items = aws.query(
        settings().teams_table, "pk = :deleted", {":deleted": _DELETED}, ConsistentRead=True
    )
    for item in items:
        yield item["sk"], from_ms(item["deleted_at"])


def forget_deleted(team_id: str) -> None:
    _delete_item(_DELETED, team_id)


def clear(team_id: str, may_go_on: Callable[[], bool]) -> bool:
    """Delete whatever is stored of a team that is gone; False when there was no time for all of it."""
    table = settings().teams_table
    items = aws.query(table, "pk = :team", {":team": team_id}, ConsistentRead=True)
    return aws.delete_each(table, ({"pk": team_id, "sk": item["sk"]} for item in items), may_go_on)


def read_places(team_id: str, *user_ids: str) -> Places:
    table = settings().teams_table
    keys = [{"pk": team_id, "sk": _MEMBER + user_id} for user_id in dict.fromkeys(user_ids)]
    items = aws.batch_get({table: [{"pk": team_id, "sk": "team"}, *keys]})[table]
    by_key = {item["sk"]: item for item in items}
    team = by_key.pop("team", {})
    return Places(
        team=_team(team) if team else None,
        owners=team.get("owners", 0),
        invitations_made=team.get("invitations_made", 0),
        roles={item["user_id"]: Role(item["role"]) for item in by_key.values()},
    )


def add_member(team_id: str, user_id: str, role: Role, *, now: datetime) -> bool:
    """False when the team does not exist, or the user is a member of it."""
    return aws.write_together(joining(team_id, user_id, role, now=now))


def joining(team_id: str, user_id: str, role: Role, *, now: datetime) -> list[dict[str, Any]]:
    """What makes the user a member, on condition that the team exists and that they are none."""
    member = _member_item(team_id, user_id, role, now)
    return [
        _put(member, {"ConditionExpression": "attribute_not_exists(pk)"}),
        _count(team_id, None, role),
    ]


def change_role(
    team_id: str, user_id: str, was: Role, becomes: Role, *, by: Actor | None = None
) -> bool:
    """False when the user's role is not `was`, when `was` is the last owner's, or `by` has another role by now."""
    update = {
        **target(team_id, _MEMBER + user_id),
        "UpdateExpression": "SET #role = :becomes",
        "ConditionExpression": "#role = :was",
        "ExpressionAttributeNames": {"#role": "role"},
        "ExpressionAttributeValues": aws.serialize({":was": was.value, ":becomes": becomes.value}),
    }
    return aws.write_together(
        [{"Update": update}, _count(team_id, was, becomes), *standing_by(team_id, by, user_id)]
    )


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
    delete = {**target(team_id, _MEMBER + user_id), **_role_is(was)}
    count = _count(team_id, was, None, keeps_an_owner=keeps_an_owner)
    return aws.write_together([{"Delete": delete}, count, *standing_by(team_id, by, user_id)])


def has_role(team_id: str, user_id: str, *roles: Role) -> dict[str, Any]:
    """The part of a transaction that fails unless the user is a member with one of the roles."""
    return {"ConditionCheck": {**target(team_id, _MEMBER + user_id), **_role_is(*roles)}}


def delete_member(team_id: str, user_id: str) -> None:
    """For what is left of a team that is gone: there is nothing to count."""
    _delete_item(team_id, _MEMBER + user_id)


def teams_of(user_id: str) -> list[str]:
    """The ids of the user's teams. The index that tells them follows the table by milliseconds."""
    values = {":user": user_id, ":team": TEAM_ID_PREFIX}
    condition = "user_id = :user AND begins_with(pk, :team)"
    items = aws.query(settings().teams_table, condition, values, IndexName="by_user")
    return [item["pk"] for item in items]


def page_of_teams(user_id: str, *, after: str | None, limit: int) -> list[str]:
    """The same in order, at most `limit` of them, those after the team `after` only."""
    page: dict[str, Any] = {}
    if after is not None:
        start = {"user_id": user_id, "pk": after, "sk": _MEMBER + user_id}
        page["ExclusiveStartKey"] = aws.serialize(start)
    reply = aws.dynamodb().query(
        TableName=settings().teams_table,
        IndexName="by_user",
        KeyConditionExpression="user_id = :user AND begins_with(pk, :team)",
        ExpressionAttributeValues=aws.serialize({":user": user_id, ":team": TEAM_ID_PREFIX}),
        Limit=limit,
        **page,
    )
    return [str(aws.deserialize(item)["pk"]) for item in reply["Items"]]


def read_standings(team_ids: Sequence[str], user_id: str) -> list[Membership]:
    """The user's standing in each team, in order."""
    table = settings().teams_table
    items: dict[str, list[aws.Item]] = {team_id: [] for team_id in team_ids}
    # Two items of each team.
    for batch in aws.in_batches(team_ids, aws.BATCH_GET_KEYS // 2):
        keys = [key for team_id in batch for key in standing_keys(team_id, user_id)]
        for item in aws.batch_get({table: keys})[table]:
            items[item["pk"]].append(item)
    return [parse_standing(of_team) for of_team in items.values()]


def members(team_id: str) -> list[Member]:
    """Everybody in the team, by user id."""
    values = {":team": team_id, ":member": _MEMBER}
    condition = "pk = :team AND begins_with(sk, :member)"
    items = aws.query(settings().teams_table, condition, values, ConsistentRead=True)
    return [_member(item) for item in items]


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
    values = {":team": team_id, ":since": to_ms(since), ":until": to_ms(until)}
    items = aws.query(
        settings().teams_table,
        "pk = :team AND joined_at BETWEEN :since AND :until",
        values,
        IndexName="by_joined",
        ScanIndexForward=False,
        Limit=limit + 1,
    )
    found: list[aws.Item] = []
    following = None
    for item in items:
        if len(found) >= limit and item["joined_at"] != found[-1]["joined_at"]:
            following = from_ms(found[-1]["joined_at"]) - timedelta(milliseconds=1)
            break
        found.append(item)
    members_by_key: dict[str, Member] = {}
    table = settings().teams_table
    for batch in aws.in_batches([{"pk": team_id, "sk": item["sk"]} for item in found]):
        for item in aws.batch_get({table: batch})[table]:
            members_by_key[item["sk"]] = _member(item)
    return [members_by_key[item["sk"]] for item in found if item["sk"] in members_by_key], following


def change_state(owner: str, set_to: dict[str, str | int], clear: list[str]) -> bool:
    """Set and clear attributes of the owner's state (`caching`, `block`, `block_reason`, `quota_bytes`).

    Returns False when the owner is a team that does not exist; a user's personal state begins here.
    """
    clauses = []
    if set_to:
        clauses.append("SET " + ", ".join(f"#{name} = :{name}" for name in set_to))
    if clear:
        clauses.append("REMOVE " + ", ".join(f"#{name}" for name in clear))
    team = is_team_id(owner)
    change: dict[str, Any] = {
        "UpdateExpression": " ".join(clauses),
        "ConditionExpression": "attribute_exists(pk)" if team else "attribute_not_exists(slug)",
        "ExpressionAttributeNames": {f"#{name}": name for name in [*set_to, *clear]},
    }
    if set_to:
        values = {f":{name}": value for name, value in set_to.items()}
        change["ExpressionAttributeValues"] = aws.serialize(values)
    try:
        aws.dynamodb().update_item(
            TableName=settings().teams_table,
            Key=aws.serialize({"pk": owner, "sk": "team" if team else "personal"}),
            **change,
        )
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            return False
        raise
    return True


def _count(
    team_id: str, was: Role | None, becomes: Role | None, *, keeps_an_owner: bool = True
) -> dict[str, Any]:
    """The part that the team's item has in a change of role: the team exists and, where an owner goes, has another."""
    team = target(team_id, "team")
    more = (becomes is Role.OWNER) - (was is Role.OWNER)
    if not more:
        return {"ConditionCheck": {**team, "ConditionExpression": "attribute_exists(pk)"}}
    values, condition = {":more": more}, "attribute_exists(pk)"
    if more < 0 and keeps_an_owner:
        values[":last"], condition = 1, "owners > :last"
    return {
        "Update": {
            **team,
            "UpdateExpression": "ADD owners :more",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": aws.serialize(values),
        }
    }


def standing_by(team_id: str, by: Actor | None, changed: str = "") -> list[dict[str, Any]]:
    """That who acts still has their role. Of who changes themselves it is told by that change already."""
    if by is None or by.user_id == changed:
        return []
    return [has_role(team_id, by.user_id, by.role)]


def _role_is(*roles: Role) -> dict[str, Any]:
    values = {f":role{number}": role.value for number, role in enumerate(roles)}
    return {
        "ConditionExpression": f"#role IN ({', '.join(values)})",
        "ExpressionAttributeNames": {"#role": "role"},
        "ExpressionAttributeValues": aws.serialize(values),
    }


def _at_version(version: int, *, exists: bool = False) -> dict[str, Any]:
    """What is stored has this version; for the first one also what has none, and unless `exists` nothing at all."""
    condition = "version = :version"
    if version == 0:
        condition = f"(attribute_not_exists(version) OR {condition})"
        if exists:
            condition = f"attribute_exists(pk) AND {condition}"
    return {
        "ConditionExpression": condition,
        "ExpressionAttributeValues": aws.serialize({":version": version}),
    }


def _freeing(team: Team, slugs: Iterable[str]) -> list[dict[str, Any]]:
    theirs = {
        "ConditionExpression": "team_id = :team",
        "ExpressionAttributeValues": aws.serialize({":team": team.id}),
    }
    return [{"Delete": {**target(f"slug#{slug}", "slug"), **theirs}} for slug in slugs]


def _slug_item(slug: str, team_id: str) -> aws.Item:
    return {"pk": f"slug#{slug}", "sk": "slug", "team_id": team_id}


def _member_item(team_id: str, user_id: str, role: Role, joined_at: datetime) -> aws.Item:
    return {
        "pk": team_id,
        "sk": _MEMBER + user_id,
        "user_id": user_id,
        "role": role.value,
        "joined_at": to_ms(joined_at),
    }


def _team(item: aws.Item) -> Team:
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


def _member(item: aws.Item) -> Member:
    return Member(
        user_id=item["user_id"], role=Role(item["role"]), joined_at=from_ms(item["joined_at"])
    )


def _state(item: aws.Item) -> OwnerState:
    default_quota = settings().default_quota_bytes or None
    return OwnerState(
        caching=CachingStatus(item.get("caching", CachingStatus.ENABLED)),
        block=Block(item["block"]) if "block" in item else None,
        block_reason=item.get("block_reason"),
        quota_bytes=item.get("quota_bytes", default_quota),
    )


def get_item(pk: str, sk: str) -> aws.Item | None:
    return aws.get_item(settings().teams_table, {"pk": pk, "sk": sk})


def _put(item: aws.Item, condition: dict[str, Any]) -> dict[str, Any]:
    put = {"TableName": settings().teams_table, "Item": aws.serialize(item), **condition}
    return {"Put": put}


def target(pk: str, sk: str) -> dict[str, Any]:
    return {"TableName": settings().teams_table, "Key": aws.serialize({"pk": pk, "sk": sk})}


def _delete_item(pk: str, sk: str) -> None:
    aws.dynamodb().delete_item(**target(pk, sk))
