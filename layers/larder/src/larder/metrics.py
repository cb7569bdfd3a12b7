"""Metrics for CloudWatch, written into log lines in the embedded metric format.

Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html

Powertools' Metrics is not used: it prints an extra line for each request, and CloudWatch bills logs by the byte.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from larder import clock
from larder.settings import metrics_namespace


def measured(**figures: tuple[int, str]) -> dict[str, Any]:
    """The members of a log line for these metrics. Each is a number and CloudWatch's name of its unit.

    Leaves out those that are 0: a metric costs money in each hour in which it gets data.
    """
    reported = {name: figure for name, figure in figures.items() if figure[0]}
    if not reported:
        return {}
    units = [{"Name": name, "Unit": unit} for name, (_, unit) in reported.items()]
    numbers = {name: number for name, (number, _) in reported.items()}
    definition = {"Namespace": metrics_namespace(), "Dimensions": [[]], "Metrics": units}
    return {**_emf(definition), **numbers}


def counted(name: str, *dimensions: Sequence[str], also: Sequence[str] = ()) -> dict[str, Any]:
    """The members of a log line that add 1 to the metric `name`, and to the metrics `also`.

    Each of `dimensions` names other members of the line: CloudWatch keeps one metric per combination of their values.
    An empty one is the total.
    """
    names = (name, *also)
    definition = {
        "Namespace": metrics_namespace(),
        "Dimensions": [list(members) for members in dimensions],
        "Metrics": [{"Name": each, "Unit": "Count"} for each in names],
    }
    return {**_emf(definition), **dict.fromkeys(names, 1)}


def count(name: str, **values: str) -> None:
    """Print a line that adds 1 to the metric `name`, in total and for these values."""
    line = {**counted(name, [], list(values)), **values}
    sys.stdout.write(f"{json.dumps(line)}\n")


def count_in_total(name: str, **values: Any) -> None:
    """Print a line that adds 1 to the metric `name`, and has these values, by which CloudWatch does not count."""
    sys.stdout.write(f"{json.dumps({**counted(name, []), **values})}\n")


def _emf(definition: dict[str, Any]) -> dict[str, Any]:
    return {"_aws": {"Timestamp": clock.to_ms(clock.now()), "CloudWatchMetrics": [definition]}}
