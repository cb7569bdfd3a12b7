"""GET /v1/runs"""

from datetime import date, timedelta
from typing import Any

import pytest

from larder import clock
from larder.actor import Actor
from larder.api_keys.changes import NewKey
from larder.api_keys.service import create_key
from larder.runs import repository, service
from larder.runs.models import Outcome, Run, RunTask
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

HASH = "08e4547d5347b63f"


def run(number: int = 0, *tasks: tuple[str, str, Outcome, int], **changed: Any) -> Run:
    values: dict[str, Any] = {
        "id": f"run{number}",
        "started_at": clock.now() - timedelta(minutes=number),
        "duration": timedelta(seconds=5),
        "exit_code": 0,
        "turbo_version": "2.11.11",
        "branch": "main",
        "sha": None,
        "ci": None,
        "reporter": Actor("key", "user"),
        "tasks": [
            RunTask(package, task, HASH, outcome, ms) for package, task, outcome, ms in tasks
        ],
    }
    return Run(**(values | changed))


def store(cloud: Cloud, *runs: Run) -> None:
    later = clock.now() + timedelta(days=1)
    for one in runs:
        assert repository.add(cloud.team.id, one, expires_at=later)


def ask(cloud: Cloud, query: str = "") -> Any:
    reply = Sender(cloud.token, query=f"slug=acme&{query}")("GET", "/v1/runs")
    assert reply.status == 200, reply.body
    return reply.json


def yesterday() -> date:
    return clock.now().date() - timedelta(days=1)


def test_figures_by_package_and_task(cloud: Cloud) -> None:
    store(
        cloud,
        run(
            0,
            ("web", "build", Outcome.BUILT, 60_000),
            ("api", "build", Outcome.REMOTE_HIT, 9_000),
            ("web", "test", Outcome.FAILED, 500),
        ),
        run(
            1,
            ("web", "build", Outcome.LOCAL_HIT, 50_000),
            ("api", "build", Outcome.REMOTE_HIT, 9_000),
        ),
        run(2, ("web", "build", Outcome.BUILT, 20_000)),
    )
    reply = ask(cloud)
    assert [one["id"] for one in reply["runs"]] == ["run0", "run1", "run2"]
    first = reply["runs"][0]
    assert first["names"] == ["build", "test"]
    assert {
        name: first[name] for name in ("tasks", "localHits", "remoteHits", "built", "failed")
    } == {
        "tasks": 3,
        "localHits": 0,
        "remoteHits": 1,
        "built": 2,
        "failed": 1,
    }
    figures = reply["figures"]
    assert (figures["runs"], figures["complete"], figures["count"]) == (3, True, 3)
    web = {
        "package": "web",
        "task": "build",
        "runs": 3,
        "localHits": 1,
        "remoteHits": 0,
        "built": 2,
        "failed": 0,
        "builtMs": 80_000,
        "longestMs": 60_000,
        "timeSavedMs": 50_000,
    }
    # Those that cost the most time come first.
    assert figures["tasks"][0] == web
    assert [(one["package"], one["task"]) for one in figures["tasks"]] == [
        ("web", "build"),
        ("web", "test"),
        ("api", "build"),
    ]
    assert figures["tasks"][2]["timeSavedMs"] == 18_000


def test_only_the_asked_days(cloud: Cloud) -> None:
    old = run(1, started_at=clock.now() - timedelta(days=3))
    store(cloud, run(0), old)
    today = clock.now().date()
    assert [one["id"] for one in ask(cloud, f"from={today}")["runs"]] == ["run0"]
    assert [one["id"] for one in ask(cloud, f"to={yesterday()}")["runs"]] == ["run1"]
    assert ask(cloud, f"from={today - timedelta(days=2)}&to={yesterday()}")["runs"] == []


def test_pages_go_through_all_runs_and_the_first_has_the_figures(cloud: Cloud) -> None:
    store(cloud, *(run(number) for number in range(7)))
    query = f"from={yesterday()}&limit=3"
    reply, found = ask(cloud, query), []
    assert reply["figures"]["runs"] == 7
    while True:
        found += [one["id"] for one in reply["runs"]]
        following = reply["pagination"]["next"]
        if following is None:
            break
        reply = ask(cloud, f"{query}&before={following.replace('#', '%23')}")
        assert "figures" not in reply
    assert found == [f"run{number}" for number in range(7)]


def test_figures_of_more_runs_than_fit_say_so(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_FIGURE_RUNS", 4)
    store(cloud, *(run(number, ("web", "build", Outcome.BUILT, 5)) for number in range(6)))
    figures = ask(cloud, f"from={yesterday()}&limit=2")["figures"]
    assert (figures["runs"], figures["complete"]) == (4, False)
    assert figures["tasks"][0]["runs"] == 4


def test_expired_runs_are_not_shown(cloud: Cloud) -> None:
    assert repository.add(cloud.team.id, run(), expires_at=clock.now() - timedelta(seconds=5))
    assert ask(cloud)["runs"] == []


def test_runs_of_another_owner_are_not_shown(cloud: Cloud, personal: Sender) -> None:
    store(cloud, run())
    assert personal("GET", "/v1/runs").json["runs"] == []


def test_403_for_a_key_that_cannot_read(cloud: Cloud) -> None:
    new = NewKey(user_id=cloud.user.id, permissions={"artifacts": ("write",)})
    reply = Sender(create_key(new, now=clock.now())[1], slug="acme")("GET", "/v1/runs")
    assert (reply.status, reply.code) == (403, "missing_permission")


def test_403_for_another_team(cloud: Cloud, stranger: Sender) -> None:
    assert stranger("GET", "/v1/runs").code == "not_a_team_member"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=0", "limit: must be"),
        ("limit=101", "limit: must be"),
        ("before=x", "before: must be the `next`"),
        ("from=yesterday", "from: must be a day"),
        ("until=2026-11-21", "until: is unknown"),
    ],
)
def test_400_names_the_parameter(cloud: Cloud, query: str, message: str) -> None:
    reply = Sender(cloud.token, query=f"slug=acme&{query}")("GET", "/v1/runs")
    assert (reply.status, reply.code) == (400, "bad_request")
    assert reply.message.startswith(message)


def test_the_cost_of_a_page_depends_on_its_runs(cloud: Cloud) -> None:
    store(cloud, *(run(number) for number in range(30)))
    with counted() as calls:
        ask(cloud, f"from={yesterday()}")
    # The key and the slug; member and team; the runs.
    assert calls.sequential == 3
