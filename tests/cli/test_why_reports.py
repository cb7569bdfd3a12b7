"""`larder why` with a deployment: what it sends, shows and refuses. tests/e2e/test_why_reports.py runs turbo."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from larder.why.comparison import compare
from larder.why.inputs import MAX_HINTS, hints_of, report_of, summary_of
from larder.why.records import record
from larder.why.summaries import parse_summary
from tests.larder.why.summaries import document, task_record

from .conftest import Larder
from .git_repository import LIB, UI, Repository, blob, fresh
from .stub import Asked, Stub

SECRET = hashlib.sha256(b"production").hexdigest()
TOKEN = "larder_" + "k" * 64
RUN = "36BZkPZ2WvAw4rLnTqMzCx0Ed8s"


@pytest.fixture
def repository(tmp_path: Path, own_environment: pytest.MonkeyPatch) -> Repository:
    return fresh(tmp_path, own_environment)


@pytest.fixture
def stub(repository: Repository, own_environment: pytest.MonkeyPatch) -> Iterator[Stub]:
    """A deployment that turbo uses. A dry run prints dry.json."""
    for name in ("CI", "XDG_CONFIG_HOME", "APPDATA"):
        own_environment.delenv(name, raising=False)
    own_environment.setenv("TURBO_TOKEN", TOKEN)
    own_environment.setenv("TURBO_TEAM", "acme")
    turbo = repository.root / "node_modules" / ".bin" / "turbo"
    repository.write("node_modules/.bin/turbo", "#!/bin/sh\ncat dry.json\n")
    turbo.chmod(0o755)
    dry_run(repository, LIB | {"hash": "l2", "inputs": LIB["inputs"] | {"src/a.js": "3" * 40}}, UI)
    with Stub().running() as made:
        own_environment.setenv("TURBO_API", made.url)
        made.says("POST /v1/causes", 200, {"causes": causes_of(repository), "missing": None})
        yield made


def dry_run(repository: Repository, *tasks: dict[str, Any]) -> None:
    scm = {"sha": repository.git("rev-parse", "HEAD"), "branch": "main"}
    repository.write("dry.json", document(*tasks, scm=scm, execution=None))


def causes_of(repository: Repository, **changes: Any) -> dict[str, Any]:
    """What a deployment makes of the dry run and a run of main."""
    base, run = (
        summary_of(report_of(parse_summary(one)))
        for one in (document(LIB, UI), json.loads((repository.root / "dry.json").read_text()))
    )
    return {**record(compare(base, run), chosen="ancestor"), **changes}


def only(stub: Stub) -> Asked:
    (asked,) = stub.asked
    return asked


def test_a_dry_run_is_compared_by_the_deployment(repository: Repository, stub: Stub) -> None:
    shown = Larder()("why", "build").stdout.splitlines()
    assert shown[0] == (
        "Compared 2 tasks with run 36BZkPZ2 of main at aaaaaaaa (the nearest commit): 1 with the same hash, "
        "1 with another."
    )
    assert shown[2].startswith("1. file: packages/lib/src/a.js changed -> 1 task")
    asked = only(stub)
    assert (asked.method, asked.path) == ("POST", "/v1/causes?slug=acme")
    assert asked.headers["Authorization"] == f"Bearer {TOKEN}"
    report = json.loads(gzip.decompress(asked.body))
    assert summary_of(report).tasks.keys() == {"lib#build", "ui#build"}


def test_json_and_markdown_are_those_of_two_files(repository: Repository, stub: Stub) -> None:
    assert Larder().json("why", "build") == causes_of(repository)
    base = repository.write("base.json", document(LIB, UI))
    run = repository.write("run.json", json.loads((repository.root / "dry.json").read_text()))
    for option in ("--markdown", "--redact"):
        _, *ours = Larder()("why", "build", option).stdout.splitlines()
        _, *theirs = Larder()("why", base, run, option).stdout.splitlines()
        assert ours
        assert [line.replace(" (not committed)", "").replace("| setup |", "|  |") for line in theirs] == ours


def test_the_report_says_what_git_knows(repository: Repository, stub: Stub) -> None:
    first = repository.git("rev-parse", "HEAD")
    second = repository.commit()
    repository.write("packages/lib/src/new.js", "new\n")
    repository.write("packages/lib/generated/x.js", "x\n")
    repository.write("packages/lib/src/a.js", "edited\n")
    inputs = {"src/a.js": blob(b"edited\n"), "src/new.js": blob(b"new\n"), "generated/x.js": blob(b"x\n")}
    dry_run(repository, LIB | {"inputs": inputs})
    Larder()("why", "build")
    report = json.loads(gzip.decompress(only(stub).body))
    assert (report["scm"]["sha"], report["ancestors"], report["dirty"]) == (second, [first], True)
    assert report["hints"]["files"] == {
        "packages/lib/src/a.js": "uncommitted",
        "packages/lib/src/new.js": "untracked",
        "packages/lib/generated/x.js": "ignored",
    }


def test_without_git_the_report_has_no_hints(repository: Repository, stub: Stub) -> None:
    (repository.root / ".git").rename(repository.root / "git")
    Larder()("why", "build")
    report = json.loads(gzip.decompress(only(stub).body))
    assert (report["ancestors"], report["dirty"], report["hints"]["files"]) == ([], None, {})


def test_no_value_and_no_command_is_sent(repository: Repository, stub: Stub) -> None:
    listed = {"configured": [], "inferred": [], "passthrough": [f"TOKEN={SECRET}"], "specified": {}}
    task = LIB | {"command": "deploy hunter2", "cliArguments": ["hunter2"], "environmentVariables": listed}
    dry_run(repository, task)
    Larder()("why", "build")
    sent = gzip.decompress(only(stub).body).decode()
    assert "hunter2" not in sent
    assert SECRET not in sent


def compares(stub: Stub, base: dict[str, Any]) -> None:
    """The deployment compares reports with this summary, as a deployment does."""
    stored = summary_of(report_of(parse_summary(base)))

    def causes(body: bytes) -> dict[str, Any]:
        report = json.loads(gzip.decompress(body))
        found = compare(stored, summary_of(report), hints_of(report))
        return {"causes": record(found, chosen="ancestor"), "missing": None}

    stub.says("POST /v1/causes", 200, causes)


def run_of(sha: str, hash: str, **inputs: bytes) -> dict[str, Any]:
    """A summary of a run of lib at a commit, whose inputs have these contents: `a` is `src/a.js`."""
    digests = {f"src/{name}.js": blob(content) for name, content in inputs.items()}
    return document(LIB | {"hash": hash, "inputs": digests}, scm={"sha": sha, "branch": "main"})


def causes_here(repository: Repository, run: dict[str, Any]) -> list[dict[str, Any]]:
    repository.write("dry.json", run | {"execution": None})
    found: list[dict[str, Any]] = Larder().json("why", "build")["causes"]
    return found


def test_git_completes_classes_and_commits(repository: Repository, stub: Stub) -> None:
    repository.write("packages/lib/src/gone.js", "gone\n")
    base = repository.commit()
    (repository.root / "packages/lib/src/gone.js").unlink()
    for name in ("a", "b", "c"):
        repository.write(f"packages/lib/src/{name}.js", f"{name} 2\n")
    head = repository.commit()
    repository.write("packages/lib/src/new.js", "new\n")
    repository.write("packages/lib/src/a.js", "a 3\n")
    compares(stub, run_of(base, "l1", a=b"one\n", gone=b"gone\n"))
    run = run_of(head, "l2", a=b"a 3\n", b=b"b 2\n", c=b"c 2\n", new=b"new\n")
    found = {
        one["subject"].rpartition("/")[2]: (one["how"], one["more"], one["class"], one["commit"])
        for one in causes_here(repository, run)
    }
    short = repository.git("rev-parse", "--short", "HEAD")
    assert found == {
        "a.js": ("changed", 0, "code", None),
        "b.js": ("added", 1, "code", short),
        "gone.js": ("removed", 0, "code", short),
        "new.js": ("added", 0, "setup", None),
    }
    assert len(stub.asked) == 1


def test_a_cause_of_files_that_git_does_not_know_stays_as_it_is(repository: Repository, stub: Stub) -> None:
    """The baseline had a file that is not in its commit. Whether it is one of two changed ones is not known."""
    base = repository.git("rev-parse", "HEAD")
    repository.write("packages/lib/src/a.js", "a 2\n")
    head = repository.commit()
    compares(stub, run_of(base, "l1", a=b"one\n", generated=b"1\n"))
    repository.write("packages/lib/src/generated.js", "2\n")
    repository.git("add", ".")
    head = repository.commit()
    (cause,) = causes_here(repository, run_of(head, "l2", a=b"a 2\n", generated=b"2\n"))
    assert (cause["more"], cause["class"], cause["commit"]) == (1, None, None)


@pytest.mark.parametrize("is_clean", [True, False])
def test_line_endings_are_proven_by_the_deployment(repository: Repository, stub: Stub, is_clean: bool) -> None:
    """If the baseline ran with other contents than its commit has, other line endings explain nothing."""
    names = ("a", "b", "c")
    for name in names:
        repository.write(f"packages/lib/src/{name}.js", f"{name}\n")
    base = repository.commit()
    contents = {name: f"{name}\n".encode() for name in names}
    if not is_clean:
        contents["b"] = b"edited\n"
    compares(stub, run_of(base, "l1", **contents))
    for name in names:
        repository.write(f"packages/lib/src/{name}.js", f"{name}\r\n")
    run = run_of(base, "l2", **{name: f"{name}\r\n".encode() for name in names})
    (cause,) = causes_here(repository, run)
    assert cause["more"] == 2
    hints = ["line_endings"] if is_clean else ["uncommitted"]
    assert [hint["hint"] for hint in cause["hints"]] == hints
    assert cause["advice"] == ("line-endings" if is_clean else "source-file")
    assert cause["class"] == "setup"
    assert len(stub.asked) == 2
    assert parse_qs(urlsplit(stub.asked[1].path).query)["against"] == [run["id"]]


@pytest.mark.parametrize("ending", ["", "\r"])
def test_more_files_than_a_report_has_hints_for_are_one_cause(repository: Repository, stub: Stub, ending: str) -> None:
    names = [f"f{number}" for number in range(MAX_HINTS + 2)]
    for name in names:
        repository.write(f"packages/lib/src/{name}.js", f"{name}\n")
    base = repository.commit()
    compares(stub, run_of(base, "l1", **{name: f"{name}\n".encode() for name in names}))
    contents = {name: f"{name}{ending or ' 2'}\n".encode() for name in names}
    for name in names:
        repository.write(f"packages/lib/src/{name}.js", contents[name])
    (cause,) = causes_here(repository, run_of(base, "l2", **contents))
    assert (cause["more"], cause["class"]) == (MAX_HINTS + 1, "setup")
    assert [hint["hint"] for hint in cause["hints"]] == ["line_endings" if ending else "uncommitted"]


def test_git_names_the_changed_packages(repository: Repository, stub: Stub) -> None:
    def lockfile(version: str) -> None:
        packages = {"packages/lib": {"dependencies": {"ms": "2"}}, "node_modules/ms": {"version": version}}
        repository.write("package-lock.json", {"packages": packages})

    def run(hash: str) -> dict[str, Any]:
        task = LIB | {"hash": hash, "hashOfExternalDependencies": hash * 8}
        return document(task, scm={"sha": base, "branch": "main"})

    lockfile("2.0.0")
    base = repository.commit()
    compares(stub, run("a1"))
    lockfile("2.1.0")
    (cause,) = causes_here(repository, run("a2"))
    assert cause["hints"] == [{"hint": "packages", "values": ["ms 2.0.0 -> 2.1.0"]}]
    assert cause["class"] == "setup"
    lines = Larder()("why", "build").stdout
    assert "lockfile: external dependencies of lib changed (ms 2.0.0 -> 2.1.0) -> 1 task" in lines


@pytest.mark.parametrize("run", ["main", "last", "ci", RUN])
def test_the_baseline_can_be_named(stub: Stub, run: str) -> None:
    Larder()("why", "build", "--against", run)
    assert parse_qs(urlsplit(only(stub).path).query) == {"slug": ["acme"], "against": [run]}


def test_causes_outside_the_code_fail_if_asked(repository: Repository, stub: Stub) -> None:
    Larder()("why", "build", "--fail-on", "setup")
    causes = causes_of(repository)
    causes["causes"][0]["class"] = "setup"
    stub.says("POST /v1/causes", 200, {"causes": causes, "missing": None})
    Larder()("why", "build", "--fail-on", "setup", status=3)


def test_words_of_a_newer_deployment_are_shown_or_left_out(repository: Repository, stub: Stub) -> None:
    causes = causes_of(repository)
    causes["causes"][0] |= {"kind": "moon-phase", "hints": [{"hint": "new", "values": []}], "advice": "wait"}
    causes["notes"] = [{"note": "new", "subject": None, "count": 0, "tasks": []}]
    stub.says("POST /v1/causes", 200, {"causes": causes, "missing": None})
    shown = Larder()("why", "build").stdout
    assert "1. moon-phase: packages/lib/src/a.js changed -> 1 task" in shown
    assert "#wait)" in shown
    Larder()("why", "build", "--markdown", "--redact")


@pytest.mark.parametrize(
    ("missing", "arguments", "message"),
    [
        ("no_baseline", (), "no baseline: no run has been reported yet"),
        ("no_baseline", (), "larder run -- npx turbo run build"),
        ("no_baseline", ("--against", "ci"), "no reported run that can be compared is --against ci"),
        ("inputs_off", (), "larder teams run-inputs acme names"),
        ("no_time", (), "within five seconds: name a run with --against ID"),
        ("moon_phase", (), "the deployment did not compare the run: moon_phase"),
    ],
)
def test_a_run_that_is_not_compared(stub: Stub, missing: str, arguments: tuple[str, ...], message: str) -> None:
    stub.says("POST /v1/causes", 200, {"causes": None, "missing": missing})
    assert message in Larder().refusal("why", "build", *arguments)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, {"code": "unauthorized", "message": f"No {TOKEN}."}, "No .... The token is mistyped"),
        (403, {"code": "missing_permission", "message": "No."}, "The token needs artifacts: read."),
        (429, {"code": "too_many_requests", "message": "No."}, "Compare two files meanwhile. Try again in 7 s."),
        (413, {"code": "run_too_large", "message": "No."}, "Name fewer tasks"),
        (400, {"code": "invalid_request", "message": "inputs.x."}, "answers 400 invalid_request: inputs.x."),
        (503, {"code": "try_again", "message": "No."}, "answers 503 try_again: No. Try again."),
        (502, "", "answers 502 Try again."),
        (404, {"message": "Not Found"}, "does not know POST /v1/causes: it is older than this command, or not Larder"),
        (200, [], "does not know POST /v1/causes"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(stub: Stub, status: int, body: Any, message: str) -> None:
    headers = {"Retry_After": "7"} if status == 429 else {}
    stub.says("POST /v1/causes", status, body, **headers)
    shown = Larder().refusal("why", "build")
    assert message in shown
    assert TOKEN not in shown


def test_a_deployment_that_does_not_answer(stub: Stub, own_environment: pytest.MonkeyPatch) -> None:
    own_environment.setenv("TURBO_API", "http://127.0.0.1:9")
    shown = Larder().refusal("why", "build")
    assert shown.startswith("no response of http://127.0.0.1:9")
    assert "nothing listens there" in shown
    assert shown.endswith("name a file: --against FILE")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TURBO_API", None, "no address is set: set TURBO_API"),
        ("TURBO_API", "http://cache.example.com", "http://cache.example.com is no https address"),
        ("TURBO_TOKEN", None, "no token of Larder is set: run `turbo login --api http://127.0.0.1"),
        ("TURBO_TEAM", None, "no team is set: set TURBO_TEAM"),
    ],
)
def test_a_setting_that_is_missing(
    stub: Stub, own_environment: pytest.MonkeyPatch, variable: str, value: str | None, message: str
) -> None:
    if value is None:
        own_environment.delenv(variable)
    else:
        own_environment.setenv(variable, value)
    assert message in Larder().refusal("why", "build")
    assert stub.asked == []


def test_an_address_of_the_repository_gets_no_token(
    repository: Repository, stub: Stub, own_environment: pytest.MonkeyPatch
) -> None:
    own_environment.delenv("TURBO_API")
    repository.write("turbo.json", {"tasks": {}, "remoteCache": {"apiUrl": stub.url}})
    assert f"larder accept {stub.url}" in Larder().refusal("why", "build")
    assert stub.asked == []


def test_what_became_of_a_hash(repository: Repository, stub: Stub) -> None:
    found: dict[str, Any] = {
        "package": "web",
        "task": "build",
        "hash": "08e4547d5347b63f",
        "firstAt": 1795165200000,
        "lastAt": 1795251600000,
        "built": 1,
        "hits": 12,
        "builtMs": 41000,
        "branches": ["main", "\x1b[2Jx"],
        "shas": ["1f0bd0a4c8b0f0e5"],
        "ci": ["GITHUB_ACTIONS", None],
        "stored": True,
        "cause": causes_of(repository)["causes"][0],
        "reason": "evicted",
    }
    history = {"complete": True, "hashes": [found]}
    stub.says("GET /v1/tasks/history", 200, history)
    assert Larder()("why", found["hash"]).stdout.splitlines() == [
        "web#build 08e4547d5347b63f: built 1 time (41.0 s), restored 12 times",
        "  first seen  2026-11-20 09:00 UTC", "  last seen   2026-11-21 09:00 UTC",
        "  branches    main, \ufffd[2Jx", "  commits     1f0bd0a4", "  on          GITHUB_ACTIONS, computers",
        "  cause       file: packages/lib/src/a.js changed", "  built again evicted", "  stored      yes",
    ]  # fmt: skip
    assert only(stub).path == "/v1/tasks/history?slug=acme&hashes=08e4547d5347b63f"
    assert Larder().json("why", found["hash"]) == history
    stub.says("GET /v1/tasks/history", 200, {"complete": False, "hashes": []})
    shown = Larder()("why", found["hash"]).stdout.splitlines()
    assert shown[0].startswith("No reported run has 08e4547d5347b63f.")
    assert shown[-1] == "There are older runs, which were not read."


def test_a_reported_run(repository: Repository, stub: Stub) -> None:
    """Its id can be the beginning that the output shows."""
    other = {"id": "36AAAAAA", "startedAt": 2}
    stub.says(
        "GET /v1/runs", 200, {"runs": [other, {"id": RUN, "startedAt": 1}], "pagination": {"count": 2, "next": None}}
    )
    path = f"GET /v1/runs/{RUN}"
    stub.says(path, 200, {"id": RUN, "causes": causes_of(repository), "missing": None})
    assert Larder().json("why", "--run", RUN[:8]) == causes_of(repository)
    assert stub.asked[-1].path == f"/v1/runs/{RUN}?slug=acme&startedAt=1"
    Larder()("why", "--run", RUN, "--against", "main")
    assert stub.asked[-1].path == f"/v1/runs/{RUN}?slug=acme&startedAt=1&against=main"
    for missing, options, message in (
        ("no_inputs", (), f"run {RUN} has no inputs"),
        ("no_baseline", (), "name one, such as --against main"),
        ("no_baseline", ("--against", "ci"), "no reported run that can be compared is --against ci"),
    ):
        stub.says(path, 200, {"id": RUN, "causes": None, "missing": missing})
        assert message in Larder().refusal("why", "--run", RUN, *options)
    assert "has the id 36CC" in Larder().refusal("why", "--run", "36CC")


def test_reasons_of_tasks_with_the_same_hash(repository: Repository, stub: Stub) -> None:
    def task(name: str, reason: str | None, *evidence: str, **more: Any) -> dict[str, Any]:
        shown = {"task": name, "hash": "1" * 16, "reason": reason, "evidence": list(evidence)}
        return {**shown, "certain": True, "at": None, **more}

    tasks = [
        task("a#lint", "evicted", "remote_miss", "evicted_before", at=1795165200000),
        task("b#lint", "evicted", "remote_miss", "evicted_before", at=1795165200000),
        task("c#lint", "not_asked", "no_event", "uploaded"),
        task("d#lint", "not_asked", "local_miss", "not_stored", certain=False),
        task("e#lint", "unknown", "remote_miss", certain=False),
        task("f#lint", "moon_phase"),
        task("g#lint", None, certain=False),
    ]
    causes = causes_of(repository, sameHash=tasks, sameHashCount=9)
    stub.says("POST /v1/causes", 200, {"causes": causes, "missing": None})
    lines = Larder()("why", "build").stdout.splitlines()
    assert [line.partition(": ")[2] for line in lines if line.startswith("same hash, not rest")] == [
        "2 tasks, evicted on 2026-11-20: a#lint, b#lint", "1 task, the run did not ask the cache (forced): c#lint",
        "1 task, probably the run did not ask the cache (the remote cache was off, or had no token): d#lint",
        "1 task, for an unknown reason (remote_miss): e#lint", "1 task, moon_phase: f#lint",
        "1 task with the hash of the baseline: g#lint", "2 tasks more",
    ]  # fmt: skip


def test_the_pages_of_runs_come_to_an_end(stub: Stub) -> None:
    stub.says("GET /v1/runs", 200, {"runs": [], "pagination": {"count": 0, "next": "more"}})
    assert "no run of the newest 1,000" in Larder().refusal("why", "--run", RUN)
    assert len(stub.asked) == 10
    assert "before=more" in stub.asked[-1].path


def test_a_task_is_needed_in_the_package(repository: Repository, stub: Stub) -> None:
    """A package uses the settings of the root."""
    repository.write("packages/lib/turbo.json", {"extends": ["//"]})
    os.chdir(repository.root / "packages" / "lib")
    repository.write("packages/lib/dry.json", (repository.root / "dry.json").read_bytes())
    assert Larder().json("why", "build")["tasks"] == 2


def test_many_values_are_shown_as_more(repository: Repository) -> None:
    """The JSON has the first ten."""
    old = task_record("lib#build", "1", resolvedTaskDefinition={"outputs": []})
    new = task_record("lib#build", "2", resolvedTaskDefinition={"outputs": [f"{n:02}/**" for n in range(12)]})
    base, run = repository.write("a.json", document(old)), repository.write("b.json", document(new))
    assert "+00/**, +01/**, +02/**, +03/** and more -> 1 task" in Larder()("why", base, run).stdout
