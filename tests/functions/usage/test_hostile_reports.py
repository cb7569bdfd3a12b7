"""Reports that cost as much as a sender can make them, and the reports of others right after."""

from typing import Any

import pytest

from larder.why import service
from larder.why.differences import Differences
from larder.why.models import MAX_KEPT_TASKS, MAX_TASKS
from tests.larder.why.summaries import task_record, variables
from tests.processor_time import processor_time
from tests.requests import Cloud

from .reports import LIB, LIB_2, UI, UI_2, ask, causes, keep, later, report, send

MOST_CPU_S = 3.0


def names_and_patterns(hash: str, *, changed: bool) -> list[dict[str, Any]]:
    """20 tasks with 1,000 variables, and 1,000 patterns that match none of them."""
    letter = "b" if changed else "a"
    listed = tuple(f"{letter}{number:03}={'0' * 64}" for number in range(1_000))
    patterns = [f"*{letter}{number}*x" for number in range(999)]
    return [
        task_record(
            f"p{number}#build",
            f"{hash}{number:015x}",
            environmentVariables=variables(listed),
            resolvedTaskDefinition={"env": [*patterns, str(number)], "cache": True},
        )
        for number in range(20)
    ]


def chain(hash: str, *, changed: bool) -> list[dict[str, Any]]:
    digest = ("2" if changed else "1") * 40
    names = [f"p{number}#build" for number in range(MAX_TASKS)]
    return [
        task_record(name, f"{hash}{number:015x}", *names[number - 1 : number], inputs={"a.js": digest})
        for number, name in enumerate(names)
    ]


def apart(hash: str, *, changed: bool) -> list[dict[str, Any]]:
    del changed
    return [task_record(f"p{number}#build", f"{hash}{number:015x}") for number in range(MAX_TASKS)]


HOSTILE = {"patterns": names_and_patterns, "chain": chain, "files": apart, "global": apart}
FILES = 40_000


def body_of(sort: str, hash: str, *others: dict[str, Any], changed: bool, most: int = MAX_TASKS) -> dict[str, Any]:
    """The files of all tasks, or those of all hashes, are one list, of which every file differs."""
    body = report(*others, *HOSTILE[sort](hash, changed=changed)[:most])
    files = {f"src/{number}.js": hash * 12 for number in range(FILES)}
    if sort == "files":
        lists = body["inputs"]["files"]
        lists[-1] = {"directory": "p", "files": files}
        for own in body["inputs"]["tasks"][len(others) :]:
            own["files"] = len(lists) - 1
    elif sort == "global" and not others:
        body["inputs"]["global"]["files"] = files
    return body


@pytest.mark.slow
@pytest.mark.parametrize("sort", HOSTILE)
def test_a_hostile_report_is_answered_and_stored(cloud: Cloud, sort: str) -> None:
    keep(cloud)
    assert send(cloud.send, body_of(sort, "a", changed=False)).json["recorded"]
    with later():
        sent = body_of(sort, "b", changed=True)
        with processor_time() as spent:
            reply = send(cloud.send, sent)
        assert (reply.status, reply.json["recorded"]) == (200, True)
        assert spent.s < MOST_CPU_S
        runs = cloud.send("GET", "/v1/runs").json["runs"]
        assert sent["id"] in [run["id"] for run in runs]


@pytest.mark.slow
@pytest.mark.parametrize("sort", HOSTILE)
def test_after_a_hostile_report_others_are_explained(cloud: Cloud, sort: str) -> None:
    """It is the nearest baseline of the commit, and has the names of the tasks of others, too."""
    keep(cloud)
    first = report(LIB, UI)
    assert send(cloud.send, first).json["recorded"]
    with later():
        body = body_of(sort, "a", LIB, UI, changed=False, most=MAX_TASKS - 2)
        assert send(cloud.send, body).json["recorded"]
    with later(2):
        honest = report(LIB_2, UI_2)
        with processor_time() as spent:
            assert causes(ask(cloud.send, honest)) == [("file", "packages/lib/src/a.js")]
            assert causes(send(cloud.send, honest)) == [("file", "packages/lib/src/a.js")]
        assert spent.s < MOST_CPU_S


@pytest.mark.slow
def test_after_names_and_patterns_an_ordinary_report_of_the_same_tasks_is_stored(cloud: Cloud) -> None:
    keep(cloud)
    assert send(cloud.send, report(*names_and_patterns("a", changed=False))).json["recorded"]
    with later():
        ordinary = report(*apart("b", changed=True)[:20])
        with processor_time() as spent:
            asked, sent = ask(cloud.send, ordinary), send(cloud.send, ordinary)
        assert (asked.status, sent.status, sent.json["recorded"]) == (200, 200, True)
        assert spent.s < MOST_CPU_S


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for two small tasks, and not for twenty."""
    monkeypatch.setattr(service, "MAX_STEPS", 6_000)


@pytest.mark.usefixtures("few_steps")
def test_a_baseline_that_takes_too_many_steps_is_passed_over(cloud: Cloud) -> None:
    keep(cloud)
    first = report(LIB, sha="b" * 40)
    send(cloud.send, first)
    many = [task_record(f"p{number}#build", "c" * 16) for number in range(100)]
    with later():
        send(cloud.send, report(LIB, *many))
    with later(2):
        reply = ask(cloud.send, report(LIB_2, ancestors=("b" * 40,)))
        assert causes(reply) == [("file", "packages/lib/src/a.js")]
        assert reply.json["causes"]["baseline"]["id"] == first["id"]


@pytest.mark.usefixtures("few_steps")
def test_a_run_is_stored_although_no_step_is_left_to_explain_it(cloud: Cloud) -> None:
    keep(cloud)
    many = [task_record(f"p{number}#build", "c" * 16) for number in range(100)]
    send(cloud.send, report(*many))
    with later():
        reply = send(cloud.send, report(*many))
        assert (reply.json["recorded"], reply.json["missing"]) == (True, "no_time")


@pytest.mark.slow
def test_many_tasks_of_one_hash_are_looked_through_once(cloud: Cloud) -> None:
    """Ten runs of 500 tasks with one hash, and 100 tasks that were built with it again."""
    keep(cloud)
    tasks = [task_record(f"p{number}#build", "a" * 16) for number in range(MAX_KEPT_TASKS)]
    for number in range(10):
        with later(number):
            assert send(cloud.send, report(*tasks)).json["recorded"]
    with later(10):
        with processor_time() as spent:
            reply = send(cloud.send, report(*tasks))
        assert spent.s < MOST_CPU_S
        assert reply.json["causes"]["sameHashCount"] == MAX_KEPT_TASKS


def test_a_list_of_all_tasks_is_compared_once() -> None:
    old, new = {str(n): "1" for n in range(1_000)}, {str(n): "2" for n in range(1_000)}
    compared = Differences(3_000)
    for _ in range(1_000):
        assert len(compared.of_files(old, new).names) == 1_000
    assert compared.left >= 0
