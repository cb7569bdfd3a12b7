"""What a CI sends of a run of turbo, and what it shows of the reply."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from larder_proxy.reports import Inputs, new_reports

from larder.why.codes import SOME_VALUE
from larder.why.comparison import compare
from larder.why.inputs import document_of
from larder.why.records import record
from larder.why.summaries import parse_summary
from tests.larder.why.summaries import document, task_record, variables
from tests.web_server import Quiet, listening

from .ci_scripts import CI, TOKEN, check_log, run, step

SECRET = "hunter2-in-plain-sight"
DIGEST = hashlib.sha256(SECRET.encode()).hexdigest()


def of_secret(name: str) -> str:
    return f"{name}={DIGEST}"


def secretive() -> dict[str, Any]:
    """A run with a secret wherever turbo's file can have it."""
    task = task_record(
        "web#build",
        "1" * 16,
        command=f"deploy --key {SECRET}",
        cliArguments=["--key", SECRET],
        environmentVariables=variables((of_secret("API_KEY"),), (of_secret("NEXT_PUBLIC_X"),), (of_secret("PASSED"),)),
    )
    shared = {"environmentVariables": variables((of_secret("NODE_ENV"),), (), (of_secret("PASSED"),))}
    return document(task, shared=shared, user=SECRET)


VARIOUS = {
    "two packages": document(
        task_record("lib#build", "1" * 16),
        task_record("web#build", "2" * 16, "lib#build", environmentVariables=variables(("A=1",))),
    ),
    "secrets": secretive(),
    "turbo 1": document(
        task_record("lib#build", "1" * 16, resolvedTaskDefinition={"dotEnv": [".env"]}),
        shared={"globalDotEnv": [".env"], "engines": None},
        frameworkInference=False,
    ),
    "engines": document(
        task_record("//#build", "1" * 16, directory="", command=""),
        shared={"engines": {"node": ">=20", "npm": "10"}, "files": {"a.json": "3" * 40}},
    ),
    "inferred": document(task_record("a#b", "1" * 16, environmentVariables=variables(("A=1",), ("A=1", "B=")))),
    "nothing": document({"taskId": "a#b", "task": "b", "package": "a", "hash": "1" * 16, "cache": {}}),
    "long lists": document(
        task_record("a#b", "1" * 16, inputs={f"{n}.js": "4" * 40 for n in range(150_000)}),
        task_record("c#b", "2" * 16, inputs={f"{n}.ts": "5" * 40 for n in range(150_000)}),
    ),
}


def write(folder: Path, summary: dict[str, Any], name: str = "run.json") -> Path:
    file = folder / ".turbo" / "runs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(summary))
    return file


def body_of(summary: dict[str, Any], folder: Path, inputs: str) -> dict[str, Any]:
    """The request that the script makes of a summary."""
    command = ["node", str(CI / "run-report.mjs"), "report", str(write(folder, summary))]
    done = run(command, {"LARDER_INPUTS": inputs}, folder)
    assert done.returncode == 0, done.stderr
    body: dict[str, Any] = json.loads(gzip.decompress(done.stdout))
    return body


@pytest.mark.parametrize("name", VARIOUS)
def test_the_inputs_are_those_of_larder_why(name: str, tmp_path: Path) -> None:
    """The script and the command line make the same of a file."""
    assert body_of(VARIOUS[name], tmp_path, "values")["inputs"] == document_of(parse_summary(VARIOUS[name]))


def test_larder_run_reports_the_same_inputs_and_gives_the_script_no_token(tmp_path: Path) -> None:
    write(tmp_path, secretive(), "one.json")
    environment = {"PATH": os.environ["PATH"], "TURBO_TOKEN": TOKEN}
    (report,) = reports_of(tmp_path, environment)
    (without,) = reports_of(tmp_path, {**environment, "LARDER_INPUTS": "off"})
    assert "inputs" not in without
    (without_node,) = reports_of(tmp_path, {"PATH": str(tmp_path)})
    assert without_node == without
    assert report == body_of(secretive(), tmp_path, "names")


def reports_of(folder: Path, environment: dict[str, str], prepared: Path | None = None) -> list[dict[str, Any]]:
    """What `larder run` reports if turbo has asked for something in `prepared`."""
    inputs = Inputs(environment)
    if prepared is not None:
        inputs.prepare(str(prepared))
    return new_reports(str(folder), environment, 0, ["turbo"], inputs)


