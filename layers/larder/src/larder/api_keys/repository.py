"""The table of API keys: one item a key, found by the hash of the key, indexed by id and by user."""

from datetime import datetime
from typing import Any

from larder import aws
from larder.api_keys.models import ApiKey, Permissions
from larder.clock import from_ms, to_ms
from larder.settings import settings


def _to_item(key: ApiKey) -> aws.Item:
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
        "expires_at": None if key.expires_at is None else to_ms(key.expires_at),
        "created_at": to_ms(key.created_at),
        "updated_at": to_ms(key.updated_at),
    }


def _from_item(item: aws.Item) -> ApiKey:
    return ApiKey(
        id=item["id"],
        key_hash=item["key_hash"],
        user_id=item["user_id"],
        team_id=item.get("team_id"),
        name=item.get("name"),
        start=item["start"],
        prefix=item.get("prefix"),
        enabled=item["enabled"],
        permissions={name: tuple(actions) for name, actions in item["permissions"].items()},
        expires_at=from_ms(item["expires_at"]) if "expires_at" in item else None,
        created_at=from_ms(item["created_at"]),
        updated_at=from_ms(item["updated_at"]),
        last_request=from_ms(item["last_request"]) if "last_request" in item else None,
    )


def add(key: ApiKey) -> None:
    aws.dynamodb().put_item(
        TableName=settings().api_keys_table,
        Item=aws.serialize(_to_item(key)),
        ConditionExpression="attribute_not_exists(key_hash)",
    )


def use(key_hash: str, required: Permissions, *, now: datetime) -> tuple[bool, ApiKey | None]:
    """Check a key and note its use in one conditional write.

    Returns whether the key passed, and the key as it stands (None: there is no such key). A failed condition changes
    nothing and brings the stored item back, so that a refusal costs no second call.
    """
    names: dict[str, str] = {}
    values: aws.Item = {":now": to_ms(now), ":true": True}
    conditions = [
        "attribute_exists(key_hash)",
        "enabled = :true",
        "(attribute_not_exists(expires_at) OR expires_at > :now)",
    ]
    needs = [(resource, action) for resource, actions in required.items() for action in actions]
    for number, (resource, action) in enumerate(needs):
        names |= {"#permissions": "permissions", f"#resource{number}": resource}
        values[f":action{number}"] = action
        conditions.append(f"contains(#permissions.#resource{number}, :action{number})")
    update: dict[str, Any] = {
        "UpdateExpression": "SET last_request = :now",
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeValues": aws.serialize(values),
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    if names:
        update["ExpressionAttributeNames"] = names
    try:
        reply = aws.dynamodb().update_item(
            TableName=settings().api_keys_table,
            Key=aws.serialize({"key_hash": key_hash}),
            **update,
        )
    except aws.ClientError as error:
        if aws.error_code(error) == "ConditionalCheckFailedException":
            stored: Any = error.response.get("Item")
            return False, None if not stored else _from_item(aws.deserialize(stored))
        raise
    return True, _from_item(aws.deserialize(reply["Attributes"]))


def get(key_hash: str) -> ApiKey | None:
    reply = aws.dynamodb().get_item(
        TableName=settings().api_keys_table,
        Key=aws.serialize({"key_hash": key_hash}),
        ConsistentRead=True,
    )
    return _from_item(aws.deserialize(reply["Item"])) if "Item" in reply else None


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
    pages = (
        aws.dynamodb()
        .get_paginator("query")
        .paginate(
            TableName=settings().api_keys_table,
            IndexName="by_user",
            KeyConditionExpression="user_id = :user",
            ExpressionAttributeValues=aws.serialize({":user": user_id}),
        )
    )
    hashes = [aws.deserialize(item)["key_hash"] for page in pages for item in page["Items"]]
    keys = []
    for batch in aws.in_batches(hashes):
        table = settings().api_keys_table
        keys += aws.batch_get({table: [{"key_hash": key_hash} for key_hash in batch]})[table]
    return sorted((_from_item(item) for item in keys), key=lambda key: key.created_at)


def delete(key_hash: str) -> None:
    aws.dynamodb().delete_item(
        TableName=settings().api_keys_table, Key=aws.serialize({"key_hash": key_hash})
    )
