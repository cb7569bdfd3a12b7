"""The scripts of ci/ check what a server sends before it reaches a variable or the log."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

import pytest
import yaml
from larder_proxy import sidecar

from larder.web.pages import script_text

from .ci_scripts import CI, TOKEN, check_log, run, step

GIVEN = json.dumps({"access_token": TOKEN, "token_type": "Bearer"})
HOSTILE = [
    f'{{"access_token": "x"}}\n{{"access_token": "{TOKEN}"}}',
    f'{{"access_token": "{TOKEN}\nNODE_OPTIONS=--require=/tmp/evil.js"}}',
    f'{{"access_token": "{TOKEN}\rNODE_OPTIONS=x"}}', f'{{"access_token": "{TOKEN}%0ANODE_OPTIONS=x"}}',
    f'{{"access_token": "{"a" * 257}"}}', '{"access_token": "short"}', '{"access_token": ""}',
    '{"error": "x\n::add-mask::true\n::set-env name=NODE_OPTIONS::x\n##[add-mask]x"}', "::add-mask::a",
    "\x1b]0;title\x07\x1b[2J\x9b31m", "::" * 5_000, "",
]  # fmt: skip


class Endpoint:
    """A server whose reply to every POST is `reply`, and to every GET an id token."""

    def __init__(self) -> None:
        self.reply = GIVEN
        self.sent: dict[str, str] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # http.server calls it
                self._send(b'{"count": 1, "value": "a.b.c"}')

            def do_POST(self) -> None:  # http.server calls it
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                outer.sent = dict(parse_qsl(body, keep_blank_values=True))
                self._send(outer.reply.encode("latin-1"))

            def _send(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


def test_jobs_name_the_team_by_its_id(endpoint: Endpoint, tmp_path: Path) -> None:
    done = exchange(endpoint, tmp_path, TURBO_TEAM="", TURBO_TEAMID="team_1")
    assert done.stdout == f"{TOKEN}\n".encode()
    assert (endpoint.sent["team_id"], endpoint.sent["team_id_or_slug"]) == ("team_1", "")
    _, variables, _ = github(endpoint, tmp_path, team="", team_id="team_2")
    assert f"TURBO_TOKEN={TOKEN}\nTURBO_TEAMID=team_2\n".encode() in variables
    assert b"TURBO_TEAM=" not in variables
    assert (endpoint.sent["team_id"], endpoint.sent["team_id_or_slug"]) == ("team_2", "")
    gitlab(endpoint, tmp_path, "sh", TURBO_TEAM="", TURBO_TEAMID="team_3")
    assert (endpoint.sent["team_id"], endpoint.sent["team_id_or_slug"]) == ("team_3", "")


def test_a_job_without_a_team_is_refused(endpoint: Endpoint, tmp_path: Path) -> None:
    done = exchange(endpoint, tmp_path, TURBO_TEAM="")
    assert (done.returncode != 0, done.stdout) == (True, b"")
    assert b"TURBO_TEAMID" in done.stderr


def exchange(endpoint: Endpoint, cwd: Path, **changed: str) -> subprocess.CompletedProcess[bytes]:
    variables = {"TURBO_API": endpoint.url, "TURBO_TEAM": "acme", **changed}
    return run(["sh", str(CI / "exchange.sh")], variables, cwd)


def test_the_script_prints_the_token(endpoint: Endpoint, tmp_path: Path) -> None:
    done = exchange(endpoint, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{TOKEN}\n".encode(), b"")


def test_only_the_first_token_counts(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.reply = f"{GIVEN}\n{GIVEN.replace('a' * 70, 'b' * 70)}"
    assert exchange(endpoint, tmp_path).stdout == f"{TOKEN}\n".encode()


@pytest.mark.parametrize("reply", HOSTILE)
def test_another_reply_is_one_plain_line(endpoint: Endpoint, tmp_path: Path, reply: str) -> None:
    endpoint.reply = reply
    done = exchange(endpoint, tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"No token for the cache: ")
    assert done.stderr.count(b"\n") == 1
    check_log(done.stderr)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TURBO_TEAM", "acme\nNODE_OPTIONS=x"),
        ("TURBO_TEAM", "acme web"),
        ("TURBO_TEAMID", "team_1\nNODE_OPTIONS=x"),
        ("TURBO_TEAM", "@/etc/passwd"),
        ("LARDER_RULE", "rule\n::add-mask::x"),
        ("TURBO_API", "{url}\nNODE_OPTIONS=x"),
        ("TURBO_API", "-K/etc/passwd"),
        ("TURBO_API", "file:///etc/passwd"),
    ],
)
def test_inputs_with_other_characters_are_refused(endpoint: Endpoint, tmp_path: Path, name: str, value: str) -> None:
    done = exchange(endpoint, tmp_path, **{name: value.replace("{url}", endpoint.url)})
    assert (done.returncode, done.stdout) == (1, b"")
    check_log(done.stderr)


def github(
    endpoint: Endpoint,
    folder: Path,
    team: str = "acme",
    team_id: str = "",
    *,
    inputs: Mapping[str, str] = MappingProxyType({}),
    **changed: str,
) -> tuple[bytes, bytes, bytes]:
    """Run the step of the action, without reports. Returns its log, and what it wrote for the steps after it."""
    log = step(
        folder,
        "main",
        {"api": f"{endpoint.url}/", "team": team, "team_id": team_id, "report": "false", **inputs},
        ACTIONS_ID_TOKEN_REQUEST_URL=f"{endpoint.url}/id-token?api-version=2.0",
        ACTIONS_ID_TOKEN_REQUEST_TOKEN="request",
        **changed,
    )
    return log, (folder / "env").read_bytes(), (folder / "output").read_bytes()


def test_the_action_gives_turbo_three_variables(endpoint: Endpoint, tmp_path: Path) -> None:
    log, variables, output = github(endpoint, tmp_path)
    assert log == f"::add-mask::{TOKEN}\n".encode()
    expected = f"TURBO_API={endpoint.url}\nTURBO_TOKEN={TOKEN}\nTURBO_TEAM=acme\n"
    assert variables == expected.encode()
    assert output == f"token={TOKEN}\n".encode()


@pytest.mark.parametrize(
    ("reply", "team"), [(HOSTILE[1], "acme"), (HOSTILE[7], "acme"), (GIVEN, "acme\nNODE_OPTIONS=x")]
)
def test_the_action_writes_no_other_variable(endpoint: Endpoint, tmp_path: Path, reply: str, team: str) -> None:
    endpoint.reply = reply
    log, variables, output = github(endpoint, tmp_path, team)
    assert (variables, output) == (b"", b"")
    own = b"::warning::No token for the cache"
    check_log(b"\n".join(line for line in log.splitlines() if not line.startswith(own)))


SUMMARY = {"summary": "true"}


CLAIMS_LINE = re.compile(r"cut -d\. -f2[^`]+base64 -d(?=`)")


@pytest.mark.parametrize("length", [2, 3, 4])
def test_the_line_of_the_page_and_the_console_prints_the_claims_of_a_token(length: int) -> None:
    """Base64 has three lengths without padding. Each token has both characters that base64url replaces."""
    (line,) = CLAIMS_LINE.findall((CI.parents[1] / "docs" / "trust.md").read_text())
    assert json.dumps(line) in script_text("console/rules.js")
    claims = json.dumps({"sub": "???>>>" + "x" * length}).encode()
    part = base64.urlsafe_b64encode(claims).decode().rstrip("=")
    assert {"-", "_"} <= {*part}
    token = f"{TOKEN}.{part}.{TOKEN}\n"
    printed = subprocess.run(["sh", "-c", line], input=token.encode(), capture_output=True, timeout=30)
    assert (printed.returncode, printed.stderr, printed.stdout) == (0, b"", claims)


# The summary of a job of GitHub ------------------------------------------------------------------


def reasons() -> list[str]:
    """The reasons of refused tokens, as docs/trust.md lists them."""
    page = (CI.parents[1] / "docs" / "trust.md").read_text()
    table = page.partition("| `error_description` | What to do |\n|---|---|\n")[2]
    rows = table.partition("\n\n")[0].splitlines()
    return [row.split(" | ")[0].removeprefix("| ") for row in rows]


def test_without_the_input_there_is_no_summary(endpoint: Endpoint, tmp_path: Path) -> None:
    github(endpoint, tmp_path)
    assert (tmp_path / "summary").read_text() == ""


def test_the_summary_says_which_cache_a_job_uses(endpoint: Endpoint, tmp_path: Path) -> None:
    _, variables, _ = github(endpoint, tmp_path, inputs=SUMMARY)
    text = (tmp_path / "summary").read_text()
    assert text == "### Larder\n\nThis job uses the cache of the team `acme`.\n\n"
    assert TOKEN not in text
    assert b"LARDER_SUMMARY=true\n" in variables


@pytest.mark.parametrize("reason", reasons())
def test_the_summary_has_the_reason_of_a_refused_token(endpoint: Endpoint, tmp_path: Path, reason: str) -> None:
    endpoint.reply = json.dumps({"error": "invalid_request", "error_description": reason})
    log, _, output = github(endpoint, tmp_path, inputs=SUMMARY)
    title, _, said, _, shown, *rest = (tmp_path / "summary").read_text().splitlines()
    assert (title, output, "".join(rest)) == ("### Larder", b"", "")
    assert said == "No token for the cache, so the build does not use it:"
    assert shown.startswith("    No token for the cache: ")
    assert reason in shown
    assert reason.encode() in log


@pytest.mark.parametrize("reply", HOSTILE)
def test_what_a_server_sends_is_code_in_the_summary(endpoint: Endpoint, tmp_path: Path, reply: str) -> None:
    endpoint.reply = reply
    github(endpoint, tmp_path, inputs=SUMMARY)
    text = (tmp_path / "summary").read_text()
    assert text.isascii()
    _, _, after = text.partition("does not use it:\n")
    assert all(line.startswith("    ") for line in after.splitlines() if line)


def test_the_summary_says_that_a_job_has_no_id_token(endpoint: Endpoint, tmp_path: Path) -> None:
    variables = {"ACTIONS_ID_TOKEN_REQUEST_URL": ""}
    inputs = {"api": endpoint.url, "team": "acme", **SUMMARY}
    log = step(tmp_path, "main", inputs, **variables)
    assert "Jobs of forks never have one" in (tmp_path / "summary").read_text()
    assert b"::notice::This job has no id token" in log


def test_the_summary_has_the_hits_of_a_reported_run(endpoint: Endpoint, tmp_path: Path) -> None:
    """Also if the job has no token. Tasks that did not run are not misses."""
    runs = tmp_path / ".turbo" / "runs"
    runs.mkdir(parents=True)
    ran = {"startTime": 1, "endTime": 2, "exitCode": 0}
    caches: list[tuple[dict[str, Any], object]] = [
        ({"status": "HIT", "source": "REMOTE", "timeSaved": 60_000}, ran),
        ({"status": "HIT", "source": "LOCAL", "timeSaved": 5_400}, ran),
        ({"status": "MISS", "timeSaved": 0}, ran),
        ({"status": "MISS", "timeSaved": 0}, None),
    ]
    tasks = [{"cache": cache, "execution": execution} for cache, execution in caches]
    (runs / "run.json").write_text(json.dumps({"id": "x", "tasks": tasks, "globalCacheInputs": {}}))
    summary = tmp_path / "summary"
    command = ["sh", str(CI / "report-run.sh")]
    run(command, {"GITHUB_STEP_SUMMARY": str(summary)}, tmp_path)
    assert not summary.exists()
    run(command, {"GITHUB_STEP_SUMMARY": str(summary), "LARDER_SUMMARY": "true"}, tmp_path)
    assert summary.read_text().splitlines() == [
        "| Hits | of these remote | Misses | Time saved |",
        "|---|---|---|---|",
        "| 2 | 1 | 1 | 1 min 5 s |",
        "",
    ]


def test_a_damaged_run_is_not_in_the_summary_and_fails_nothing(tmp_path: Path) -> None:
    runs = tmp_path / ".turbo" / "runs"
    runs.mkdir(parents=True)
    (runs / "run.json").write_text("{")
    summary = tmp_path / "summary"
    variables = {"GITHUB_STEP_SUMMARY": str(summary), "LARDER_SUMMARY": "true"}
    done = run(["sh", str(CI / "report-run.sh")], variables, tmp_path)
    assert done.returncode == 0
    assert b"The run was not reported: its file is damaged." in done.stderr
    assert not summary.exists()


# Doctor -----------------------------------------------------------------------------------------


WHEEL = "larder_cache-1.2.3-py3-none-any.whl"


def doctor(folder: Path, wheel: str = WHEEL, status: int | None = 0) -> bytes:
    """Run the step with a `uvx` that ends with this status, or without one. Returns its log after that of the token."""
    tools = folder / "bin"
    tools.mkdir()
    for tool in ("sh", "node", "mktemp"):
        (tools / tool).symlink_to(shutil.which(tool) or tool)
    if status is not None:
        (tools / "uvx").write_text(f'#!/bin/sh\necho "ran $*"\nexit {status}\n')
        (tools / "uvx").chmod(0o755)
    inputs = {"api": "http://127.0.0.1:1", "team": "acme", "doctor": "true", "wheel": wheel}
    log = step(folder, "main", inputs, PATH=str(tools), ACTIONS_ID_TOKEN_REQUEST_URL="")
    token, _, rest = log.partition(b"\n")
    assert token.startswith(b"::notice::This job has no id token")
    return rest


@pytest.mark.parametrize("below", ["", "tools/"])
def test_doctor_runs_from_the_file_that_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / below / WHEEL).touch()
    assert doctor(tmp_path, below + WHEEL) == f"ran --from ./{below}{WHEEL} larder doctor\n".encode()


def test_a_problem_that_doctor_finds_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / WHEEL).touch()
    log = doctor(tmp_path, status=1)
    assert b"::notice::larder doctor has found something" in log


@pytest.mark.parametrize("name", ["", "larder-cache", "larder-cache==1.2.3", "https://x.example/x.whl"])
def test_doctor_asks_no_index_for_a_name(tmp_path: Path, name: str) -> None:
    """Anyone who registers a name there would get the token of the job."""
    log = doctor(tmp_path, name)
    assert log.startswith(b"::notice::larder doctor did not run: name a file of the job")


def test_doctor_without_uv_is_a_notice(tmp_path: Path) -> None:
    (tmp_path / WHEEL).touch()
    assert b"it needs uv" in doctor(tmp_path, status=None)


# GitLab -----------------------------------------------------------------------------------------


def gitlab(endpoint: Endpoint, folder: Path, shell: str, **changed: str) -> bytes:
    """Run the snippet. Returns its log, and the token that the script sees, after a `<`."""
    snippet = yaml.safe_load((CI / "gitlab" / "larder.yml").read_text())[".larder"]
    script = "\n".join([*snippet["before_script"], 'printf "<%s>" "$(printenv TURBO_TOKEN)"'])
    variables = {"TURBO_API": endpoint.url, "TURBO_TEAM": "acme", "LARDER_ID_TOKEN": "a.b.c"}
    done = run([shell, "-c", script], {**variables, **changed}, folder)
    return done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("reply", [GIVEN, *HOSTILE])
def test_the_snippet_of_gitlab_takes_nothing_but_a_token(
    endpoint: Endpoint, tmp_path: Path, shell: str, reply: str
) -> None:
    endpoint.reply = reply
    log, _, seen = gitlab(endpoint, tmp_path, shell).rpartition(b"<")
    assert seen == (f"{TOKEN}>".encode() if reply == GIVEN else b">")
    check_log(log)


@pytest.mark.parametrize("reply", HOSTILE)
def test_a_report_that_fails_is_one_plain_line(endpoint: Endpoint, tmp_path: Path, reply: str) -> None:
    runs = tmp_path / ".turbo" / "runs"
    runs.mkdir(parents=True)
    (runs / "run.json").write_text(json.dumps({"id": "x", "tasks": []}))
    endpoint.reply = reply
    variables = {"TURBO_API": endpoint.url, "TURBO_TEAM": "acme", "TURBO_TOKEN": TOKEN}
    done = run(["sh", str(CI / "report-run.sh")], variables, tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith(b"The run was not reported: ")
    check_log(done.stdout + done.stderr)


def test_a_token_cannot_change_how_a_report_is_sent(endpoint: Endpoint, tmp_path: Path) -> None:
    runs = tmp_path / ".turbo" / "runs"
    runs.mkdir(parents=True)
    (runs / "run.json").write_text(json.dumps({"id": "x", "tasks": []}))
    token = 'x"\noutput = "stored'
    variables = {"TURBO_API": endpoint.url, "TURBO_TEAM": "acme", "TURBO_TOKEN": token}
    done = run(["sh", str(CI / "report-run.sh")], variables, tmp_path)
    assert done.returncode == 0
    assert not (tmp_path / "stored").exists()
    check_log(done.stderr)


def test_the_script_and_larder_run_know_the_same_cis() -> None:
    known = re.search(r"^for known in ((?:[^;]|\n)+); do$", (CI / "report-run.sh").read_text(), re.MULTILINE)
    assert known
    pairs = (pair.split(":") for pair in known[1].replace("\\\n", " ").split())
    assert dict(pairs) == sidecar.CI
