"""POST /v1/causes, and POST /v1/runs with inputs"""

import gzip
import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.conditions import equals
from larder.tables import USAGE
from larder.teams.models import RunInputs
from larder.why import service
from larder.why.codes import SOME_VALUE, coded
from larder.why.inputs import report_of
from larder.why.runs import read_run
from larder.why.summaries import parse_summary
from tests.conftest import SetOption
from tests.functions.teams.people import outcome
from tests.larder.why.summaries import document, task_record, variables
from tests.requests import Cloud, Reply, Sender

from .reports import (
    BRANCH,
    GITHUB,
    LIB,
    LIB_2,
    MAIN,
    UI,
    UI_2,
    ask,
    causes,
    keep,
    later,
    lose_inputs,
    objects,
    report,
    send,
)
from .test_record_run import allow

SECRET = "hunter2-of-the-build"
DIGEST = hashlib.sha256(SECRET.encode()).hexdigest()


def secret_task(hash: str = "1" * 16, digest: str = DIGEST, **changes: Any) -> dict[str, Any]:
    named = (f"API_TOKEN={digest}",)
    listed = variables(named, (), named, env=["API_TOKEN"], passThroughEnv=["API_TOKEN"])
    return task_record(
        "lib#build", hash, command=f"deploy {SECRET}", cliArguments=[SECRET], environmentVariables=listed, **changes
    )


def items(cloud: Cloud) -> list[dict[str, Any]]:
    return [one for one in USAGE.scan(equals(owner=cloud.team.id)) if "kept" in one]


def test_a_report_is_explained_by_the_run_before(cloud: Cloud) -> None:
    keep(cloud)
    first = send(cloud.send, report(LIB, UI))
    assert (first.json["causes"], first.json["missing"]) == (None, "no_baseline")
    with later():
        again = send(cloud.send, report(LIB_2, UI_2, sha=BRANCH, ancestors=(MAIN,)))
    shown = again.json["causes"]
    assert causes(again) == [("file", "packages/lib/src/a.js")]
    assert again.json["missing"] is None
    assert (shown["tasks"], shown["changed"], shown["complete"]) == (2, 2, True)
    assert (shown["baseline"]["sha"], shown["baseline"]["chosen"]) == (MAIN, "ancestor")
    (cause,) = shown["causes"]
    assert (cause["direct"], cause["below"], cause["class"]) == (["lib#build"], 1, "code")


@pytest.mark.parametrize(
    ("sha", "dirty", "expected"),
    [
        (MAIN, False, ([{"hint": "line_endings", "values": []}], "setup", "line-endings")),
        (MAIN, True, ([], "setup", "source-file")),
        (BRANCH, False, ([], None, "source-file")),
    ],
)
def test_line_endings_explain_a_difference_from_a_clean_checkout_of_the_commit(
    cloud: Cloud, sha: str, dirty: bool, expected: object
) -> None:
    """git compares with the commit of the run. The baseline can have another one, or another change."""
    keep(cloud)
    send(cloud.send, report(LIB, sha=sha, dirty=dirty))
    hints = {"files": {"packages/lib/src/a.js": "line_endings"}, "packages": {}}
    with later():
        laptop = report(LIB_2, sha=MAIN, ancestors=(BRANCH,), dirty=True, hints=hints)
        (cause,) = send(cloud.send, laptop, ci=False).json["causes"]["causes"]
    assert (cause["hints"], cause["class"], cause["advice"]) == expected


def test_the_explanation_is_stored_with_the_run(cloud: Cloud) -> None:
    keep(cloud)
    send(cloud.send, report(LIB))
    with later():
        body = report(LIB_2)
        reply = send(cloud.send, body)
        place = f"{body['execution']['startTime']:012x}#{body['id']}"
        run = read_run(cloud.team.id, place, now=clock.now())
    assert run is not None
    assert run.explanation == reply.json["causes"]
    assert (run.trusted, run.scope, run.has_inputs) == (True, None, True)


