"""Every hour"""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from larder import clock
from larder.artifacts import sweeping
from larder.artifacts.sweeping import SweepReport
from larder.metrics import measured
from larder.time_left import time_for_more
from larder.web.log import logged, logger


def sweep_artifacts(context: LambdaContext) -> SweepReport:
    """Delete expired artifacts, replaced objects and uploads that never arrived."""
    return sweeping.sweep(
        now=clock.now(),
        may_go_on=time_for_more(context),
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
