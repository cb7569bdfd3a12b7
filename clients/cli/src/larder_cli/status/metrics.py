"""Figures of CloudWatch."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from larder_cli.status.deployed import Deployed

_QUERIES_PER_CALL = 500
_PERIOD_S = 300


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with the one set of dimensions that it is stored under."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...] = ()
    statistic: Literal["Sum", "Maximum"] = "Sum"


def of_function(function: str, name: str) -> Metric:
    """A sum of Lambda's for one function, by physical id."""
    return Metric("AWS/Lambda", name, (("FunctionName", function),))


def read(deployed: Deployed, metrics: Iterable[Metric], *, hours: int) -> dict[Metric, int]:
    """The sum or the maximum of each metric in these last hours, rounded. 0 for one without data."""
    asked = list(dict.fromkeys(metrics))
    found = dict.fromkeys(asked, 0.0)
    for start in range(0, len(asked), _QUERIES_PER_CALL):
        batch = asked[start : start + _QUERIES_PER_CALL]
        pages = (
            deployed.clients["cloudwatch"]
            .get_paginator("get_metric_data")
            .paginate(
                MetricDataQueries=[_query(number, one) for number, one in enumerate(batch)],
                StartTime=deployed.now - timedelta(hours=hours),
                # The minutes of now are included.
                EndTime=deployed.now + timedelta(minutes=1),
            )
        )
        for result in (result for page in pages for result in page["MetricDataResults"]):
            metric = batch[int(result["Id"].removeprefix("m"))]
            for value in result["Values"]:
                known = found[metric]
                found[metric] = known + value if metric.statistic == "Sum" else max(known, value)
    return {metric: round(value) for metric, value in found.items()}


def _query(number: int, metric: Metric) -> dict[str, Any]:
    return {
        "Id": f"m{number}",
        "MetricStat": {
            "Metric": {
                "Namespace": metric.namespace,
                "MetricName": metric.name,
                "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions],
            },
            "Period": _PERIOD_S,
            "Stat": metric.statistic,
        },
    }
