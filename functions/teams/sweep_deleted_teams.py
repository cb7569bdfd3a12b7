"""Every hour"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from larder import clock, deadline
from larder.api_keys.service import delete_keys_of_team
from larder.artifacts.removals import UPLOADS_ARE_OVER_AFTER, delete_owner_data
from larder.invitations import service as invitations
from larder.teams import teams
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext


def sweep_deleted_teams(context: LambdaContext) -> int:
    """Delete what is left of deleted teams.

    Returns how many are completely deleted.
    """
    now, finished = clock.now(), 0
    has_time = partial(deadline.has_time, context)

    for team_id, deleted_at in teams.deleted_teams():
        if _delete_data(team_id, now, has_time) and now - deleted_at > UPLOADS_ARE_OVER_AFTER:
            teams.finish_deletion(team_id)
            finished += 1
    return finished


def _delete_data(team_id: str, now: datetime, has_time: Callable[[], bool]) -> bool:
    delete_keys_of_team(team_id)
    return (
        invitations.delete_all(team_id, has_time=has_time)
        and teams.delete_team_items(team_id, has_time=has_time)
        and delete_owner_data(team_id, now=now, has_time=has_time)
    )


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    logger().info("forgot deleted teams", extra={"teams": sweep_deleted_teams(context)})
