"""What every function of this runtime costs."""

from typing import Any


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return {"statusCode": 200}
