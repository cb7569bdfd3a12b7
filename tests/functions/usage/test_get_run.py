"""GET /v1/runs/{runId}"""

from dataclasses import replace
from typing import Any

import pytest

from larder import clock
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.clock import to_ms
from larder.why.models import Outcome, Run
from larder.why.records import ComparisonJson
from tests.functions.usage import reports
from tests.functions.usage.test_list_runs import HASH, run, store
from tests.requests import Cloud, Reply, Sender

TASK = ("web", "build", Outcome.BUILT, 4_000)


def explanation(**changed: Any) -> ComparisonJson:
    """Why web#build missed: a variable changed."""
    compared: Any = {"id": "base", "startedAt": 1, "sha": "1f0b", "branch": "main"}
    values: Any = {
        "baseline": {**compared, "turboVersion": "2.11.11", "chosen": "ancestor"},
        "run": {**compared, "turboVersion": "2.11.11"},
        "tasks": 1,
        "changed": 1,
        "restored": 0,
        "complete": True,
        "causes": [
            {
                "kind": "env",
                "subject": "NEXT_PUBLIC_SHA",
                "task": None,
                "how": "changed",
                "more": 0,
                "values": [],
                "hints": [{"hint": "volatile_name", "values": []}],
                "commit": None,
                "class": "setup",
                "direct": ["web#build"],
                "directCount": 1,
                "below": 2,
                "alone": 1,
                "buildMs": 4_000,
                "advice": "volatile-variable",
            }
        ],
        "sameHash": [],
        "sameHashCount": 0,
        "new": [],
        "newCount": 0,
        "gone": [],
        "goneCount": 0,
        "notes": [],
    }
    return values | changed


def get(cloud: Cloud, of: Run, *, token: str | None = None) -> Reply:
    query = f"slug=acme&startedAt={to_ms(of.started_at)}"
    return Sender(token or cloud.token, query=query)("GET", f"/v1/runs/{of.id}")


def test_a_run_with_its_tasks_and_why_they_missed(cloud: Cloud) -> None:
    stored = run(0, TASK, hashes=[HASH], explanation=explanation())
    store(cloud, stored)
    reply = get(cloud, stored)
    assert reply.status == 200
    assert reply.json["ran"] == [{"package": "web", "task": "build", "outcome": "built", "ms": 4_000, "hash": HASH}]
    assert reply.json["causes"] == explanation()
    assert (reply.json["tasks"], reply.json["branch"]) == (1, "main")
    cause = {"kind": "env", "subject": "NEXT_PUBLIC_SHA", "task": None, "tasks": 3}
    assert (reply.json["topCauses"], reply.json["sameHash"]) == ([cause], 0)


def test_a_run_that_was_not_compared(cloud: Cloud) -> None:
    stored = run(0, TASK)
    store(cloud, stored)
    assert get(cloud, stored).json["causes"] is None


def test_404_for_another_id_start_or_team(cloud: Cloud) -> None:
    stored = run(0, TASK)
    store(cloud, stored)
    for other in (replace(stored, id="other"), run(1, id=stored.id)):
        reply = get(cloud, other)
        assert (reply.status, reply.json["error"]["code"]) == (404, "run_not_found")


@pytest.mark.parametrize("query", ["", "startedAt=yesterday", "startedAt=1&limit=1"])
def test_400(cloud: Cloud, query: str) -> None:
    assert Sender(cloud.token, query=f"slug=acme&{query}")("GET", "/v1/runs/x").status == 400
    assert Sender(cloud.token, query="slug=acme&startedAt=1")("GET", "/v1/runs/x-y").status == 400


def test_why_a_run_of_an_own_scope_missed_is_seen_by_that_scope_and_those_who_manage(cloud: Cloud) -> None:
    reads = NewKey(user_id=cloud.user.id, team_id=cloud.team.id, permissions={"artifacts": ("read",)})
    _, token = create_key(reads, now=clock.now())
    own = run(0, TASK, explanation=explanation(), scope="k" + "a" * 26)
    shared = run(1, TASK, explanation=explanation())
    store(cloud, own, shared)
    assert get(cloud, shared, token=token).json["causes"] is not None
    assert get(cloud, own, token=token).json["causes"] is None
    assert get(cloud, own, token=start_session(cloud.user, now=clock.now())[1]).json["causes"]
    for of_token, runs in ((token, 1), (cloud.token, 1)):
        reply = Sender(of_token, query="slug=acme")("GET", "/v1/runs")
        assert [cause["runs"] for cause in reply.json["figures"]["causes"]] == [runs]


def shown(cloud: Cloud, report: Any, against: str = "") -> Reply:
    query = f"startedAt={report['execution']['startTime']}{against and f'&against={against}'}"
    return cloud.send("GET", f"/v1/runs/{report['id']}?{query}")


def test_a_run_is_compared_again_with_the_run_that_is_asked_for(cloud: Cloud) -> None:
    reports.keep(cloud)
    first = reports.report(reports.LIB)
    reports.send(cloud.send, first)
    with reports.later():
        second = reports.report(reports.LIB_2, sha=reports.BRANCH)
        reports.send(cloud.send, second)
    with reports.later(2):
        third = reports.report(reports.LIB_2, sha=reports.BRANCH)
        reports.send(cloud.send, third)
        stored = shown(cloud, third).json["causes"]
        again = shown(cloud, third, first["id"])
        none = shown(cloud, third, "unknown")
    assert (stored["baseline"]["id"], stored["causes"]) == (second["id"], [])
    assert reports.causes(again) == [("file", "packages/lib/src/a.js")]
    assert again.json["causes"]["baseline"]["chosen"] == "asked"
    assert (none.json["causes"], none.json["missing"]) == (None, "no_baseline")


def test_a_run_whose_object_is_gone_has_no_inputs(cloud: Cloud) -> None:
    reports.keep(cloud)
    reports.send(cloud.send, reports.report(reports.LIB, sha=reports.MAIN))
    with reports.later():
        second = reports.report(reports.LIB_2, sha=reports.BRANCH)
        reports.send(cloud.send, second)
        reports.lose_inputs(cloud, reports.BRANCH)
        reply = shown(cloud, second, "main")
    assert (reply.json["causes"], reply.json["missing"]) == (None, "no_inputs")


def test_a_run_without_inputs_or_a_baseline_says_so(cloud: Cloud) -> None:
    reports.keep(cloud)
    alone = reports.report(reports.LIB)
    reports.send(cloud.send, alone)
    assert shown(cloud, alone).json["missing"] == "no_baseline"
    plain = run(1, TASK)
    store(cloud, plain)
    assert get(cloud, plain).json["missing"] == "no_inputs"
    query = f"slug=acme&startedAt={to_ms(plain.started_at)}&against=main"
    reply = Sender(cloud.token, query=query)("GET", f"/v1/runs/{plain.id}")
    assert (reply.json["causes"], reply.json["missing"]) == (None, "no_inputs")


def test_the_61st_comparison_of_an_hour_is_refused(cloud: Cloud) -> None:
    reports.keep(cloud)
    body = reports.report(reports.LIB)
    reports.send(cloud.send, body)
    for _ in range(60):
        assert shown(cloud, body, "main").status == 200
    assert shown(cloud, body, "main").status == 429
    assert shown(cloud, body).status == 200
