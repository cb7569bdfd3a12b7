"""Figures for CloudWatch, as a part of a line of the log: the embedded metric format, from which CloudWatch reads them.

Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html

By hand, because it is one dictionary: Powertools' Metrics would print a line of its own for each request, of which
CloudWatch is paid by the byte.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from larder import clock
from larder.settings import metrics_namespace


def measured(**figures: tuple[int, str]) -> dict[str, Any]:
    """The members of a log line that tell these figures, each a number and what CloudWatch calls its unit."""
    units = [{"Name": name, "Unit": unit} for name, (_, unit) in figures.items()]
    numbers = {name: number for name, (number, _) in figures.items()}
    told = {"Namespace": metrics_namespace(), "Dimensions": [[]], "Metrics": units}
    return {**_emf(told), **numbers}


def counted(name: str, *dimensions: Sequence[str]) -> dict[str, Any]:
    """The members of a log line that count one more of `name`.

    Each of `dimensions` names other members of the line: CloudWatch keeps a figure for every value of theirs. The empty
    one is the figure of everything.
    """
    figures = {
        "Namespace": metrics_namespace(),
        "Dimensions": [list(names) for names in dimensions],
        "Metrics": [{"Name": name, "Unit": "Count"}],
    }
    return {**_emf(figures), name: 1}


def count(name: str, **values: str) -> None:
    """Print a line that counts one more of `name`, of everything and of these values."""
    line = {**counted(name, [], list(values)), **values}
    sys.stdout.write(f"{json.dumps(line)}\n")


def _emf(figures: dict[str, Any]) -> dict[str, Any]:
    return {"_aws": {"Timestamp": clock.to_ms(clock.now()), "CloudWatchMetrics": [figures]}}
