"""GET /v1/tasks/history"""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.clock import to_ms
from larder.why.models import MAX_NAME, Outcome
from tests.functions.usage.test_get_run import explanation
from tests.functions.usage.test_list_runs import run, store
from tests.requests import Cloud, Sender

FIRST, SECOND, OTHER = "08e4547d5347b63f", "a7627fd1d8a96c9a", "1111111111111111"


def ask(cloud: Cloud, query: str, *, status: int = 200) -> Any:
    reply = Sender(cloud.token, query=f"slug=acme&{query}")("GET", "/v1/tasks/history")
    assert reply.status == status, reply.body
    return reply.json


def store_three(cloud: Cloud) -> None:
    store(
        cloud,
        run(2, ("web", "build", Outcome.BUILT, 4_000), hashes=[FIRST], sha="1f0b", branch="main"),
        run(1, ("web", "build", Outcome.REMOTE_HIT, 4_000), hashes=[FIRST], ci="GITHUB_ACTIONS"),
        run(
            0,
            ("web", "build", Outcome.FAILED, 3_000),
            ("ui", "build", Outcome.BUILT, 2_000),
            hashes=[SECOND, OTHER],
            branch="fix",
        ),
    )


@pytest.mark.usefixtures("later")
def test_each_hash_of_a_task_with_what_became_of_it(cloud: Cloud) -> None:
    store_three(cloud)
    stored = cloud.send("PUT", f"/v8/artifacts/{FIRST}", body=b"output")
    assert stored.status == 202
    reply = ask(cloud, "package=web&task=build")
    assert reply["complete"] is True
    newest, oldest = reply["hashes"]
    assert (newest["hash"], newest["built"], newest["hits"], newest["stored"]) == (SECOND, 1, 0, False)
    assert newest["branches"] == ["fix"]
    assert (oldest.pop("builtIn")["id"], oldest.pop("hitIn")["id"], newest["hitIn"]) == ("run2", "run1", None)
    assert oldest.pop("lastAt") - oldest.pop("firstAt") == 60_000
    assert oldest == {
        "package": "web",
        "task": "build",
        "hash": FIRST,
        "built": 1,
        "hits": 1,
        "builtMs": 4_000,
        "branches": ["main"],
        "shas": ["1f0b"],
        "ci": ["GITHUB_ACTIONS", None],
        "stored": True,
        "cause": None,
        "reason": None,
    }


def test_why_a_task_got_a_hash_and_was_built_again_with_it(cloud: Cloud) -> None:
    task = ("web", "build", Outcome.BUILT, 1)
    again: Any = {"task": "web#build", "hash": FIRST, "reason": "evicted", "certain": True}
    explained = explanation(causes=[], sameHash=[{**again, "at": None, "evidence": []}])
    store(
        cloud,
        run(1, task, hashes=[FIRST], explanation=explanation()),
        run(0, task, hashes=[FIRST], explanation=explained),
    )
    (found,) = ask(cloud, "package=web&task=build")["hashes"]
    assert (found["cause"]["subject"], found["reason"]) == ("NEXT_PUBLIC_SHA", "evicted")


def test_the_task_of_each_hash(cloud: Cloud) -> None:
    store_three(cloud)
    reply = ask(cloud, f"hashes={OTHER},{FIRST},{'2' * 16}")
    named = {one["hash"]: (one["package"], one["task"]) for one in reply["hashes"]}
    assert named == {OTHER: ("ui", "build"), FIRST: ("web", "build")}


def test_a_task_without_a_package_and_one_that_no_run_had(cloud: Cloud) -> None:
    store(cloud, run(0, ("", "build", Outcome.BUILT, 1), hashes=[FIRST]))
    assert [one["hash"] for one in ask(cloud, "task=build")["hashes"]] == [FIRST]
    assert ask(cloud, "package=web&task=build") == {"complete": True, "hashes": []}


def test_only_the_runs_that_are_kept_and_the_newest_hundred_hashes(cloud: Cloud) -> None:
    task = ("web", "build", Outcome.BUILT, 1)
    store(cloud, *(run(number, task, hashes=[f"{number + 1:016x}"]) for number in range(101)))
    old = clock.now() - timedelta(days=400)
    store(cloud, run(200, task, hashes=[FIRST], started_at=old))
    reply = ask(cloud, "package=web&task=build")
    assert [one["hash"] for one in reply["hashes"]] == [f"{n + 1:016x}" for n in range(100)]
    assert reply["hashes"][0]["lastAt"] > to_ms(old)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "package=web",
        f"task=build&hashes={FIRST}",
        "hashes=08E4547D5347B63F",
        "hashes=08e4",
        f"hashes={FIRST},",
        "hashes=" + ",".join(f"{number:016x}" for number in range(101)),
        f"task={'x' * (MAX_NAME + 1)}",
        f"task=build&package={'x' * (MAX_NAME + 1)}",
    ],
)
def test_400(cloud: Cloud, query: str) -> None:
    assert ask(cloud, query, status=400)["error"]["code"] == "bad_request"