def test_node_starts_once_while_turbo_runs_and_ends_with_it(tmp_path: Path) -> None:
    """It takes as long as a small build."""
    started, node = tmp_path / "started", tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text(f'#!/bin/sh\necho $$ >> "{started}"\nexec "{shutil.which("node")}" "$@"\n')
    node.chmod(0o755)
    environment = {"PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}"}
    root, elsewhere = tmp_path / "repository", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(root, secretive(), "one.json")
    (report,) = reports_of(root, environment, prepared=root)
    assert len(started.read_text().split()) == 1
    assert report == body_of(secretive(), root, "names")
    # Of another repository, and of a build that described no run.
    root.joinpath(".turbo", "runs", "run.json").unlink()
    assert reports_of(root, environment, prepared=elsewhere) == [report]
    assert reports_of(elsewhere, environment, prepared=elsewhere) == []
    for pid in started.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


@pytest.mark.parametrize(
    ("variables", "config", "is_used"),
    [
        ({}, None, False),
        ({"TURBO_TEAM": "acme"}, None, True),
        ({"TURBO_TEAMID": "team_1", "TURBO_CACHE": "local:rw,remote:r"}, None, True),
        ({"TURBO_TEAM": "acme", "TURBO_CACHE": "local:rw"}, None, False),
        ({"TURBO_TEAM": "acme", "TURBO_CACHE": "local:rw,remote:"}, None, False),
        ({}, "turbo.json", True),
        ({}, ".turbo/config.json", True),
        ({}, ".config/turborepo/config.json", True),
    ],
)
def test_turbo_without_a_team_or_a_remote_cache_used_none(
    variables: dict[str, str], config: str | None, is_used: bool, tmp_path: Path
) -> None:
    if config:
        (tmp_path / config).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / config).write_text('{"teamSlug": "acme"} // jsonc')
    file = write(tmp_path, document(task_record("lib#build", "1" * 16)))
    command = ["node", str(CI / "run-report.mjs"), "report", str(file)]
    done = run(command, {"HOME": str(tmp_path), **variables}, tmp_path)
    assert json.loads(gzip.decompress(done.stdout))["usedCache"] is is_used


def test_inputs_can_be_left_out(tmp_path: Path) -> None:
    body = body_of(secretive(), tmp_path, "off")
    assert body.keys() == {"id", "turboVersion", "usedCache", "execution", "scm", "tasks"}
    assert DIGEST not in json.dumps(body)


def test_no_secret_is_sent(tmp_path: Path) -> None:
    """With `values`, turbo's digests of hashed variables are, and those that are passed through are not."""
    body = body_of(secretive(), tmp_path, "values")
    assert body["inputs"]["tasks"][0]["env"] == {"API_KEY": DIGEST, "NEXT_PUBLIC_X": DIGEST}
    text = json.dumps(body)
    assert SECRET not in text
    assert text.count(DIGEST) == 3
    assert "PASSED" not in text
    assert hashlib.sha256(f"deploy --key {SECRET}".encode()).hexdigest() not in text


def test_by_default_names_and_no_digests_of_values_are_sent(tmp_path: Path) -> None:
    body = body_of(secretive(), tmp_path, "")
    assert body["inputs"]["tasks"][0]["env"] == {"API_KEY": SOME_VALUE, "NEXT_PUBLIC_X": SOME_VALUE}
    assert body["inputs"]["global"]["env"] == {"NODE_ENV": SOME_VALUE}
    assert DIGEST[:12] not in json.dumps(body)


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(folder: Path) -> list[str]:
    """Three commits, with an ignored and an untracked input. Returns the commits, the newest first."""
    git(folder, "init", "--quiet")
    (folder / ".gitignore").write_text("*.log\n.turbo\n")
    source = folder / "packages" / "lib" / "src" / "a.js"
    source.parent.mkdir(parents=True)
    for number in range(3):
        source.write_text(f"{number}\n")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", str(number))
    (source.parent / "new.js").touch()
    (source.parent / "a.log").touch()
    return git(folder, "rev-list", "HEAD").split()


INPUTS = dict.fromkeys(("src/a.js", "src/new.js", "src/a.log"), "1" * 40)