def test_a_dry_run_is_compared_with_the_newest_trusted_run(cloud: Cloud) -> None:
    keep(cloud)
    send(cloud.send, report(LIB, UI))
    with later():
        send(cloud.send, report(LIB_2, UI_2, sha=BRANCH, branch="feature"), ci=False)
    dry = report_of(parse_summary(document(LIB_2, UI_2, id="", execution={})))
    dry["tasks"] = [{**task, "execution": None} for task in dry["tasks"]]
    with later(2):
        before = len(items(cloud)), len(objects())
        reply = ask(cloud.send, dry, ci=False)
        assert causes(reply) == [("file", "packages/lib/src/a.js")]
        assert (len(items(cloud)), len(objects())) == before, "nothing is stored"
        last = ask(cloud.send, dry, ci=False, against="last")
        assert (last.json["causes"]["changed"], last.json["causes"]["baseline"]["chosen"]) == (0, "asked")
        assert ask(cloud.send, dry, ci=False, against="main").json["causes"]["changed"] == 2
        assert ask(cloud.send, dry, ci=False, against="ci").json["causes"]["changed"] == 2
        assert ask(cloud.send, dry, against="nothing").json["missing"] == "no_baseline"


def test_the_nearest_ancestor_comes_before_newer_runs(cloud: Cloud) -> None:
    keep(cloud)
    send(cloud.send, report(LIB, sha="1" * 40))
    with later():
        send(cloud.send, report(LIB_2, sha="2" * 40))
    with later(2):
        body = report(LIB, sha="3" * 40, ancestors=("4" * 40, "1" * 40, "2" * 40))
        shown = ask(cloud.send, body).json["causes"]["baseline"]
        assert (shown["sha"], shown["chosen"]) == ("1" * 40, "ancestor")
        body = report(LIB, sha="3" * 40)
        shown = ask(cloud.send, body).json["causes"]["baseline"]
        assert (shown["sha"], shown["chosen"]) == ("1" * 40, "hashes")
        other = report(LIB | {"hash": "9" * 16}, sha="3" * 40)
        shown = ask(cloud.send, other).json["causes"]["baseline"]
        assert (shown["sha"], shown["chosen"]) == ("2" * 40, "newest")


def test_a_task_that_the_baseline_lacks_comes_from_another_run(cloud: Cloud) -> None:
    keep(cloud)
    send(cloud.send, report(UI, sha="1" * 40))
    with later():
        send(cloud.send, report(LIB, sha="2" * 40))
    with later(2):
        shown = ask(cloud.send, report(LIB, UI_2, sha="3" * 40)).json["causes"]
        assert (shown["new"], shown["changed"]) == ([], 1)
        other = {"engines": {"node": "24"}}
        shown = ask(cloud.send, report(LIB, UI_2, sha="3" * 40, shared=other)).json["causes"]
        assert shown["new"] == []
    with later(3):
        send(cloud.send, report(LIB, sha="4" * 40, shared=other))
    with later(4):
        body = report(LIB, UI_2, sha="5" * 40, ancestors=("4" * 40,), shared=other)
        shown = ask(cloud.send, body).json["causes"]
        assert shown["new"] == ["ui#build"], "the other run has other global inputs"


@pytest.mark.parametrize("explain", [ask, send])
def test_the_next_candidate_is_used_if_an_object_is_gone(cloud: Cloud, explain: Callable[[Sender, Any], Reply]) -> None:
    keep(cloud)
    send(cloud.send, report(LIB, sha="1" * 40))
    with later():
        send(cloud.send, report(LIB_2, sha="2" * 40))
        lose_inputs(cloud, "2" * 40)
    with later(2):
        body = report(LIB_2, sha="3" * 40, ancestors=("2" * 40, "1" * 40))
        assert explain(cloud.send, body).json["causes"]["baseline"]["sha"] == "1" * 40


def test_a_run_that_is_reported_twice_has_one_object(cloud: Cloud) -> None:
    keep(cloud)
    body = report(LIB)
    assert send(cloud.send, body).json["recorded"]
    assert not send(cloud.send, body).json["recorded"]
    assert len(objects()) == 1


def test_deleted_runs_leave_no_object(cloud: Cloud) -> None:
    keep(cloud)
    body = report(LIB)
    send(cloud.send, body)
    send(cloud.send, report(UI))
    started_at = body["execution"]["startTime"]
    query = f"id={body['id']}&startedAt={started_at}"
    assert cloud.send("DELETE", f"/v1/runs?{query}").json["deleted"] == 1
    assert len(objects()) == 1
    assert cloud.send("DELETE", f"/v1/runs?reporter={cloud.key.id}").json["deleted"] == 1
    assert objects() == {}


