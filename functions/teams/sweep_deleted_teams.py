"""Every hour"""

from functools import partial
from typing import Any

from larder import clock, deadline, deletions
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext


def sweep_deleted_teams(context: LambdaContext) -> int:
    """Delete what is left of deleted teams."""
    return deletions.sweep_teams(now=clock.now(), has_time=partial(deadline.has_time, context))


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    logger().info("forgot deleted teams", extra={"teams": sweep_deleted_teams(context)})
