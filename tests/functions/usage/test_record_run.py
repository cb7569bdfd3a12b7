"""POST /v1/runs"""

import copy
import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.clock import to_ms
from larder.conditions import equals
from larder.rate_limits.reports import ALL_SHARE, OWNERS_SHARE
from larder.settings import settings
from larder.tables import USAGE
from larder.why import repository
from tests.catalogue import valid
from tests.conftest import SetOption
from tests.requests import Cloud, Reply, Sender

SUMMARY = valid("POST /v1/runs").json


def summary(path: str = "", value: object = None, **changed: Any) -> Any:
    """The sample with a value at a path such as `tasks.0.hash`. None removes it."""
    body = copy.deepcopy(SUMMARY) | changed
    if path:
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        at = body
        for part in parents:
            at = at[part]
        if value is None:
            del at[last]
        else:
            at[last] = value
    return body


def report(send: Sender, body: Any = SUMMARY) -> Reply:
    return send("POST", "/v1/runs", json_body=body)


def task(number: int = 0, **changed: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SUMMARY["tasks"][0]), "package": f"p{number}", **changed}


def test_a_run_is_stored_once(cloud: Cloud) -> None:
    first = report(cloud.send)
    counted = {"id": SUMMARY["id"], "tasks": 1, "causes": None, "missing": "no_inputs"}
    assert (first.status, first.json) == (200, {**counted, "recorded": True})
    again = report(cloud.send, summary("scm.branch", "other"))
    assert again.json == {**counted, "recorded": False}
    (run,) = cloud.send("GET", "/v1/runs").json["runs"]
    assert run["branch"] == "main"


def test_a_run_of_a_commit_without_a_branch(cloud: Cloud) -> None:
    """As turbo writes it in a checkout of a commit, if it does not know the CI."""
    assert report(cloud.send, summary("scm", {"branch": "", "sha": ""})).status == 200
    (run,) = cloud.send("GET", "/v1/runs").json["runs"]
    assert (run["branch"], run["sha"]) == (None, None)


def test_the_hashes_of_its_tasks_are_stored_with_the_most_time_first(cloud: Cloud) -> None:
    slow = {"startTime": SUMMARY["execution"]["startTime"], "endTime": 10**13, "exitCode": 0}
    tasks = [
        task(1, hash="1" * 16, cache={"status": "MISS"}),
        task(2, hash="2" * 16, execution=None),
        task(3, hash="3" * 16, cache={"status": "MISS"}, execution=slow),
    ]
    assert report(cloud.send, summary(tasks=tasks)).status == 200
    started_at = SUMMARY["execution"]["startTime"]
    send = cloud.send.asking(id=SUMMARY["id"], startedAt=str(started_at))
    (run,) = send("GET", "/v1/runs").json["runs"]
    assert [one["hash"] for one in run["ran"]] == ["3" * 16, "1" * 16]


def test_nothing_else_of_the_file_is_stored(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "hunter2-of-the-build"
    body = summary(
        user=secret,
        envMode=secret,
        globalCacheInputs={"environmentVariables": {"specified": {"env": [secret]}}},
        execution={**SUMMARY["execution"], "command": f"turbo run build -- --token={secret}"},
        scm={**SUMMARY["scm"], "type": secret},
        tasks=[
            task(
                command=secret,
                cliArguments=[secret],
                inputs={secret: secret},
                environmentVariables={"configured": [f"TOKEN={secret}"]},
                logFile=secret,
            )
        ],
    )
    capsys.readouterr()
    assert report(cloud.send, body).status == 200
    assert secret not in capsys.readouterr().out
    (run,) = repository.read_page(
        cloud.team.id, clock.from_ms(0), clock.now(), before=None, limit=10, now=clock.now()
    ).runs
    assert secret not in repr(run)
    (item,) = (item for item in USAGE.scan(equals(owner=cloud.team.id)) if "kept" in item)
    assert secret not in json.dumps(item, default=str)


@pytest.mark.parametrize(("sent", "shown"), [({}, "turbo"), ({"client": "moon"}, "moon")])
def test_the_client_is_turbo_unless_the_report_names_another(cloud: Cloud, sent: dict[str, str], shown: str) -> None:
    assert report(cloud.send, summary(**sent)).status == 200
    (run,) = cloud.send("GET", "/v1/runs").json["runs"]
    assert run["client"] == shown


def test_it_expires(cloud: Cloud, option: SetOption) -> None:
    option("run_retention_days", "7")
    report(cloud.send)
    (item,) = (item for item in USAGE.scan(equals(owner=cloud.team.id)) if "kept" in item)
    left = item["expires_at"] - clock.now().timestamp()
    assert timedelta(days=7, seconds=-60).total_seconds() < left <= 7 * 86_400


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (summary("tasks.0.package", "\ud800"), "tasks.0.package: "),
        (
            summary("execution.startTime", to_ms(clock.now() + timedelta(days=1))),
            "execution.startTime: must not be in the future",
        ),
        (
            summary("execution.startTime", to_ms(clock.now() - timedelta(days=31))),
            "execution.startTime: must be within the last 30 days",
        ),
    ],
)
def test_400_names_the_field_and_the_rule(cloud: Cloud, body: Any, message: str) -> None:
    reply = report(cloud.send, body)
    assert (reply.status, reply.code) == (400, "bad_request")
    assert reply.message.startswith(message)


