"""GET /v1/runs"""

import base64
import json
import random
import zlib
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from larder import clock
from larder.actor import Actor
from larder.clock import to_ms
from larder.why import repository
from larder.why.models import Outcome, Run, RunTask, kept, names_of, totals_of
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

HASH = "08e4547d5347b63f"


def run(number: int = 0, *tasks: tuple[str, str, Outcome, int], **changed: Any) -> Run:
    ran = [RunTask(*task) for task in tasks]
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
        "names": names_of(ran),
        "totals": totals_of(ran),
        "tasks": kept(ran),
    }
    return Run(**(values | changed))


def store(cloud: Cloud, *runs: Run) -> None:
    later = clock.now() + timedelta(days=1)
    for one in runs:
        assert repository.add(repository.item_of(cloud.team.id, one, expires_at=later))


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
        run(1, ("web", "build", Outcome.LOCAL_HIT, 50_000), ("api", "build", Outcome.REMOTE_HIT, 9_000)),
        run(2, ("web", "build", Outcome.BUILT, 20_000)),
    )
    reply = ask(cloud)
    assert [one["id"] for one in reply["runs"]] == ["run0", "run1", "run2"]
    first = reply["runs"][0]
    assert first["names"] == ["build", "test"]
    assert {name: first[name] for name in ("tasks", "localHits", "remoteHits", "built", "failed")} == {
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
        # These runs keep no hashes.
        "hashes": 0,
        "repeated": 0,
        "repeatedMs": 0,
        "drift": 0,
        "driftMs": 0,
    }
    # Those that cost the most time come first.
    assert figures["tasks"][0] == web
    assert [(task["package"], task["task"]) for task in figures["tasks"]] == [
        ("web", "build"),
        ("web", "test"),
        ("api", "build"),
    ]
    assert figures["tasks"][2]["timeSavedMs"] == 18_000


def test_the_totals_have_every_task_and_the_figures_those_with_the_most_time(cloud: Cloud) -> None:
    tasks = [(f"p{number}", "build", Outcome.BUILT, number) for number in range(600)]
    store(cloud, run(0, *tasks, ("web", "test", Outcome.LOCAL_HIT, 7)))
    reply = ask(cloud)
    assert reply["runs"][0]["tasks"] == 601
    figures = reply["figures"]
    assert figures["totals"] == {
        "tasks": 601,
        "localHits": 1,
        "remoteHits": 0,
        "built": 600,
        "failed": 0,
        "builtMs": sum(range(600)),
        "timeSavedMs": 7,
    }
    assert (figures["count"], figures["tasks"][0]["package"]) == (500, "p599")


def test_runs_that_were_stored_with_all_tasks_have_the_same_figures(cloud: Cloud) -> None:
    rows = [[0, 0, HASH, "b", 60_000], [1, 0, HASH, "r", 9_000]]
    columns = json.dumps([["web", "a" * 255], ["build"], rows])
    item = repository.item_of(cloud.team.id, run(), expires_at=clock.now() + timedelta(days=1))
    old = {key: value for key, value in item.items() if key not in ("names", "totals", "kept")}
    old["tasks"] = base64.b64encode(zlib.compress(columns.encode())).decode()
    assert repository.add(old)
    reply = ask(cloud)
    (shown,), figures = reply["runs"], reply["figures"]
    assert (shown["names"], shown["tasks"], shown["built"]) == (["build"], 2, 1)
    assert figures["totals"]["timeSavedMs"] == 9_000
    assert [task["package"] for task in figures["tasks"]] == ["web", "a" * 100]


def noise(number: int) -> str:
    """A hundred characters that do not compress well."""
    return base64.b64encode(random.Random(number).randbytes(90)).decode()[:100]


@pytest.mark.parametrize("runs", [1, 30])
def test_runs_of_many_tasks_with_long_names_are_a_short_reply(cloud: Cloud, runs: int) -> None:
    tasks = [(noise(number), noise(-number), Outcome.BUILT, 10**9) for number in range(5_000)]
    first = run(0, *tasks)
    store(
        cloud,
        *(replace(first, id=f"x{number}") for number in range(runs)),
        run(1, ("web", "build", Outcome.REMOTE_HIT, 5)),
    )
    reply = ask(cloud, f"from={yesterday()}&limit=100")
    assert len(json.dumps(reply)) < 300_000
    assert {len(one["names"]) for one in reply["runs"]} == {1, 20}
    assert reply["runs"][-1]["id"] == "run1"
    figures = reply["figures"]
    assert (figures["complete"], figures["totals"]["tasks"]) == (True, runs * 5_000 + 1)