def test_compressed_reports(cloud: Cloud) -> None:
    keep(cloud)
    body = gzip.compress(json.dumps(report(LIB)).encode())
    headers = {**GITHUB, "content-encoding": "gzip", "content-type": "application/json"}
    reply = cloud.send("POST", "/v1/runs", body=body, headers=headers)
    assert (reply.status, reply.json["missing"]) == (200, "no_baseline")
    unpacked = json.dumps(report(LIB)).encode()
    assert cloud.send("POST", "/v1/runs", body=unpacked, headers=headers).status == 200
    damaged = cloud.send("POST", "/v1/runs", body=body[:-20], headers=headers)
    assert outcome(damaged) == (400, "bad_request")
    plain = cloud.send("POST", "/v1/runs", body=b"\xff{}", headers=headers)
    assert outcome(plain) == (400, "bad_request")


@pytest.mark.parametrize("body", [b"[" * 3_000_001, b"," * 3_000_001, b"{" * 3_000_001])
def test_a_report_with_too_many_values_is_refused(cloud: Cloud, body: bytes) -> None:
    packed = gzip.compress(body)
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    reply = cloud.send("POST", "/v1/runs", body=packed, headers=headers)
    assert outcome(reply) == (413, "run_too_large")


def test_a_compressed_report_of_more_than_4_mb_is_refused(cloud: Cloud) -> None:
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    body = b"\x1f\x8b" + b"\xff" * 4_000_000
    assert outcome(cloud.send("POST", "/v1/runs", body=body, headers=headers)) == (413, "run_too_large")


def test_further_inputs_of_a_day_are_not_kept(cloud: Cloud, option: SetOption) -> None:
    allow(option, service.LEAST_COUNTED)
    keep(cloud)
    assert send(cloud.send, report(LIB)).json["missing"] == "no_baseline"
    reply = send(cloud.send, report(LIB_2))
    assert (reply.json["recorded"], reply.json["missing"]) == (True, "too_many")
    assert len(objects()) == 1


