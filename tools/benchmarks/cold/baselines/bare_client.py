"""The minimum for a function with a table: one DynamoDB client, created at import as in AWS's examples, and one read.

It imports only packages of the runtime.
"""

import os
from typing import Any

import boto3

client = boto3.client("dynamodb")


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    key = {"key_hash": {"S": "unknown"}}
    client.get_item(TableName=os.environ["LARDER_API_KEYS_TABLE"], Key=key)
    return {"statusCode": 200}
