"""Every hour"""

from typing import Any

from larder import clock
from larder.api_keys import keys
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext


def sweep_expired_keys() -> int:
    """Delete expired keys. They are already refused."""
    return keys.delete_expired_keys(now=clock.now())


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    logger().info("removed expired keys", extra={"removed": sweep_expired_keys()})
