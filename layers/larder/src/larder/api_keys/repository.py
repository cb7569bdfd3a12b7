"""The table of API keys: one item a key, found by the hash of the key, indexed by id, by user and by team.

Three attributes exist so that one write fits every key: `has_allowance` says whether `remaining` counts (it goes down
for unlimited keys too, below 0), `refill_at` is when the next refill is due (`NEVER` without one), and
`window_ends_at` when the window of the rate limit is over.

A deployment may call attributes otherwise: expressions name them as `#remaining`, which `_names` resolves.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from larder import aws
from larder.api_keys.models import ApiKey, LoginCode, Permissions, RateLimit, Refill
from larder.api_keys.schema import attribute_names
from larder.clock import from_ms, to_ms
from larder.settings import settings

NEVER = 10**15
_CLEAN_UP = "#clean-up"
_LOGIN_CODE = "#login-code#"
_NAME = re.compile(r"#([a-z_]+)(?![a-z_0-9])")
_clean_up_not_before = datetime.min.replace(tzinfo=UTC)

EXPIRING = "expiring"
"""The one partition of the index of keys that have an expiry: few do, and they are read in order of it."""


def _to_item(key: ApiKey) -> aws.Item:
    """The item, with None for what it has not, under the names of the deployment."""
    names = attribute_names()
    return {names.get(name, name): value for name, value in _attributes(key).items()}


def _attributes(key: ApiKey) -> aws.Item:
    return {
        "key_hash": key.key_hash,
        "id": key.id,
        "user_id": key.user_id,
        "team_id": key.team_id,
        "name": key.name,
        "start": key.start,
        "prefix": key.prefix,
        "enabled": key.enabled,
        "permissions": {resource: list(actions) for resource, actions in key.permissions.items()},
        "metadata": None if key.metadata is None else json.dumps(key.metadata),
        "has_allowance": key.remaining is not None,
        "remaining": key.remaining or 0,
        "refill_amount": key.refill.amount if key.refill else None,
        "refill_interval": key.refill.interval_ms if key.refill else None,
        "refill_at": NEVER if key.refill_due_at is None else to_ms(key.refill_due_at),
        "last_refill_at": None if key.last_refill_at is None else to_ms(key.last_refill_at),
        "rate_limit_enabled": key.rate_limit.enabled,
        "rate_limit_window": key.rate_limit.window_ms,
        "rate_limit_max": key.rate_limit.max_requests,
        "request_count": key.request_count,
        "window_ends_at": to_ms(key.window_ends_at),
        "expires_at": None if key.expires_at is None else to_ms(key.expires_at),
        "expiring": None if key.expires_at is None else EXPIRING,
        "created_at": to_ms(key.created_at),
        "updated_at": to_ms(key.updated_at),
        "last_request": None if key.last_request is None else to_ms(key.last_request),
    }


def _from_item(stored: aws.Item) -> ApiKey:
    ours = {theirs: name for name, theirs in attribute_names().items()}
    item = {ours.get(name, name): value for name, value in stored.items()}

    def moment(name: str) -> datetime | None:
        return from_ms(item[name]) if name in item else None

    refill = None
    if "refill_amount" in item:
        refill = Refill(interval_ms=item["refill_interval"], amount=item["refill_amount"])
    refill_at = item["refill_at"]
    return ApiKey(
        id=item["id"],
        key_hash=item["key_hash"],
        user_id=item["user_id"],
        team_id=item.get("team_id"),
        name=item.get("name"),
        start=item.get("start"),
        prefix=item.get("prefix"),
        enabled=item["enabled"],
        permissions={name: tuple(actions) for name, actions in item["permissions"].items()},
        metadata=json.loads(item["metadata"]) if "metadata" in item else None,
        remaining=item["remaining"] if item["has_allowance"] else None,
        refill=refill,
        refill_due_at=None if refill_at == NEVER else from_ms(refill_at),
        last_refill_at=moment("last_refill_at"),
        rate_limit=RateLimit(
            enabled=item["rate_limit_enabled"],
            window_ms=item["rate_limit_window"],
            max_requests=item["rate_limit_max"],
        ),
        request_count=item["request_count"],
        window_ends_at=from_ms(item["window_ends_at"]),
        expires_at=moment("expires_at"),
        created_at=from_ms(item["created_at"]),
        updated_at=from_ms(item["updated_at"]),
        last_request=moment("last_request"),
    )


def _key_of(item: aws.Item) -> ApiKey | None:
    """None for the note of the last clean-up and for login codes, which are no keys whatever somebody presents."""
    return _from_item(item) if "id" in item else None


def add(key: ApiKey, *, spending: LoginCode | None = None) -> bool:
    """Store a new key; False when its user is not there.

    In one transaction with a look at the user, so that a key made while its user is deleted is either seen by who
    removes the user's keys, or not made. `spending` is a login code that goes with it: it is deleted, and its user has
    the password and the sessions that they had when they gave it, or there is no key.
    """
    put = {
        "TableName": settings().api_keys_table,
        "Item": aws.serialize(_to_item(key)),
        "ConditionExpression": "attribute_not_exists(key_hash)",
    }
    user = {
        "TableName": settings().identity_table,
        "Key": aws.serialize({"pk": key.user_id, "sk": "user"}),
        **_still_in(spending),
    }
    writes: list[dict[str, Any]] = [{"Put": put}, {"ConditionCheck": user}]
    if spending is not None:
        spent = {
            "TableName": settings().api_keys_table,
            "Key": aws.serialize({"key_hash": _LOGIN_CODE + spending.code_hash}),
            "ConditionExpression": "attribute_exists(key_hash)",
        }
        writes.append({"Delete": spent})
    return aws.write_together(writes)


def _still_in(code: LoginCode | None) -> dict[str, Any]:
    """The condition on a user's item: that they are there, and, for a code, have not taken back what it came of."""
    # Codes of version 0.1.0 do not tell: they go on for the five minutes that they live.
    if code is None or code.password_version is None or code.session_generation is None:
        return {"ConditionExpression": "attribute_exists(pk)"}
    values = {":password": code.password_version, ":sessions": code.session_generation}
    return {
        "ConditionExpression": "password_version = :password AND session_generation = :sessions",
        "ExpressionAttributeValues": aws.serialize(values),
    }