def title(folder: Path, variables: dict[str, str]) -> dict[str, Any]:
    """What a report says of the commit, beyond turbo's file."""
    file = write(folder, VARIOUS["engines"] | {"scm": {"branch": "main", "sha": "1" * 40}})
    done = run(["node", str(CI / "run-report.mjs"), "report", str(file)], variables, folder)
    scm: dict[str, Any] = json.loads(gzip.decompress(done.stdout))["scm"]
    return {name: scm[name] for name in scm.keys() - {"branch", "sha"}}


def test_a_report_names_the_commit_and_the_pull_request(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "Fix the login\n\nMore.")
    author = git(tmp_path, "log", "-1", "--format=%an").strip()
    commit = {"subject": "Fix the login", "author": author}
    assert title(tmp_path, {}) == commit
    assert title(tmp_path, {"LARDER_INPUTS": "off"}) == {}
    for of_the_ci in (
        {"GITHUB_REF": "refs/pull/7/merge"},
        {"CI_MERGE_REQUEST_IID": "7"},
        {"CIRCLE_PULL_REQUEST": "https://github.com/acme/web/pull/7"},
        {"BUILDKITE_PULL_REQUEST": "false", "CHANGE_ID": "7"},
    ):
        assert title(tmp_path, of_the_ci) == {**commit, "pullRequest": 7}
    # GitHub checks a merge out that nobody has written.
    base, head = (git(tmp_path, "rev-parse", "HEAD").strip(), "2" * 40)
    git(tmp_path, "checkout", "--quiet", "-b", "other")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "Other")
    git(tmp_path, "checkout", "--quiet", "-")
    git(tmp_path, "merge", "--quiet", "--no-ff", "other", "--message", f"Merge {head} into {base}")
    assert title(tmp_path, {"GITHUB_REF": "refs/pull/7/merge"}) == {"pullRequest": 7}


def test_git_says_what_came_before_and_what_it_does_not_have(tmp_path: Path) -> None:
    _, *before = repository(tmp_path)
    summary = document(task_record("lib#build", "1" * 16, inputs=INPUTS))
    body = body_of(summary, tmp_path, "names")
    assert (body["ancestors"], body["dirty"]) == (before, False)
    assert body["hints"]["files"] == {"packages/lib/src/new.js": "untracked", "packages/lib/src/a.log": "ignored"}
    (tmp_path / "packages" / "lib" / "src" / "a.js").write_text("changed\n")
    assert body_of(summary, tmp_path, "names")["dirty"] is True


def test_git_says_which_files_have_only_other_line_endings(tmp_path: Path) -> None:
    repository(tmp_path)
    source = tmp_path / "packages" / "lib" / "src"
    for name in ("b.js", "c.js", "d.js"):
        (source / name).write_text("one\ntwo\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "more")
    (source / "a.js").write_bytes(b"2\r\n")
    (source / "b.js").write_bytes(b"one\r\ntwo\r\n")
    (source / "c.js").write_bytes(b"one\r\nother\r\n")
    (source / "d.js").unlink()
    summary = document(task_record("lib#build", "1" * 16, inputs={"src/a.js": "1" * 40}))
    body = body_of(summary, tmp_path, "names")
    assert body["dirty"] is True
    assert body["hints"]["files"] == {"packages/lib/src/a.js": "line_endings", "packages/lib/src/b.js": "line_endings"}


def test_the_event_names_the_commit_of_a_clone_without_history(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"base": {"sha": "b" * 40}}, "before": "0" * 40}))
    file = write(tmp_path, document(task_record("lib#build", "1" * 16)))
    done = run(
        ["node", str(CI / "run-report.mjs"), "report", str(file)],
        {"LARDER_INPUTS": "names", "GITHUB_EVENT_PATH": str(event)},
        tmp_path,
    )
    body = json.loads(gzip.decompress(done.stdout))
    assert (body["ancestors"], body["hints"]["files"]) == (["b" * 40], {})


def test_the_size_of_what_turbo_stores_is_sent(tmp_path: Path) -> None:
    stored = tmp_path / ".turbo" / "cache" / f"{'1' * 16}.tar.zst"
    stored.parent.mkdir(parents=True)
    stored.write_bytes(b"x" * 5_000)
    summary = document(task_record("lib#build", "1" * 16), task_record("web#build", "2" * 16))
    assert [task.get("bytes") for task in body_of(summary, tmp_path, "names")["tasks"]] == [5_000, None]


