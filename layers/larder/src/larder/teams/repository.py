"""The table of teams.

| pk | sk | holds |
|---|---|---|
| `team_...` | `team` | the team: slug, name, how many owners it has, caching status, quota, block |
| `team_...` | `member#<user id>` | a member's role |
| `slug#<slug>` | `slug` | which team has the slug |
| user id | `personal` | caching status, quota and block of a user acting for themselves |

Whatever makes or ends an owner changes the team's count of owners in the same transaction. It is that count which keeps
the last one: two owners who leave at once meet at the team's item.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from larder import aws
from larder.clock import from_ms, to_ms
from larder.settings import settings
from larder.teams.models import (
    Block,
    CachingStatus,
    Member,
    Membership,
    OwnerState,
    Role,
    SlugTaken,
    Team,
)

_MEMBER = "member#"

TEAM_ID_PREFIX = "team_"
"""The build client sends a team id only when it starts so (reference: turbo-client.md, 1)."""


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
    role = Role(by_kind["member"]["role"]) if "member" in by_kind else None
    state = team.state if team else _state(by_kind.get("personal", {}))
    return Membership(team=team, role=role, state=state)


def read_standing(owner: str, user_id: str) -> Membership:
    table = settings().teams_table
    return parse_standing(aws.batch_get({table: standing_keys(owner, user_id)})[table])


def read_state(owner: str) -> OwnerState:
    """The owner's state alone, for work that nobody asked for: committed uploads and the sweep."""
    sk = "team" if is_team_id(owner) else "personal"
    return _state(_get(owner, sk) or {})


def team_of_slug(slug: str) -> str | None:
    claim = _get(f"slug#{slug}", "slug")
    return None if claim is None else str(claim["team_id"])


def get_team(team_id: str) -> Team | None:
    item = _get(team_id, "team")
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


def add_team(team: Team, owner_user_id: str) -> None:
    """Store the team, its claim on the slug and its first owner in one transaction. Raises SlugTaken."""
    items: list[aws.Item] = [
        {"pk": f"slug#{team.slug}", "sk": "slug", "team_id": team.id},
        {
            "pk": team.id,
            "sk": "team",
            "slug": team.slug,
            "name": team.name,
            "created_at": to_ms(team.created_at),
            "owners": 1,
        },
        _member_item(team.id, owner_user_id, Role.OWNER, team.created_at),
    ]
    if not aws.put_new(settings().teams_table, items):
        raise SlugTaken(team.slug)


def read_place(team_id: str, user_id: str) -> tuple[int | None, Role | None]:
    """How many owners the team has, None for a team that does not exist; and the user's role, None without one.

    The two are read at once but not as of one moment: what follows from them has to hold when it is written, too.
    """
    table = settings().teams_table
    items = aws.batch_get({table: standing_keys(team_id, user_id)})[table]
    by_kind = {item["sk"].partition("#")[0]: item for item in items}
    owners = by_kind["team"].get("owners", 0) if "team" in by_kind else None
    return owners, Role(by_kind["member"]["role"]) if "member" in by_kind else None


def add_member(team_id: str, user_id: str, role: Role, *, now: datetime) -> bool:
    """False when the team does not exist, or the user is a member of it."""
    put = {
        "TableName": settings().teams_table,
        "Item": aws.serialize(_member_item(team_id, user_id, role, now)),
        "ConditionExpression": "attribute_not_exists(pk)",
    }
    return aws.write_together([{"Put": put}, _count(team_id, None, role)])


def change_role(team_id: str, user_id: str, was: Role, becomes: Role) -> bool:
    """False when the user's role is not `was`, or `was` is the last owner's."""
    update = {
        "TableName": settings().teams_table,
        "Key": aws.serialize({"pk": team_id, "sk": _MEMBER + user_id}),
        "UpdateExpression": "SET #role = :becomes",
        "ConditionExpression": "#role = :was",
        "ExpressionAttributeNames": {"#role": "role"},
        "ExpressionAttributeValues": aws.serialize({":was": was.value, ":becomes": becomes.value}),
    }
    return aws.write_together([{"Update": update}, _count(team_id, was, becomes)])


def remove_member(team_id: str, user_id: str, was: Role, *, keeps_an_owner: bool = True) -> bool:
    """False when the user's role is not `was`, when there is no such team, and, unless `keeps_an_owner` is False, when
    `was` is the last owner's.
    """
    delete = {
        "TableName": settings().teams_table,
        "Key": aws.serialize({"pk": team_id, "sk": _MEMBER + user_id}),
        "ConditionExpression": "#role = :was",
        "ExpressionAttributeNames": {"#role": "role"},
        "ExpressionAttributeValues": aws.serialize({":was": was.value}),
    }
    count = _count(team_id, was, None, keeps_an_owner=keeps_an_owner)
    return aws.write_together([{"Delete": delete}, count])


def delete_member(team_id: str, user_id: str) -> None:
    """For what is left of a team that is gone: there is nothing to count."""
    aws.dynamodb().delete_item(
        TableName=settings().teams_table,
        Key=aws.serialize({"pk": team_id, "sk": _MEMBER + user_id}),
    )


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
    return [
        Member(
            user_id=item["user_id"],
            role=Role(item["role"]),
            joined_at=from_ms(item["joined_at"]),
        )
        for item in items
    ]


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
    target = {
        "TableName": settings().teams_table,
        "Key": aws.serialize({"pk": team_id, "sk": "team"}),
    }
    more = (becomes is Role.OWNER) - (was is Role.OWNER)
    if not more:
        return {"ConditionCheck": {**target, "ConditionExpression": "attribute_exists(pk)"}}
    values, condition = {":more": more}, "attribute_exists(pk)"
    if more < 0 and keeps_an_owner:
        values[":last"], condition = 1, "owners > :last"
    return {
        "Update": {
            **target,
            "UpdateExpression": "ADD owners :more",
            "ConditionExpression": condition,
            "ExpressionAttributeValues": aws.serialize(values),
        }
    }


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
        state=_state(item),
    )


def _state(item: aws.Item) -> OwnerState:
    default_quota = settings().default_quota_bytes or None
    return OwnerState(
        caching=CachingStatus(item.get("caching", CachingStatus.ENABLED)),
        block=Block(item["block"]) if "block" in item else None,
        block_reason=item.get("block_reason"),
        quota_bytes=item.get("quota_bytes", default_quota),
    )


def _get(pk: str, sk: str) -> aws.Item | None:
    return aws.get_item(settings().teams_table, {"pk": pk, "sk": sk})
