"""The option WarmSchedule"""

import json
import re
from io import StringIO
from threading import Barrier
from typing import Any

import pytest

from local.cloudformation import holds
from local.template import resource_name
from tests.functions.test_sample_events import sample
from tests.moto_sockets import taking
from tests.permissions import RESOURCES, TEMPLATE, grants
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender, invoke, request_event

KEEP_WARM = RESOURCES["KeepWarm"]["Properties"]
INPUT: str = KEEP_WARM["Events"]["KeepWarm"]["Properties"]["Input"]["Fn::Sub"]
FUNCTIONS = sorted(set(re.findall(r"\$\{(\w+)\}", INPUT)) - {"WarmInstances"})
"""The functions that are kept, by logical id."""
WARM_CALL = {"warmCallMs": 1}


def test_without_the_option_nothing_is_deployed() -> None:
    assert RESOURCES["KeepWarm"]["Condition"] == "KeepsWarm"
    assert not holds(TEMPLATE, "KeepsWarm")


@pytest.mark.parametrize(
    ("schedule", "taken"),
    [
        ("rate(5 minutes)", True),
        ("cron(0/5 6-17 ? * MON-FRI *)", True),
        ("5 minutes", False),
        ("rate()", False),
        ('rate(5 minutes)"', False),
    ],
)
def test_a_schedule_is_one_of_eventbridge(schedule: str, taken: bool) -> None:
    assert bool(re.fullmatch(TEMPLATE["Parameters"]["WarmSchedule"]["AllowedPattern"], schedule)) is taken


def test_a_run_or_call_that_fails_is_not_repeated() -> None:
    assert KEEP_WARM["EventInvokeConfig"] == {"MaximumRetryAttempts": 0}
    assert KEEP_WARM["Events"]["KeepWarm"]["Properties"]["RetryPolicy"] == {"MaximumRetryAttempts": 0}


def test_it_may_only_call_the_functions_that_the_schedule_names(cloud: Cloud) -> None:
    assert grants("KeepWarm") == {("lambda:InvokeFunction", f"{name}.Arn") for name in FUNCTIONS}
    names = {"WarmInstances": "10"} | {name: resource_name(name) for name in FUNCTIONS}
    assert json.loads(re.sub(r"\$\{(\w+)\}", lambda match: names[match[1]], INPUT)) == sample("keep_warm", cloud)


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_a_warm_call_is_no_request(logical_id: str, cloud: Cloud, log: StringIO) -> None:
    """It reads nothing, and has no line in the log, from which requests, hits and errors are counted."""
    with counted() as calls:
        assert invoke(RESOURCES[logical_id]["Properties"]["Handler"], WARM_CALL) == {}
    assert (calls.made, log.getvalue()) == ([], "")


def test_no_client_can_send_a_warm_call(cloud: Cloud, log: StringIO) -> None:
    headers, body = {"warmCallMs": "1", "cookie": "warmCallMs=1"}, json.dumps(WARM_CALL).encode()
    _, event = request_event("POST", "/v8/artifacts", "warmCallMs=1", list(headers.items()), body)
    assert not WARM_CALL.keys() & event.keys()
    assert Sender(None)("POST", "/v8/artifacts?warmCallMs=1", headers=headers, body=body).status == 401
    assert json.loads(log.getvalue())["status"] == 401


class Called:
    """Answers calls of functions when as many as expected have begun."""

    def __init__(self, together: dict[str, int], status: int) -> None:
        self.waits: list[tuple[str, int]] = []
        self._status = status
        self._barriers = {name: Barrier(times, timeout=20) for name, times in together.items()}

    def __call__(self, target: str, headers: Any, body: bytes) -> int | None:
        (name,) = re.findall("/functions/(.+)/invocations", target)
        assert headers["X-Amz-Invocation-Type"] == "RequestResponse"
        self._barriers[name].wait()
        self.waits.append((name, json.loads(body)["warmCallMs"]))
        return self._status


@pytest.mark.parametrize(("instances", "builds"), [(1, 1), (10, 1), (25, 3)])
@pytest.mark.parametrize("status", [200, 403, 429])
def test_each_function_is_called_so_many_times_at_once(
    instances: int, builds: int, status: int, cloud: Cloud, log: StringIO
) -> None:
    event = sample("keep_warm", cloud) | {"instances": instances}
    together = {
        **dict.fromkeys(event["functions"]["many"], instances),
        **dict.fromkeys(event["functions"]["one"], builds),
    }
    called = Called(together, status)
    with taking(called):
        assert invoke("artifacts.keep_warm.handler", event) is None
    expected = [name for name, times in together.items() for _ in range(times)]
    assert [name for name, _ in called.waits] == expected
    assert all(20 < wait < 250 for _, wait in called.waits)
    line = json.loads(log.getvalue())
    assert (line["calls"], line["failed"]) == (len(expected), len(expected) if status != 200 else 0)
    assert line["level"] == ("WARNING" if status != 200 else "INFO")