def test_a_report_of_300_tasks_has_at_most_60_kb(tmp_path: Path) -> None:
    """40 files a package and three tasks a package, of which each has a hash of its own."""

    def digest(*parts: object) -> str:
        return hashlib.sha1(repr(parts).encode(), usedforsecurity=False).hexdigest()

    tasks = [
        task_record(
            f"package-{package}#{task}",
            digest("hash", package, task)[:16],
            inputs={f"src/module-{n}.ts": digest(package, n) for n in range(40)},
            hashOfExternalDependencies=digest("external", package)[:16],
        )
        for package in range(100)
        for task in ("build", "test", "lint")
    ]
    file = write(tmp_path, document(*tasks))
    command = ["node", str(CI / "run-report.mjs"), "report", str(file)]
    assert len(run(command, {"LARDER_INPUTS": "values"}, tmp_path).stdout) < 60_000


# The end of a job -------------------------------------------------------------------------------


@dataclass
class Servers:
    """Larder and GitHub in one. `comments` are those of pull request 7."""

    url: str = ""
    reply: dict[str, Any] = field(default_factory=lambda: {"recorded": True, "causes": None})
    asked: list[tuple[str, str, Message, bytes]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)

    def sent(self, method: str, path: str) -> list[bytes]:
        return [body for how, where, _, body in self.asked if (how, where) == (method, path)]