def test_an_explanation_that_takes_too_long_is_left_out(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(cloud)
    send(cloud.send, report(LIB))
    monkeypatch.setattr(service, "MAX_TIME", timedelta(0))
    with later():
        reply = send(cloud.send, report(LIB_2))
    assert (reply.json["recorded"], reply.json["causes"]) == (True, None)
    assert reply.json["missing"] == "no_time"
    assert len(objects()) == 2


# Privacy ---------------------------------------------------------------------------------------------


def stored_text(cloud: Cloud) -> str:
    unpacked = [gzip.decompress(content).decode() for content in objects().values()]
    return "".join([*unpacked, json.dumps(items(cloud), default=str)])


@pytest.mark.parametrize("kept", [RunInputs.VALUES, RunInputs.NAMES])
def test_a_secret_is_not_kept_not_logged_and_not_returned(
    cloud: Cloud, kept: RunInputs, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(cloud, kept)
    shared = {"environmentVariables": variables((f"GLOBAL={DIGEST}",), env=["GLOBAL"])}
    capsys.readouterr()
    bodies = [report(secret_task(), shared=shared)]
    replies = [send(cloud.send, bodies[0])]
    with later():
        bodies.append(report(secret_task("2" * 16, "0" * 64), shared=shared))
        replies += [send(cloud.send, bodies[1]), ask(cloud.send, bodies[1])]
    assert SECRET not in json.dumps(bodies)
    seen = stored_text(cloud) + capsys.readouterr().out
    seen += "".join(reply.body.decode() for reply in replies)
    assert "API_TOKEN" in seen
    for secret in (SECRET, DIGEST, DIGEST[:12]):
        assert secret not in seen


def test_names_keep_no_codes_of_values(cloud: Cloud) -> None:
    keep(cloud, RunInputs.NAMES)
    send(cloud.send, report(secret_task()))
    (content,) = objects().values()
    (task,) = json.loads(gzip.decompress(content))["inputs"]["tasks"]
    assert task["env"] == {"API_TOKEN": "set"}
    with later():
        reply = ask(cloud.send, report(secret_task("2" * 16, "0" * 64)))
        assert causes(reply) == [("value", "API_TOKEN")], "the value changed, and nobody kept it"
        assert causes(ask(cloud.send, report(secret_task("2" * 16, "")))) == [("env", "API_TOKEN")]


def test_nothing_is_kept_if_inputs_are_off(cloud: Cloud) -> None:
    keep(cloud, RunInputs.OFF)
    reply = send(cloud.send, report(secret_task()))
    assert (reply.json["causes"], reply.json["missing"]) == (None, "inputs_off")
    assert ask(cloud.send, report(LIB)).json == {"causes": None, "missing": "inputs_off"}
    assert objects() == {}
    assert "API_TOKEN" not in stored_text(cloud)


def test_a_run_that_did_not_use_the_cache_has_no_misses(cloud: Cloud) -> None:
    """It can be a baseline, and its builds are no reason why a later run should have had a hit."""
    keep(cloud)
    unused = send(cloud.send, report(LIB, usedCache=False))
    assert (unused.json["causes"], unused.json["missing"]) == (None, "cache_unused")
    (run,) = cloud.send("GET", "/v1/runs").json["runs"]
    path = f"/v1/runs/{run['id']}?startedAt={run['startedAt']}"
    assert cloud.send("GET", path).json["missing"] == "cache_unused"
    with later():
        assert send(cloud.send, report(LIB)).json["causes"]["sameHash"] == []
        assert causes(send(cloud.send, report(LIB_2))) == [("file", "packages/lib/src/a.js")]
    plain = {**report(LIB, usedCache=False), "inputs": None}
    assert send(cloud.send, plain).json["missing"] == "cache_unused"


def test_values_are_compared_with_names_only_if_both_runs_have_codes(cloud: Cloud) -> None:
    keep(cloud, RunInputs.NAMES)
    send(cloud.send, report(secret_task()))
    keep(cloud, RunInputs.VALUES)
    with later():
        reply = ask(cloud.send, report(secret_task("2" * 16)))
        assert causes(reply) == [("value", "API_TOKEN")]


@pytest.mark.parametrize("kept", [RunInputs.NAMES, RunInputs.VALUES])
def test_a_report_with_names_alone_is_compared_by_names(cloud: Cloud, kept: RunInputs) -> None:
    """CI sends names by default, and `larder why` turbo's digests of values."""
    keep(cloud, kept)
    send(cloud.send, report(secret_task(digest=SOME_VALUE)))
    with later():
        assert causes(ask(cloud.send, report(secret_task("2" * 16)))) == [("value", "API_TOKEN")]
        assert causes(ask(cloud.send, report(secret_task("2" * 16, digest="")))) == [("env", "API_TOKEN")]


def test_equal_values_have_other_codes_in_another_team(cloud: Cloud) -> None:
    body = report(secret_task())
    keys = ["1" * 64, "2" * 64]
    first, second = (coded(body, key=key, kept=RunInputs.VALUES) for key in keys)
    codes = [one["inputs"]["tasks"][0] for one in (first, second)]
    for name in ("script", "arguments"):
        assert codes[0][name] != codes[1][name]
    assert codes[0]["env"] != codes[1]["env"]
    assert coded(body, key=keys[0], kept=RunInputs.VALUES) == first


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("inputs", "tasks", 0, "env"), {"TOKEN": SECRET}),
        (("inputs", "global", "env"), {"TOKEN": SECRET}),
        (("inputs", "tasks", 0, "script"), SECRET),
        (("inputs", "tasks", 0, "arguments"), SECRET),
        (("inputs", "global", "engines"), SECRET),
        (("inputs", "files", 0, "files"), {"a": SECRET}),
        (("inputs", "tasks", 0, "files"), 7),
        (("inputs", "tasks", 0, "definition"), -1),
        (("hints", "files"), {"a": SECRET}),
        (("ancestors",), [SECRET]),
    ],
)
def test_values_in_place_of_digests_are_refused(cloud: Cloud, place: tuple[str | int, ...], value: object) -> None:
    keep(cloud)
    body = report(LIB)
    *parents, last = place
    at: Any = body
    for step in parents:
        at = at[step]
    at[last] = value
    for reply in (send(cloud.send, body), ask(cloud.send, body)):
        assert outcome(reply) == (400, "bad_request"), place
        assert SECRET not in reply.message
    assert objects() == {}


def test_the_61st_comparison_of_an_hour_is_refused(cloud: Cloud) -> None:
    keep(cloud)
    body = report(LIB)
    assert [ask(cloud.send, body).status for _ in range(60)] == [200] * 60
    assert outcome(ask(cloud.send, body)) == (429, "too_many_requests")
    assert send(cloud.send, body).status == 200, "reports are counted apart"