def test_figures_of_more_tasks_than_can_be_added_up_say_so(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larder.why.runs.MAX_FIGURE_TASKS", 150)
    built = ("web", "build", Outcome.BUILT, 5)
    store(cloud, *(run(number, built, built) for number in range(110)))
    figures = ask(cloud, f"from={yesterday()}")["figures"]
    assert (figures["runs"], figures["complete"]) == (100, False)


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


def test_the_next_page_of_another_period_is_in_this_one(cloud: Cloud) -> None:
    """The default period begins later at midnight. DynamoDB refuses a start outside of the bounds."""
    store(cloud, run(started_at=clock.now() - timedelta(days=1)))
    query = f"from={yesterday()}&to={yesterday()}&before="
    old, new = f"{0:012x}%23a", f"{10**14 - 1:012x}%23a"
    assert ask(cloud, query + old)["runs"] == []
    assert [one["id"] for one in ask(cloud, query + new)["runs"]] == ["run0"]


def test_figures_of_more_runs_than_fit_say_so(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larder.why.runs.MAX_FIGURE_RUNS", 4)
    store(cloud, *(run(number, ("web", "build", Outcome.BUILT, 5)) for number in range(6)))
    figures = ask(cloud, f"from={yesterday()}&limit=2")["figures"]
    assert (figures["runs"], figures["complete"]) == (4, False)
    assert figures["tasks"][0]["runs"] == 4


def test_expired_runs_are_not_shown(cloud: Cloud) -> None:
    over = clock.now() - timedelta(seconds=5)
    assert repository.add(repository.item_of(cloud.team.id, run(), expires_at=over))
    assert ask(cloud)["runs"] == []


def test_runs_of_another_owner_are_not_shown(cloud: Cloud, personal: Sender) -> None:
    store(cloud, run())
    assert personal("GET", "/v1/runs").json["runs"] == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
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


def named(cloud: Cloud, one: Run) -> Any:
    return ask(cloud, f"id={one.id}&startedAt={to_ms(one.started_at)}")


def test_one_run_has_its_tasks_and_the_hashes_of_their_artifacts(cloud: Cloud) -> None:
    tasks = [
        RunTask("web", "build", Outcome.BUILT, 60_000),
        RunTask("api", "build", Outcome.REMOTE_HIT, 9_000),
        RunTask("web", "test", Outcome.FAILED, 500),
    ]
    one = run(0, tasks=tasks, totals=totals_of(tasks), hashes=[HASH, "another-client", HASH[::-1]])
    store(cloud, one, run(1))
    reply = named(cloud, one)
    (shown,) = reply["runs"]
    assert shown["ran"] == [
        {"package": "web", "task": "build", "outcome": "built", "ms": 60_000, "hash": HASH},
        {"package": "api", "task": "build", "outcome": "remoteHit", "ms": 9_000, "hash": None},
        {"package": "web", "task": "test", "outcome": "failed", "ms": 500, "hash": HASH[::-1]},
    ]
    listed = ask(cloud)["runs"][0]
    assert shown == {**listed, "ran": shown["ran"]}
    assert "ran" not in listed
    assert ("figures" in reply, reply["pagination"]) == (False, {"count": 1, "next": None})


def test_a_run_without_hashes_has_its_tasks(cloud: Cloud) -> None:
    one = run(0, ("web", "build", Outcome.BUILT, 60_000))
    store(cloud, one)
    assert [task["hash"] for task in named(cloud, one)["runs"][0]["ran"]] == [None]


def test_a_run_that_is_gone_is_an_empty_list(cloud: Cloud) -> None:
    assert named(cloud, run(0))["runs"] == []
    expired = run(1)
    item = repository.item_of(cloud.team.id, expired, expires_at=clock.now())
    assert repository.add(item)
    assert named(cloud, expired)["runs"] == []


@pytest.mark.parametrize(
    ("query", "field"), [("id=run0", "startedAt"), ("id=a%23b&startedAt=1", "id"), ("id=run0&startedAt=x", "startedAt")]
)
def test_400_for_half_a_name_of_a_run(cloud: Cloud, query: str, field: str) -> None:
    reply = Sender(cloud.token, query=f"slug=acme&{query}")("GET", "/v1/runs")
    assert reply.status == 400
    assert field in reply.json["error"]["message"]


@pytest.mark.parametrize("name", ["package", None])
def test_hashes_do_not_make_a_page_of_runs_larger(cloud: Cloud, name: str | None) -> None:
    """Those of the tasks with the most time are kept, as many as fit."""
    chance = random.Random(1)
    noise = [name or base64.b64encode(chance.randbytes(75)).decode() for _ in range(500)]
    tasks = [RunTask(text, "build", Outcome.BUILT, 1_000 - at) for at, text in enumerate(noise)]
    one = run(0, tasks=tasks, hashes=[chance.randbytes(8).hex() for _ in tasks])
    item = repository.item_of(cloud.team.id, one, expires_at=clock.now() + timedelta(days=1))
    assert len(item["kept"]) + len(item["hashes"]) <= repository.MAX_PACKED
    assert repository.add(item)
    shown = named(cloud, one)["runs"][0]["ran"]
    hashes = [task["hash"] for task in shown]
    known = [hash for hash in hashes if hash]
    assert hashes[: len(known)] == list(one.hashes)[: len(known)]
    assert len(known) >= (250 if name else 1)


def test_the_runs_and_figures_of_a_branch(cloud: Cloud) -> None:
    task = ("web", "build", Outcome.BUILT, 1_000)
    branches = ["main", "fix", "main", "fix", "main"]
    store(cloud, *(run(number, task, branch=branch) for number, branch in enumerate(branches)))
    found = ask(cloud, "branch=fix&limit=1")
    assert [one["branch"] for one in found["runs"]] == ["fix"]
    assert (found["figures"]["runs"], found["figures"]["totals"]["builtMs"]) == (2, 2_000)
    following = ask(cloud, f"branch=fix&limit=4&before={found['pagination']['next'].replace('#', '%23')}")
    assert [one["branch"] for one in following["runs"]] == ["fix"]
    assert ask(cloud, "branch=gone")["figures"]["runs"] == 0
    for wrong in ("", "x" * 256):
        reply = Sender(cloud.token, query=f"slug=acme&branch={wrong}")("GET", "/v1/runs")
        assert reply.status == 400


def test_the_figures_tell_repeated_builds_and_other_hashes_of_a_commit(cloud: Cloud) -> None:
    task, other = ("web", "build", Outcome.BUILT, 1_000), "a7627fd1d8a96c9a"
    at = {"sha": "1f0b", "ci": "GITHUB_ACTIONS"}
    store(cloud, *(run(n, task, hashes=[one], **at) for n, one in enumerate([HASH, HASH, other])))
    (found,) = ask(cloud)["figures"]["tasks"]
    assert {name: found[name] for name in ("hashes", "repeated", "repeatedMs", "drift", "driftMs")} == {
        "hashes": 2,
        "repeated": 1,
        "repeatedMs": 1_000,
        "drift": 2,
        "driftMs": 2_000,
    }


def test_a_run_that_did_not_use_the_cache_is_in_no_figures(cloud: Cloud) -> None:
    """What it built is no miss, and what it built first is not built again by the next run."""
    built = ("web", "build", Outcome.BUILT, 60_000)
    runs = [run(number, built, hashes=[HASH], used_cache=number == 0) for number in range(3)]
    store(cloud, *runs)
    reply = ask(cloud)
    assert [one["usedCache"] for one in reply["runs"]] == [True, False, False]
    figures = reply["figures"]
    assert (figures["runs"], figures["totals"]["built"], figures["again"]) == (1, 1, [])
    assert figures["unused"] == {"runs": 2, "builtMs": 120_000}
    assert [(one["built"], one["repeated"]) for one in figures["tasks"]] == [(1, 0)]
    (of_hash,) = Sender(cloud.token, query=f"slug=acme&hashes={HASH}")("GET", "/v1/tasks/history").json["hashes"]
    assert of_hash["built"] == 1