def add_login_code(code: LoginCode) -> None:
    """It lies in the index of what expires, so that whatever removes expired keys removes it too."""
    item = {
        "key_hash": _LOGIN_CODE + code.code_hash,
        # Not `user_id`: the index of a user's keys holds keys alone.
        "login_user": code.user_id,
        "login_team": code.team_id,
        "login_password_version": code.password_version,
        "login_session_generation": code.session_generation,
        "expires_at": to_ms(code.expires_at),
        "expiring": EXPIRING,
    }
    aws.dynamodb().put_item(TableName=settings().api_keys_table, Item=aws.serialize(item))


def find_login_code(code_hash: str) -> LoginCode | None:
    item = aws.get_item(settings().api_keys_table, {"key_hash": _LOGIN_CODE + code_hash})
    if item is None:
        return None
    return LoginCode(
        code_hash=code_hash,
        user_id=item["login_user"],
        team_id=item["login_team"],
        expires_at=from_ms(item["expires_at"]),
        password_version=item.get("login_password_version"),
        session_generation=item.get("login_session_generation"),
    )


def use(
    key_hash: str, required: Permissions, *, now: datetime, turning: ApiKey | None = None
) -> tuple[bool, ApiKey | None]:
    """Take one use of a key if it passes every rule, all in one conditional write.

    Returns whether the key passed, and the key as it stands (None: there is no such key). A failed condition changes
    nothing and brings the stored item back, so that a refusal costs no second call.

    When a window is over or a refill is due, the write fails too; a second one names the key as it was read, as
    `turning`, begins the window or refills, and takes the use with it. It fails when another request has turned first.
    """
    values: aws.Item = {":now": to_ms(now), ":true": True, ":one": 1}
    changes = ["#last_request = :now"]
    conditions = [
        "attribute_exists(key_hash)",
        "#enabled = :true",
        "(attribute_not_exists(expires_at) OR expires_at > :now)",
    ]
    if turning is not None and turning.refill_is_due(now):
        before, after = _attributes(turning), _attributes(turning.refilled(now))
        values[":refill_was"] = before["refill_at"]
        values[":refill_next"] = after["refill_at"]
        values[":last_refill"] = after["last_refill_at"]
        # Added, not set: uses of instances whose clocks are behind are counted meanwhile. An operator who raises what
        # is left meanwhile fails the write, so that the sum stays within its bound.
        values[":remaining_was"] = before["remaining"]
        values[":added"] = after["remaining"] - before["remaining"] - 1
        conditions.append("refill_at = :refill_was AND #remaining <= :remaining_was")
        changes += [
            "#remaining = #remaining + :added",
            "refill_at = :refill_next",
            "#last_refill_at = :last_refill",
        ]
    else:
        values |= {":false": False, ":zero": 0}
        conditions.append("(has_allowance = :false OR (#remaining > :zero AND refill_at >= :now))")
        changes.append("#remaining = #remaining - :one")
    if turning is not None and turning.window_is_over(now):
        values[":window_was"] = to_ms(turning.window_ends_at)
        values[":window_next"] = to_ms(now) + turning.rate_limit.window_ms
        conditions.append("window_ends_at = :window_was")
        changes += ["#request_count = :one", "window_ends_at = :window_next"]
    else:
        values[":false"] = False
        below_limit = "(#rate_limit_enabled = :false OR #request_count < #rate_limit_max)"
        conditions.append(f"window_ends_at > :now AND {below_limit}")
        changes.append("#request_count = #request_count + :one")
    resources: dict[str, str] = {}
    needs = [(resource, action) for resource, actions in required.items() for action in actions]
    for number, (resource, action) in enumerate(needs):
        resources[f"#resource{number}"] = resource
        values[f":action{number}"] = action
        conditions.append(f"contains(#permissions.#resource{number}, :action{number})")
    return _update(key_hash, changes, conditions, values, resources)