@pytest.mark.parametrize(("minutes", "status"), [(4, 200), (6, 400)])
def test_a_run_starts_at_most_five_minutes_ahead(cloud: Cloud, minutes: int, status: int) -> None:
    started_ms = to_ms(clock.now() + timedelta(minutes=minutes))
    assert report(cloud.send, summary("execution.startTime", started_ms)).status == status


def test_a_run_takes_little_room_whatever_its_names(cloud: Cloud) -> None:
    tasks = [task(number, package=_noise(number)[:127] * 2, task="x" * 255) for number in range(5_000)]
    assert report(cloud.send, summary(tasks=tasks)).json["tasks"] == 5_000
    (item,) = (item for item in USAGE.scan(equals(owner=cloud.team.id)) if "kept" in item)
    assert len(json.dumps(item, default=str)) < 14_000
    (figures,) = [cloud.send("GET", "/v1/runs").json["figures"]]
    assert 50 < figures["count"] < figures["totals"]["tasks"] == 5_000
    assert {len(one["package"] + one["task"]) for one in figures["tasks"]} == {200}


def _noise(number: int) -> str:
    return hashlib.sha512(str(number).encode()).hexdigest()


def test_400_for_an_unknown_parameter(cloud: Cloud) -> None:
    reply = cloud.send("POST", "/v1/runs?branch=main", json_body=SUMMARY)
    assert (reply.status, reply.message.partition(":")[0]) == (400, "branch")


def test_401_before_any_other_error(cloud: Cloud) -> None:
    assert Sender(None)("POST", "/v1/runs", body=b"{").status == 401


def test_reports_with_many_long_names_change_nothing_for_others(cloud: Cloud) -> None:
    tasks = [task(number, task=f"{number:0>255}", package="x" * 255) for number in range(5_000)]
    for number in range(6):
        assert report(cloud.send, summary(id=f"hostile{number}", tasks=tasks)).status == 200
    assert report(cloud.send).status == 200
    reply = cloud.send("GET", "/v1/runs")
    assert len(reply.body) < 500_000
    (usual,) = (run for run in reply.json["runs"] if run["id"] == SUMMARY["id"])
    assert (usual["names"], usual["tasks"]) == (["build"], 1)


def allow(option: SetOption, writers_bytes: int) -> None:
    """In a day, for one trusted writer. The owner has twice as much, and all owners eight times."""
    option("http_rate_limit_enabled", "true")
    days = settings().run_retention_days
    option("max_stored_bytes", str(writers_bytes * 2 * OWNERS_SHARE * ALL_SHARE * days))


def test_429_for_too_many_bytes_of_one_person_with_any_key(cloud: Cloud, option: SetOption) -> None:
    """A run takes some 5 kB with the space for its explanation."""
    allow(option, 8_000)
    keys = [create_key(NewKey(user_id=cloud.user.id), now=clock.now())[1] for _ in range(3)]
    assert [report(Sender(key, slug="acme")).status for key in keys] == [200, 200, 429]


def test_429_for_too_many_bytes_of_one_team(cloud: Cloud, option: SetOption) -> None:
    allow(option, 4_000)
    new = NewKey(user_id=None, team_id=cloud.team.id)
    keys = [create_key(new, now=clock.now())[1] for _ in range(3)]
    assert [report(Sender(key)).status for key in keys] == [200, 200, 429]


def test_429_for_too_many_bytes_of_a_persons_own_cache(cloud: Cloud, option: SetOption) -> None:
    """Also with many keys. A team of the same person has an allowance of its own."""
    allow(option, 4_000)
    keys = [create_key(NewKey(user_id=cloud.user.id), now=clock.now())[1] for _ in range(3)]
    assert [report(Sender(key)).status for key in keys] == [200, 200, 429]
    assert report(cloud.send).status == 200