@pytest.fixture
def servers() -> Iterator[Servers]:
    servers = Servers()

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # http.server calls it
            page = parse_qs(urlsplit(self.path).query)["page"]
            self._answer(servers.comments if page == ["1"] else [])

        def do_POST(self) -> None:  # http.server calls it
            self._answer(servers.reply if "/v1/runs" in self.path else {"id": 1})

        do_PATCH = do_POST  # noqa: N815  # http.server's name

        def _answer(self, value: object) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            path = urlsplit(self.path).path
            servers.asked.append((self.command, path, self.headers, body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

    with listening(Handler) as url:
        servers.url = url
        yield servers


def explained(build_ms: int = 90_000, name: str = "NEXT_PUBLIC_SHA") -> dict[str, Any]:
    """A reply to a report: a variable has another value, which cost the build."""
    runs = [
        document(
            task_record(
                "web#build",
                value * 16,
                environmentVariables=variables((f"{name}={value}",)),
                execution={"startTime": 0, "endTime": build_ms, "exitCode": 0},
            ),
            id=f"run{value}",
        )
        for value in "12"
    ]
    base, newer = (parse_summary(one) for one in runs)
    return {"recorded": True, "causes": record(compare(base, newer), chosen="ancestor")}


def end_job(servers: Servers, folder: Path, **inputs: str) -> bytes:
    """The last step of a job of a pull request. Returns its log."""
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    return step(
        folder,
        "post",
        {"api": servers.url, "team": "acme", "github-token": "ghs_x", **inputs},
        STATE_startedAt="1",
        STATE_token=TOKEN,
        GITHUB_EVENT_PATH=str(event),
        GITHUB_API_URL=servers.url,
        GITHUB_REPOSITORY="acme/web",
        GITHUB_WORKFLOW="CI",
        GITHUB_JOB="build",
    )


COMMENTS = "/repos/acme/web/issues/7/comments"


def test_the_end_of_a_job_reports_new_runs_and_revokes_the_token(servers: Servers, tmp_path: Path) -> None:
    old = write(tmp_path, document(id="old"), "old.json")
    subprocess.run(["touch", "-d", "@0", str(old)], check=True)
    for name in ("one", "two"):
        write(tmp_path, document(task_record("web#build", "1" * 16), id=name), f"{name}.json")
    assert end_job(servers, tmp_path) == b""
    reports = [json.loads(gzip.decompress(body)) for body in servers.sent("POST", "/v1/runs")]
    assert sorted(report["id"] for report in reports) == ["one", "two"]
    assert servers.sent("POST", "/login/oauth/token/revoke") == [f"token={TOKEN}".encode()]
    assert servers.asked[-1][1] == "/login/oauth/token/revoke"
    assert servers.asked[0][2]["x-artifact-client-ci"] == "GITHUB_ACTIONS"
    assert (tmp_path / "summary").read_text() == ""


def test_turbo_writes_summaries_unless_no_reports_are_wanted(tmp_path: Path) -> None:
    inputs = {"api": "http://127.0.0.1:1", "team": "acme"}
    step(tmp_path, "main", inputs, ACTIONS_ID_TOKEN_REQUEST_URL="")
    assert "TURBO_RUN_SUMMARY=true\n" in (tmp_path / "env").read_text()
    (tmp_path / "env").write_text("")
    step(tmp_path, "main", {**inputs, "report": "false"}, ACTIONS_ID_TOKEN_REQUEST_URL="")
    assert (tmp_path / "env").read_text() == ""


def test_the_summary_says_why_tasks_missed(servers: Servers, tmp_path: Path) -> None:
    servers.reply = explained()
    write(tmp_path, document(task_record("web#build", "2" * 16)))
    end_job(servers, tmp_path, summary="true", inputs="values")
    (sent,) = servers.sent("POST", "/v1/runs")
    assert json.loads(gzip.decompress(sent))["inputs"]["version"] == 1
    text = (tmp_path / "summary").read_text()
    assert "**Larder**: 1 tasks compared with `aaaaaaaa` of `main`." in text
    assert "| variable `NEXT_PUBLIC_SHA` changed, not by this change | 1 | 1 min 30 s |" in text


def test_only_what_costs_more_than_a_minute_is_worth_a_comment(servers: Servers, tmp_path: Path) -> None:
    write(tmp_path, document(task_record("web#build", "2" * 16)))
    servers.reply = explained(build_ms=59_000)
    end_job(servers, tmp_path, comment="true", inputs="values")
    assert servers.sent("POST", COMMENTS) == []
    servers.reply = explained(build_ms=61_000)
    end_job(servers, tmp_path, comment="true", inputs="values")
    (comment,) = servers.sent("POST", COMMENTS)
    text = json.loads(comment)["body"]
    assert text.startswith("<!-- larder: CI / build -->\n")
    assert "`NEXT_PUBLIC_SHA`" in text


def test_a_comment_is_edited_in_place_and_never_that_of_a_person(servers: Servers, tmp_path: Path) -> None:
    mark = "<!-- larder: CI / build -->\n..."
    servers.comments = [
        {"id": 1, "body": mark, "user": {"type": "User"}},
        {"id": 2, "body": "<!-- larder: CI / test -->", "user": {"type": "Bot"}},
        {"id": 3, "body": mark, "user": {"type": "Bot"}},
    ]
    servers.reply = explained(build_ms=1_000)
    write(tmp_path, document(task_record("web#build", "2" * 16)))
    end_job(servers, tmp_path, comment="true", inputs="values")
    # What was there may no longer be true.
    assert len(servers.sent("PATCH", "/repos/acme/web/issues/comments/3")) == 1
    assert servers.sent("POST", COMMENTS) == []


HOSTILE_NAMES = ("<img src=x>`x`", "`@org`", "a|b", "x\u202eevil", "a\n::error::x", "[a](http://x)")


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_are_code_in_markdown(servers: Servers, tmp_path: Path, name: str) -> None:
    servers.reply = explained(name=name)
    write(tmp_path, document(task_record("web#build", "2" * 16)))
    check_log(end_job(servers, tmp_path, summary="true", inputs="values"))
    (row,) = [line for line in (tmp_path / "summary").read_text().splitlines() if line.startswith("| variable")]
    shown = row.removeprefix("| variable `").partition("` changed")[0]
    assert "`" not in shown
    assert "|" not in shown.replace("\\|", "")
    assert "\u202e" not in row


@pytest.mark.parametrize("text", ["{", "[]", '{"tasks": 1}', ""])
def test_a_damaged_summary_is_a_line_and_fails_nothing(servers: Servers, tmp_path: Path, text: str) -> None:
    write(tmp_path, document(task_record("web#build", "2" * 16)), "good.json")
    write(tmp_path, {}, "bad.json").write_text(text)
    log = end_job(servers, tmp_path, inputs="values")
    assert log == b"The run was not reported: its file is damaged.\n"
    assert len(servers.sent("POST", "/v1/runs")) == 1


def test_an_unreachable_server_fails_nothing(tmp_path: Path) -> None:
    write(tmp_path, document(task_record("web#build", "2" * 16)))
    log = end_job(Servers(url="http://127.0.0.1:1"), tmp_path, summary="true", comment="true")
    check_log(log.replace(b"::notice::", b""))
    assert b"The run was not reported" in log
    assert b"::notice::The token was not revoked" in log