def change(was: ApiKey, becomes: ApiKey) -> ApiKey | None:
    """Write what differs between two states of a key, and nothing else: uses go on being counted beside it.

    Returns the key as it stands, None when it is gone. A change of the refill fails as well, when the key has just been
    refilled: the next refill follows from the last one.
    """
    before, after = _attributes(was), _attributes(becomes)
    differing = [name for name in after if after[name] != before[name]]
    if "has_allowance" in differing and "remaining" not in differing:
        # What is stored went down below 0 while there was no allowance, which the record does not show.
        differing.append("remaining")
    values: aws.Item = {":id": was.id}
    conditions = ["id = :id"]
    changes, removed = [], []
    for name in differing:
        if after[name] is None:
            removed.append(f"#{name}")
        else:
            changes.append(f"#{name} = :{name}")
            values[f":{name}"] = after[name]
    if "refill_at" in differing:
        conditions.append("refill_at = :refill_was")
        values[":refill_was"] = before["refill_at"]
    done, key = _update(was.key_hash, changes, conditions, values, removed=removed)
    return key if done else None


def _update(
    key_hash: str,
    changes: list[str],
    conditions: list[str],
    values: aws.Item,
    names: Mapping[str, str] = MappingProxyType({}),
    *,
    removed: Sequence[str] = (),
) -> tuple[bool, ApiKey | None]:
    """Whether all conditions held, and the key as it stands now; None when there is none."""
    update = "SET " + ", ".join(changes)
    if removed:
        update += " REMOVE " + ", ".join(removed)
    condition = " AND ".join(conditions)
    try:
        reply = aws.dynamodb().update_item(
            TableName=settings().api_keys_table,
            Key=aws.serialize({"key_hash": key_hash}),
            UpdateExpression=update,
            ConditionExpression=condition,
            ExpressionAttributeValues=aws.serialize(values),
            ReturnValues="ALL_NEW",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ExpressionAttributeNames={**_names(f"{update} {condition}"), **names},
        )
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            stored: Any = error.response.get("Item")
            return False, _key_of(aws.deserialize(stored)) if stored else None
        raise
    return True, _from_item(aws.deserialize(reply["Attributes"]))


def _names(expression: str) -> dict[str, str]:
    """What the deployment calls the attributes that an expression names."""
    names = attribute_names()
    return {f"#{name}": names.get(name, name) for name in _NAME.findall(expression)}


def set_expiry(key_hash: str, expires_at: datetime, *, now: datetime) -> bool:
    """False when there is no such key."""
    values = {":at": to_ms(expires_at), ":expiring": EXPIRING, ":now": to_ms(now)}
    changes = ["expires_at = :at", "expiring = :expiring", "#updated_at = :now"]
    done, _ = _update(key_hash, changes, ["attribute_exists(key_hash)"], values)
    return done


