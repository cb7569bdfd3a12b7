"""Every hour"""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from larder import clock, deadline
from larder.accounts import service
from larder.api_keys.service import delete_keys_created_until, delete_keys_of
from larder.artifacts.removals import UPLOADS_ARE_OVER_AFTER, delete_owner_data
from larder.errors import TryAgain
from larder.teams.members import leave_teams
from larder.teams.state import delete_personal_state
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext


def sweep_deleted_users(context: LambdaContext) -> int:
    """Delete what is left of deleted users: sessions, keys, memberships, and what they stored without a team.

    Also delete the keys of users whose password reset was interrupted before it deleted them.

    Returns how many users are completely deleted.
    """
    now, finished = clock.now(), 0
    has_time = partial(deadline.has_time, context)

    for user_id, reset_at in service.users_with_ending_keys():
        # Only those: since then, the user may have created new ones.
        delete_keys_created_until(user_id, reset_at)
        service.finish_ending_keys(user_id)

    # First revoke the rights of all users, so that one large cache does not delay this for others.
    revoked = [
        (user_id, deleted_at, _revoke_rights(user_id))
        for user_id, deleted_at in service.deleted_users()
    ]
    for user_id, deleted_at, is_revoked in revoked:
        is_empty = _delete_data(user_id, now, has_time)
        if is_revoked and is_empty and now - deleted_at > UPLOADS_ARE_OVER_AFTER:
            service.finish_deletion(user_id)
            finished += 1
    return finished


def _revoke_rights(user_id: str) -> bool:
    """False if some are left for the next run, so that one user does not delay this for others."""
    try:
        delete_keys_of(user_id)
    except TryAgain:
        return False
    return leave_teams(user_id)


def _delete_data(user_id: str, now: datetime, has_time: Callable[[], bool]) -> bool:
    delete_personal_state(user_id)
    return service.delete_sessions(user_id, has_time=has_time) and delete_owner_data(
        user_id, now=now, has_time=has_time
    )


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    logger().info("forgot deleted users", extra={"users": sweep_deleted_users(context)})
