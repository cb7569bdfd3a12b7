"""Every hour, and invoked by itself"""

from dataclasses import asdict
from functools import partial
from typing import Any

from larder import clock, deadline
from larder.artifacts import sweep
from larder.artifacts.sweep import SweepReport
from larder.artifacts.sweep_jobs import CheckJob, Job, hand_over, parse_job
from larder.metrics import measured
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext
from larder.why.origins import origins_of


def sweep_artifacts(job: Job | None, context: LambdaContext) -> SweepReport:
    """Delete expired artifacts, replaced objects and uploads that never arrived."""
    has_time = partial(deadline.has_time, context)
    if isinstance(job, CheckJob):
        return sweep.check_totals(job, has_time=has_time, origins=origins_of)
    return sweep.sweep(now=clock.now(), has_time=has_time, job=job, origins=origins_of)


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Hands the function what it had no time for, with a call for each shard of the index."""
    report = sweep_artifacts(parse_job(event), context)
    for job in report.rest:
        hand_over(job, function=context.function_name)
    figures = measured(
        TotalsChecked=(report.totals_checked, "Count"),
        TotalsCorrected=(report.totals_corrected, "Count"),
        TotalsCorrectedBytes=(report.corrected_bytes, "Bytes"),
        TotalsCorrectedArtifacts=(report.corrected_artifacts, "Count"),
    )
    counts = {name: value for name, value in asdict(report).items() if name != "rest"}
    logger().info("swept", extra={**counts, "finished": report.finished, **figures})
