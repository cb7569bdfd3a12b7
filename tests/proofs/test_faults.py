"""Tests that a store or the function fails in the middle of a request.

`make faults` runs every fault at every call of every request. Here every request gets a few
faults, which FAULT_SEED chooses. Events and invocations come twice, at the same time, out of order or not at all.
"""

import os
import random
import re
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from larder.instance import restart
from tests.default_template import template
from tests.proofs import fault_report
from tests.proofs.fault_deliveries import DELIVERIES, Delivery, run
from tests.proofs.fault_matrix import OUTCOMES, run_scenario, sweep_and_check
from tests.proofs.fault_proxy import FAULTS, SILENT, Call, Fault
from tests.proofs.fault_scenarios import SCENARIOS, Scenario, made, put
from tests.proofs.fault_world import FUNCTION_S, Subject, World, running

# The garbage collector closes broken connections at an unknown time.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SEED = int(os.environ.get("FAULT_SEED") or secrets.randbelow(10**9))
CELLS_EACH = int(os.environ.get("FAULT_CELLS") or 1)
PAGE = Path(__file__).parents[2] / "docs" / "faults.md"

SCHEDULED = {schedule.function.logical_id for schedule in template().schedules}

_SLOW = {"no answer", "no answer, done", "late"}
"""Faults for `make faults`, and for the tests at the end of this module."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, report_lines: list[str]) -> Iterator[World]:
    report_lines.append(f"faults: FAULT_SEED={SEED}")
    with running(tmp_path_factory.mktemp("faults") / "world") as opened:
        yield opened


@pytest.fixture(scope="module")
def left(world: World) -> Iterator[list[Subject]]:
    """The subjects that the tests of this module leave. At the end, the sweeps clean up after all of them."""
    subjects: list[Subject] = []
    yield subjects
    assert sweep_and_check(world, subjects) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_request_with_a_fault(scenario: Scenario, world: World, left: list[Subject]) -> None:
    def some(cells: list[tuple[Call, Fault]]) -> list[tuple[Call, Fault]]:
        quick = [(call, fault) for call, fault in cells if fault.name not in _SLOW]
        return random.Random(f"{SEED}/{scenario}").sample(quick, min(CELLS_EACH, len(quick)))

    leaves: list[Subject] | None = left
    if scenario.route in SCHEDULED:
        # The calls of a schedule depend on the data of other tests.
        assert sweep_and_check(world, left) == []
        left.clear()
        leaves = None
    result = run_scenario(world, scenario, some, leaves=leaves)
    assert result.failures == []
    assert {cell.outcome for cell in result.cells} <= OUTCOMES


@pytest.mark.parametrize("one", DELIVERIES, ids=str)
def test_delivery(one: Delivery, world: World, left: list[Subject]) -> None:
    left.append(run(world, one))


# The report and docs/faults.md ----------------------------------------------------------------------------------------


def names() -> list[str]:
    """Every route of the template, and every function without one."""
    deployed = template()
    routed = {route.function.logical_id for route in deployed.routes}
    routes = [route.key for route in deployed.routes]
    return routes + [function.logical_id for function in deployed.functions if function.logical_id not in routed]


@pytest.mark.parametrize("name", names())
def test_every_route_and_function_has_a_scenario(name: str) -> None:
    assert name in {scenario.route for scenario in SCENARIOS}


def test_the_report_counts_the_outcomes_of_each_fault() -> None:
    name = str(SCENARIOS[0])
    outcomes = {"500": Counter({"503": 2, "no answer, done": 1})}
    report = fault_report.render({name: 3}, {name: outcomes}, DELIVERIES)
    assert "\n3 cells:" in report
    row = next(line for line in report.splitlines() if line.startswith(f"| `{name}` |"))
    assert row.startswith(f"| `{name}` | 3 | - | - | 503 2, none, done 1 | - |")


def test_every_fault_and_every_outcome_is_explained() -> None:
    assert set(fault_report.SIGNS) == OUTCOMES
    assert {fault.name for fault in FAULTS} <= fault_report.COLUMNS.keys()


def test_the_documentation_lists_every_refusal_of_a_repeated_request() -> None:
    listed = re.findall(r"^\| (\d+) `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    refusals = {one for scenario in SCENARIOS for one in scenario.done_before}
    assert {(int(status), code) for status, code in listed} == refusals
    assert len(listed) == len(refusals)


# The real time-outs ------------------------------------------------------------------------------

ENDS_WITHIN_S = {"dynamodb": 17, "s3": 22}
"""The longest time to a reply, of a function's 25 s, if the last attempt starts just before the deadline."""


@pytest.mark.slow
@pytest.mark.parametrize("service", ENDS_WITHIN_S)
def test_a_request_is_answered_in_time_while_a_store_is_silent(service: str, world: World) -> None:
    """Send an upload, or a sign-in while DynamoDB is silent: its rate limit is read first, and gives up early."""
    subject = Subject(world)
    body = {"email": subject.user.email, "password": "the first password"}
    restart()
    with world.proxy.failing(silent=service):
        began = time.monotonic()
        signs_in = service == "dynamodb"
        reply = subject.ask("POST", "/sign-in/email", body) if signs_in else put(subject, made())
        took_s = time.monotonic() - began
    assert (reply.status, reply.headers["retry-after"]) == (503, "2")
    assert took_s < ENDS_WITHIN_S[service] < FUNCTION_S


@pytest.mark.slow
def test_a_limit_that_cannot_be_counted_costs_one_time_out(world: World) -> None:
    subject = Subject(world)
    token = subject.session()
    silent = Call("dynamodb", "UpdateItem", "rate-limits", 1)
    restart()
    with world.proxy.failing((silent, SILENT)):
        began = time.monotonic()
        reply = subject.ask("GET", "/get-session", token=token)
        took_s = time.monotonic() - began
    assert reply.json["user"]["id"] == subject.user.id
    assert 5 <= took_s < 10  # two time-outs take ten
