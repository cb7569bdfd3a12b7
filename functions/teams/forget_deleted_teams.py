"""The hourly schedule"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from larder import clock
from larder.api_keys.service import delete_keys_of_team
from larder.artifacts.clearing import UPLOADS_ARE_OVER_AFTER, clear_owner
from larder.teams import management
from larder.web.log import logged, logger

MARGIN_MS = 30_000
"""What is left of the function's time when it begins nothing more: a hundred artifacts may be under way."""


def forget_deleted_teams(context: LambdaContext) -> int:
    """Every hour: delete what is left of teams that are gone. Returns how many are wholly forgotten."""
    now, forgotten = clock.now(), 0

    def may_go_on() -> bool:
        return context.get_remaining_time_in_millis() > MARGIN_MS

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
