"""The scripts of ci/ check what a server sends before it reaches a variable or the log."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
import yaml

CI = Path(__file__).resolve().parents[2] / "ci"
TOKEN = "larder_ci_" + "a" * 70
GIVEN = json.dumps({"access_token": TOKEN, "token_type": "Bearer"})
HOSTILE = [
    f'{{"access_token": "x"}}\n{{"access_token": "{TOKEN}"}}',
    f'{{"access_token": "{TOKEN}\nNODE_OPTIONS=--require=/tmp/evil.js"}}',
    f'{{"access_token": "{TOKEN}\rNODE_OPTIONS=x"}}',
    f'{{"access_token": "{TOKEN}%0ANODE_OPTIONS=x"}}',
    f'{{"access_token": "{"a" * 257}"}}',
    '{"access_token": "short"}',
    '{"access_token": ""}',
    '{"error": "x\n::add-mask::true\n::set-env name=NODE_OPTIONS::x\n##[add-mask]x"}',
    "::add-mask::a",
    "\x1b]0;title\x07\x1b[2J\x9b31m",
    "::" * 5_000,
    "",
]


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
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )
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


def run(
    command: list[str], variables: Mapping[str, str], cwd: Path
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], **variables},
        input=b"id.token",
        capture_output=True,
        timeout=60,
        cwd=cwd,
    )


def check_log(text: bytes) -> None:
    """No line begins with a command of GitHub, and no byte changes a terminal."""
    assert all(char in b"\n" or 32 <= char < 127 for char in text), text
    for line in text.splitlines():
        assert not line.lstrip().startswith(b"::"), line
        assert b"##[" not in line
        assert len(line) < 700


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
def test_inputs_with_other_characters_are_refused(
    endpoint: Endpoint, tmp_path: Path, name: str, value: str
) -> None:
    done = exchange(endpoint, tmp_path, **{name: value.replace("{url}", endpoint.url)})
    assert (done.returncode, done.stdout) == (1, b"")
    check_log(done.stderr)


def github(
    endpoint: Endpoint, folder: Path, team: str = "acme", team_id: str = ""
) -> tuple[bytes, bytes, bytes]:
    """Run the action. Returns its log, and what it wrote for the steps after it."""
    action = yaml.safe_load((CI / "github" / "action.yml").read_text())
    (step,) = action["runs"]["steps"]
    for name in ("env", "output"):
        (folder / name).write_text("")
    done = run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
        {
            "TURBO_API": f"{endpoint.url}/",
            "TURBO_TEAM": team,
            "TURBO_TEAMID": team_id,
            "LARDER_RULE": "",
            "GITHUB_ACTION_PATH": str(CI / "github"),
            "GITHUB_ENV": str(folder / "env"),
            "GITHUB_OUTPUT": str(folder / "output"),
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{endpoint.url}/id-token?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request",
        },
        folder,
    )
    assert done.returncode == 0
    return (
        done.stdout + done.stderr,
        (folder / "env").read_bytes(),
        (folder / "output").read_bytes(),
    )


def test_the_action_gives_turbo_three_variables(endpoint: Endpoint, tmp_path: Path) -> None:
    log, variables, output = github(endpoint, tmp_path)
    assert log == f"::add-mask::{TOKEN}\n".encode()
    expected = f"TURBO_API={endpoint.url}\nTURBO_TOKEN={TOKEN}\nTURBO_TEAM=acme\n"
    assert variables == expected.encode()
    assert output == f"token={TOKEN}\n".encode()


@pytest.mark.parametrize(
    ("reply", "team"), [(HOSTILE[1], "acme"), (HOSTILE[7], "acme"), (GIVEN, "acme\nNODE_OPTIONS=x")]
)
def test_the_action_writes_no_other_variable(
    endpoint: Endpoint, tmp_path: Path, reply: str, team: str
) -> None:
    endpoint.reply = reply
    log, variables, output = github(endpoint, tmp_path, team)
    assert (variables, output) == (b"", b"")
    own = b"::warning::No token for the cache"
    check_log(b"\n".join(line for line in log.splitlines() if not line.startswith(own)))


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
def test_a_report_that_fails_is_one_plain_line(
    endpoint: Endpoint, tmp_path: Path, reply: str
) -> None:
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
