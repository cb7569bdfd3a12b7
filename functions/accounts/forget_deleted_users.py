"""Every hour"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from larder import clock, deadline
from larder.accounts import service
from larder.api_keys.service import delete_keys_of
from larder.artifacts.delete_owner import UPLOADS_ARE_OVER_AFTER, clear_owner
from larder.teams.service import forget_personal_state, leave_teams
from larder.web.log import logged, logger


def forget_deleted_users(context: LambdaContext) -> int:
    """Delete what is left of deleted users: sessions, keys, memberships, and what they stored without a team.

    Returns how many users are completely deleted.
    """
    now, forgotten = clock.now(), 0
    has_time = partial(deadline.has_time, context)

    # First end the rights of all users, so that one large cache does not delay this for others.
    ended = [
        (user_id, deleted_at, _end_rights(user_id))
        for user_id, deleted_at in service.deleted_users()
    ]
    for user_id, deleted_at, is_ended in ended:
        cleared = _clear(user_id, now, has_time)
        if is_ended and cleared and now - deleted_at > UPLOADS_ARE_OVER_AFTER:
            service.forget_deleted_user(user_id)
            forgotten += 1
    return forgotten


def _end_rights(user_id: str) -> bool:
    delete_keys_of(user_id)
    return leave_teams(user_id)


def _clear(user_id: str, now: datetime, has_time: Callable[[], bool]) -> bool:
    forget_personal_state(user_id)
    return service.clear_sessions(user_id, has_time=has_time) and clear_owner(
        user_id, now=now, has_time=has_time
    )


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    logger().info("forgot deleted users", extra={"users": forget_deleted_users(context)})