def get(key_hash: str) -> ApiKey | None:
    item = aws.get_item(settings().api_keys_table, {"key_hash": key_hash})
    return None if item is None else _key_of(item)


def find_by_id(key_id: str) -> ApiKey | None:
    """Look a key up by its id. The index follows the table by milliseconds; the item itself is read from the table."""
    reply = aws.dynamodb().query(
        TableName=settings().api_keys_table,
        IndexName="by_id",
        KeyConditionExpression="id = :id",
        ExpressionAttributeValues=aws.serialize({":id": key_id}),
    )
    items = [aws.deserialize(item) for item in reply["Items"]]
    return get(items[0]["key_hash"]) if items else None


def list_by_user(user_id: str) -> list[ApiKey]:
    """Every key of one user, oldest first."""
    hashes = list(_hashes("by_user", "user_id = :user", {":user": user_id}))
    keys = []
    for batch in aws.in_batches(hashes):
        table = settings().api_keys_table
        keys += aws.batch_get({table: [{"key_hash": key_hash} for key_hash in batch]})[table]
    return sorted((_from_item(item) for item in keys), key=lambda key: key.created_at)


def bound_to(team_id: str) -> Iterator[str]:
    """The hashes of the keys that act for one team alone. The index that tells them follows the table."""
    yield from _hashes("by_team", "team_id = :team", {":team": team_id})


def expired(*, now: datetime) -> Iterator[str]:
    """The hashes of keys whose expiry has passed, oldest first. The index may lag: delete on condition."""
    values = {":all": EXPIRING, ":now": to_ms(now)}
    yield from _hashes("by_expiry", "expiring = :all AND expires_at <= :now", values)


def claim_clean_up(*, now: datetime, every_s: int) -> bool:
    """Whether the caller is the one to clean up: one of all instances, once in `every_s` seconds."""
    global _clean_up_not_before  # noqa: PLW0603  # saves an instance that has just asked from asking again
    if now < _clean_up_not_before:
        return False
    _clean_up_not_before = now + timedelta(seconds=every_s)
    try:
        aws.dynamodb().update_item(
            TableName=settings().api_keys_table,
            Key=aws.serialize({"key_hash": _CLEAN_UP}),
            UpdateExpression="SET not_before = :next",
            ConditionExpression="attribute_not_exists(not_before) OR not_before <= :now",
            ExpressionAttributeValues=aws.serialize(
                {":now": to_ms(now), ":next": to_ms(_clean_up_not_before)}
            ),
        )
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            return False
        raise
    return True


def forget_clean_up() -> None:
    """Forget when this instance last asked to clean up."""
    global _clean_up_not_before  # noqa: PLW0603
    _clean_up_not_before = datetime.min.replace(tzinfo=UTC)


def disable(key_hash: str, *, now: datetime) -> ApiKey | None:
    """Switch a key off and return it as its last use left it; None when there is no such key."""
    values = {":false": False, ":now": to_ms(now)}
    changes = ["#enabled = :false", "#updated_at = :now"]
    done, key = _update(key_hash, changes, ["attribute_exists(id)"], values)
    return key if done else None


def delete(key_hash: str) -> bool:
    """False when there was no such key."""
    reply = aws.dynamodb().delete_item(
        TableName=settings().api_keys_table,
        Key=aws.serialize({"key_hash": key_hash}),
        ReturnValues="ALL_OLD",
    )
    return bool(reply.get("Attributes"))


def delete_if_ended(key_hash: str, *, now: datetime) -> bool:
    """Delete a key that is past its expiry or used up for good; False when it is neither, or gone already."""
    used_up = "has_allowance = :true AND #remaining <= :zero AND refill_at = :never"
    try:
        reply = aws.dynamodb().delete_item(
            TableName=settings().api_keys_table,
            Key=aws.serialize({"key_hash": key_hash}),
            ConditionExpression=f"expires_at <= :now OR ({used_up})",
            ExpressionAttributeNames=_names(used_up),
            ExpressionAttributeValues=aws.serialize(
                {":now": to_ms(now), ":true": True, ":zero": 0, ":never": NEVER}
            ),
            ReturnValues="ALL_OLD",
        )
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            return False
        raise
    return bool(reply.get("Attributes"))


def _hashes(index: str, condition: str, values: aws.Item) -> Iterator[str]:
    for item in aws.query(settings().api_keys_table, condition, values, IndexName=index):
        yield str(item["key_hash"])
