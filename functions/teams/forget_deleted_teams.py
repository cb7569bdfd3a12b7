"""Every hour"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from larder import clock, deadline
from larder.api_keys.service import delete_keys_of_team
from larder.artifacts.delete_owner import UPLOADS_ARE_OVER_AFTER, clear_owner
from larder.teams import management
from larder.web.log import logged, logger


def forget_deleted_teams(context: LambdaContext) -> int:
    """Delete what is left of deleted teams.

    Returns how many are completely deleted.
    """
    now, forgotten = clock.now(), 0
    has_time = partial(deadline.has_time, context)

    for team_id, deleted_at in management.deleted_teams():
        if _clear(team_id, now, has_time) and now - deleted_at > UPLOADS_ARE_OVER_AFTER:
            management.forget_deleted_team(team_id)
            forgotten += 1
    return forgotten


def _clear(team_id: str, now: datetime, has_time: Callable[[], bool]) -> bool:
    delete_keys_of_team(team_id)
    return management.clear_team(team_id, has_time=has_time) and clear_owner(
        team_id, now=now, has_time=has_time
    )


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    logger().info("forgot deleted teams", extra={"teams": forget_deleted_teams(context)})
