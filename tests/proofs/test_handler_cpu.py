"""A warm request takes no more CPU time than botocore takes for its calls to AWS alone.

The limit applies to GET by redirect, HEAD, status and events. `make bench` shows the figures of a longer run.
"""

import pytest

from tools.benchmarks.handler_cpu import LIMIT, Case, HandlerCpu, measure
from tools.benchmarks.handler_requests import requests_of_a_new_team

ATTEMPTS = 5
CASES = ("GET redirect", "HEAD", "status", "events of 80", "event")


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.usefixtures("on_the_local_server")
def test_a_warm_request_costs_no_more_than_botocore_for_its_calls(report_lines: list[str]) -> None:
    figures = [measured(case) for case in requests_of_a_new_team()]
    report_lines.extend(f"CPU of {figure.name}: {figure.ratio:.2f} x botocore" for figure in figures)
    assert {figure.name for figure in figures if figure.ratio > LIMIT} == set()
    assert tuple(figure.name for figure in figures) == CASES


def measured(case: Case) -> HandlerCpu:
    """Measure again while the figure is above the limit.

    Other work on the machine makes one of the two sides slower for a second. A handler that is too slow stays too slow.
    """
    figures = [measure(case, turns=6, calls_a_turn=30)]
    while figures[-1].ratio > LIMIT and len(figures) < ATTEMPTS:
        figures.append(measure(case, turns=6, calls_a_turn=30))
    return figures[-1]
