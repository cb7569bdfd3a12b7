"""One DynamoDB client, made at import as AWS's examples do it, and one read: the least of a function with a table.

Nothing but what the runtime brings is imported.
"""

import os
from typing import Any

import boto3

client = boto3.client("dynamodb")


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    key = {"key_hash": {"S": "nobody's"}}
    client.get_item(TableName=os.environ["LARDER_API_KEYS_TABLE"], Key=key)
    return {"statusCode": 200}
