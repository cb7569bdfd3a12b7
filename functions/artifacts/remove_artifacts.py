"""Invoked by other functions"""

from dataclasses import asdict
from functools import partial
from typing import Any

from larder import clock, deadline
from larder.artifacts import eviction, removals
from larder.artifacts.eviction import EvictionReport
from larder.artifacts.jobs import JobKind, RemovalJob, parse_job
from larder.artifacts.removals import RemovalReport
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext


def remove_artifacts(job: RemovalJob, context: LambdaContext) -> RemovalReport | EvictionReport:
    """Carry out a removal that was requested, or evict the least recently used artifacts if the quota is full."""
    has_time = partial(deadline.has_time, context)
    match job:
        case RemovalJob(kind=JobKind.LEAST_RECENTLY_USED):
            return eviction.do_job(job.owner, now=clock.now(), has_time=has_time)
        case RemovalJob(kind=JobKind.REMOVAL, target=str(target)):
            return removals.do_job(job.owner, target, now=clock.now(), has_time=has_time)
    raise ValueError(f"This job does not name a target: {job}")


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """The function that Lambda calls. Failed events are retried, then sent to the dead-letter queue."""
    job = parse_job(event)
    report = remove_artifacts(job, context)
    logger().info("removed artifacts", extra={**asdict(job), **asdict(report)})
