"""Every hour"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from larder import clock
from larder.api_keys.service import delete_keys_of_team
from larder.artifacts.clearing import UPLOADS_ARE_OVER_AFTER, clear_owner
from larder.teams import management
from larder.time_left import time_for_more
from larder.web.log import logged, logger


def forget_deleted_teams(context: LambdaContext) -> int:
    """Delete what is left of deleted teams.

    Returns how many are completely deleted.
    """
    now, forgotten = clock.now(), 0
    may_go_on = time_for_more(context)

    for team_id, deleted_at in management.deleted_teams():
        if _clear(team_id, now, may_go_on) and now - deleted_at > UPLOADS_ARE_OVER_AFTER:
            management.forget_deleted_team(team_id)
            forgotten += 1
    return forgotten


def _clear(team_id: str, now: datetime, may_go_on: Callable[[], bool]) -> bool:
    delete_keys_of_team(team_id)
    return management.clear_team(team_id, may_go_on=may_go_on) and clear_owner(
        team_id, now=now, may_go_on=may_go_on
    )


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    logger().info("forgot deleted teams", extra={"teams": forget_deleted_teams(context)})
