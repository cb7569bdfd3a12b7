"""The hourly schedule"""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from larder import clock
from larder.accounts import service
from larder.api_keys.service import delete_keys_of
from larder.teams.service import leave_teams
from larder.web.log import logged, logger

_INDEXES_FOLLOW_WITHIN = timedelta(minutes=10)


def forget_deleted_users() -> int:
    """Every hour: end what a deletion left over because it was cut off, or an index did not show it yet."""
    now, keys = clock.now(), 0
    for user_id, deleted_at in service.deleted_users():
        keys += delete_keys_of(user_id)
        left = leave_teams(user_id)
        if left and now - deleted_at > _INDEXES_FOLLOW_WITHIN:
            service.forget_deleted_user(user_id)
    return keys


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    logger().info("removed traces of deleted users", extra={"keys": forget_deleted_users()})
