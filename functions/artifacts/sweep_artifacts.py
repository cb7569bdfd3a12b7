"""Every hour"""

from dataclasses import asdict
from functools import partial
from typing import Any

from larder import clock, deadline
from larder.artifacts import sweep
from larder.artifacts.sweep import SweepReport
from larder.metrics import measured
from larder.web.log import logged, logger
from larder.web.powertools.context import LambdaContext


def sweep_artifacts(context: LambdaContext) -> SweepReport:
    """Delete expired artifacts, replaced objects and uploads that never arrived."""
    return sweep.sweep(
        now=clock.now(),
        has_time=partial(deadline.has_time, context),
    )


@logged
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    report = sweep_artifacts(context)
    figures = measured(
        TotalsChecked=(report.totals_checked, "Count"),
        TotalsCorrected=(report.totals_corrected, "Count"),
        TotalsCorrectedBytes=(report.corrected_bytes, "Bytes"),
        TotalsCorrectedArtifacts=(report.corrected_artifacts, "Count"),
    )
    logger().info("swept", extra={**asdict(report), **figures})
