"""Every hour"""

from functools import partial
from typing import Any

from larder import clock, deadline, deletions
from larder.accounts.access import warn_of_ending_access
from larder.accounts.team_notices import notify_owners_of_paused_keys
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext


def sweep_deleted_users(context: LambdaContext) -> tuple[int, int]:
    """Delete what is left of deleted users: sessions, keys, memberships, and what they stored without a team. Warn
    users whose access ends within a week, and owners whose public read keys are paused. End memberships and keys of
    teams whose person has left.
    """
    now, has_time = clock.now(), partial(deadline.has_time, context)
    ended = deletions.note_ended_access
    warned = warn_of_ending_access(ended=ended, now=now, has_time=has_time)
    deletions.end_given_memberships(now=now, has_time=has_time)
    deletions.settle_keys(now=now, has_time=has_time)
    notify_owners_of_paused_keys(has_time=has_time)
    return deletions.sweep_users(now=now, has_time=has_time), warned


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    users, warned = sweep_deleted_users(context)
    logger().info("forgot deleted users", extra={"users": users, "warned": warned})
