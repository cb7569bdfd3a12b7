"""The bucket's Object Created event"""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from larder import clock
from larder.artifacts import finalize
from larder.artifacts.models import parse_object_key
from larder.web.log import logged, logger


def commit_upload(object_key: str, size_bytes: int) -> None:
    """Make a finished direct upload visible, or discard it if it breaks the quota or came too late."""
    upload = parse_object_key(object_key)
    if upload is None:
        logger().warning("object with a foreign key", extra={"object_key": object_key})
        return
    finalize.commit(upload, announced_bytes=size_bytes, now=clock.now())


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """The function that EventBridge calls. Failed events are retried, then sent to the dead-letter queue."""
    stored = event["detail"]["object"]
    commit_upload(stored["key"], stored["size"])
