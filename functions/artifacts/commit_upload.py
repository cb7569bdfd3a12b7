"""The bucket's Object Created event"""

from typing import Any

from larder import clock
from larder.artifacts import publish
from larder.artifacts.models import NULL_VERSION, parse_object_key
from larder.metrics import counted
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext


def commit_upload(object_key: str, version: str) -> None:
    """Make a finished direct upload visible, or discard it if it breaks the quota or came too late."""
    upload = parse_object_key(object_key)
    if upload is None:
        logger().warning("object with a foreign key", extra={"object_key": object_key})
        return
    if not publish.publish_version(upload, version, now=clock.now()):
        logger().warning(
            "deleted an object that would replace a published one",
            extra={
                "owner": upload.owner,
                "hash": upload.hash,
                "upload_id": upload.id,
                "version": version,
                **counted("ReplacedUploadAttempts", []),
            },
        )


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """The function that EventBridge calls. Failed events are retried, then sent to the dead-letter queue."""
    detail = event["detail"]
    if detail.get("reason") == "CopyObject":
        # The sweep has renewed an artifact, and enters the new version itself.
        return
    stored = detail["object"]
    # A bucket without versions sends none.
    commit_upload(stored["key"], stored.get("version-id") or NULL_VERSION)
