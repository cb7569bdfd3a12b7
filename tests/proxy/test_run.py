"""`larder run` and `larder proxy`: the build's own status and variables, and the process of a user."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest
from larder_proxy.listener import variables_for
from larder_proxy.process import PORT
from larder_proxy.server import HEAD_SECONDS

from tests.default_signals import with_default_signals
from tests.web_server import slow
from tools.release.sidecar import pack_sidecar

from .deployment import KEY, Deployment, variables
from .interpreters import OLDEST, python

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


@pytest.fixture(scope="module")
def larder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """larder.pyz, in a folder with a space."""
    file = tmp_path_factory.mktemp("a folder") / "larder.pyz"
    pack_sidecar(file)
    return file


def start(larder: Path, env: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(larder), *arguments],
        env=env,
        cwd=env["HOME"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(larder: Path, env: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    process = start(larder, env, *arguments)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def test_the_status_is_that_of_the_build(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path)
    for status in (0, 3):
        found, _, errors = run(larder, env, "run", "--", "sh", "-c", f"exit {status}")
        assert found == status
        assert errors == "Larder: 0 hits, 0 misses, 0 stored: no tool asked\n"
    assert run(larder, env, "run", "--", "sh", "-c", "kill -9 $$")[0] == 137
    found, _, errors = run(larder, env, "run", "--", "not-a-program")
    assert (found, errors.splitlines()[0]) == (127, "larder run: not-a-program: No such file or directory")
    assert run(larder, env, "run")[0] == 2


def test_options_of_the_build_are_not_those_of_larder(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path)
    _, output, _ = run(larder, env, "run", "--wait", "1", "--", "echo", "--wait", "-h", "--")
    assert output == "--wait -h --\n"


def test_the_build_gets_a_token_of_this_computer_only(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path, LARDER_TOKEN=KEY, TURBO_TOKEN="", LARDER_ID_TOKEN="x")
    _, output, _ = run(larder, env, "run", "--", sys.executable, "-c", SHOW)
    seen = json.loads(output)
    assert KEY not in output
    assert "LARDER_ID_TOKEN" not in seen
    assert seen["NX_SELF_HOSTED_REMOTE_CACHE_ACCESS_TOKEN"] == seen["LARDER_PROXY_TOKEN"]
    assert seen["NX_SELF_HOSTED_REMOTE_CACHE_SERVER"] == seen["LARDER_PROXY"]


@pytest.mark.parametrize(
    ("set", "wanted"),
    [
        ({}, ["127.0.0.1,localhost"] * 2),
        ({"NO_PROXY": "corp.test, localhost"}, ["corp.test, localhost,127.0.0.1"] * 2),
        ({"no_proxy": "a", "NO_PROXY": "b"}, ["b,127.0.0.1,localhost", "a,127.0.0.1,localhost"]),
        ({"no_proxy": "*"}, ["*", "*"]),
    ],
)
def test_no_proxy_of_a_company_is_asked_for_this_computer(
    larder: Path, deployment: Deployment, tmp_path: Path, set: dict[str, str], wanted: list[str]
) -> None:
    """A proxy elsewhere cannot reach the sidecar, and would see its token."""
    env = variables(deployment, tmp_path, HTTP_PROXY="http://127.0.0.1:9", **set)
    env["http_proxy"] = env["HTTP_PROXY"]
    _, output, _ = run(larder, env, "run", "--", sys.executable, "-c", SHOW)
    assert [json.loads(output)[name] for name in ("NO_PROXY", "no_proxy")] == wanted
    put = 'curl -sf -X PUT -u "larder:$LARDER_PROXY_TOKEN" --data-binary x $LARDER_PROXY/plain/a/b'
    assert run(larder, env, "run", "--", "sh", "-c", put)[0] == 0
    assert deployment.artifacts == {"a-b": b"x"}


def test_variables_of_another_sidecar_become_those_of_this_one(
    larder: Path, deployment: Deployment, tmp_path: Path
) -> None:
    """Of a process that has ended, in a shell that still has its variables, or of a build around this one."""
    other = {
        "LARDER_PROXY": "http://127.0.0.1:9",
        "LARDER_PROXY_TOKEN": "former",
        "NX_SELF_HOSTED_REMOTE_CACHE_SERVER": "http://127.0.0.1:9",
        "NX_SELF_HOSTED_REMOTE_CACHE_ACCESS_TOKEN": "former",
        "CCACHE_REMOTE_STORAGE": "http://larder:former@127.0.0.1:9/ccache|layout=bazel",
    }
    env = variables(deployment, tmp_path, **other)
    _, output, _ = run(larder, env, "run", "--", sys.executable, "-c", SHOW)
    seen = json.loads(output)
    address, token = seen["LARDER_PROXY"], seen["LARDER_PROXY_TOKEN"]
    assert "former" not in output
    assert seen["NX_SELF_HOSTED_REMOTE_CACHE_SERVER"] == address
    assert seen["NX_SELF_HOSTED_REMOTE_CACHE_ACCESS_TOKEN"] == token
    assert seen["CCACHE_REMOTE_STORAGE"] == (f"http://larder:{token}@{address.partition('//')[2]}/ccache|layout=bazel")


def test_the_port_of_sccache_is_not_given_to_other_programs_until_it_binds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """sccache fails the build if another program answers there."""
    port = int(variables_for(1, "token", {})["SCCACHE_SERVER_PORT"])
    assert 20_000 <= port < 32_768
    # The next choice is the same, until a program has it.
    monkeypatch.setattr(os, "urandom", lambda size: bytes(size // 2) + b"\1" * (size // 2))
    with closing(socket.socket()) as taken:
        with suppress(OSError):
            taken.bind(("127.0.0.1", 20_000))
        assert variables_for(1, "token", {})["SCCACHE_SERVER_PORT"] != "20000"


def test_variables_that_are_set_stay(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path, CCACHE_REMOTE_STORAGE="redis://own")
    _, output, _ = run(larder, env, "run", "--", sys.executable, "-c", SHOW)
    assert json.loads(output)["CCACHE_REMOTE_STORAGE"] == "redis://own"


def test_turbo_gets_the_address_and_the_token_of_the_sidecar(
    larder: Path, deployment: Deployment, tmp_path: Path
) -> None:
    """They are set already, for the sidecar."""
    env = variables(deployment, tmp_path)
    _, output, _ = run(larder, env, "run", "--", sys.executable, "-c", SHOW)
    seen = json.loads(output)
    assert KEY not in output
    assert seen["TURBO_API"] == seen["LARDER_PROXY"]
    assert seen["TURBO_TOKEN"] == seen["LARDER_PROXY_TOKEN"]
    assert seen["TURBO_TEAM"] == "acme"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"TURBO_API": ""}, "no cache: TURBO_API must be the address of Larder"),
        ({"TURBO_API": "ftp://x"}, "no cache: TURBO_API must be the address of Larder"),
        ({"TURBO_API": "https://[x"}, "no cache: TURBO_API must be the address of Larder"),
        # A byte that is no UTF-8.
        ({"TURBO_TEAM": "\udcff"}, "0 hits, 0 misses"),
    ],
)
def test_without_a_cache_the_build_runs_all_the_same(
    larder: Path, deployment: Deployment, tmp_path: Path, changed: dict[str, str], reason: str
) -> None:
    env = variables(deployment, tmp_path, **changed)
    status, output, errors = run(larder, env, "run", "--", "echo", "built")
    assert (status, output) == (0, "built\n")
    assert reason in errors
    get = 'curl -s -o got -w "%{http_code}" -H "Authorization: Bearer $LARDER_PROXY_TOKEN" $LARDER_PROXY/v1/cache/1'
    assert run(larder, env, "run", "--", "sh", "-c", get)[:2] == (0, "404")


def test_a_build_within_a_build_stores_every_size(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path)
    inner = [sys.executable, str(larder), "run", "--"]
    put = 'head -c 5000000 /dev/zero | curl -s -T - -H "Authorization: Bearer $TURBO_TOKEN" $TURBO_API/v8/artifacts/aa'
    _, _, errors = run(larder, env, "run", "--", *inner, "sh", "-c", put)
    assert errors == "Larder: 0 hits, 0 misses, 1 stored (5.0 MB)\n" * 2
    assert len(deployment.artifacts["aa"]) == 5_000_000


def test_open_files_and_closed_outputs_are_those_of_the_build(
    larder: Path, deployment: Deployment, tmp_path: Path
) -> None:
    """As with `env` or `time`: make passes its job server on, and a shell `<(command)`."""
    env = variables(deployment, tmp_path)
    command = f"{sys.executable} '{larder}' run -- "
    for shell, output, status in (
        (f"echo passed >file; {command} sh -c 'cat <&3' 3<file", "passed\n", 0),
        (f"{command} sh -c 'echo out; exit 3' 2>&-", "out\n", 3),
        (f"{command} sh -c 'exit 3' >&-", "", 3),
    ):
        done = subprocess.run(["sh", "-c", shell], env=env, cwd=tmp_path, capture_output=True, text=True)
        assert (done.stdout, done.returncode) == (output, status), shell
        assert "Traceback" not in done.stderr


def test_folders_that_cannot_be_read_change_nothing(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    # Asking for a file in such a link fails as in a folder of another user.
    for name in (".turbo", "node_modules"):
        (tmp_path / name).symlink_to("x" * 300)
    env = variables(deployment, tmp_path)
    status, output, errors = run(larder, env, "run", "--", "echo", "turbo", "run", "build")
    assert (status, output) == (0, "turbo run build\n")
    assert errors.startswith("Larder: 0 hits")


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("setpriv") is None or os.getuid() != 0,
    reason="root reads everything, so the build must become another user",
)
def test_a_build_cannot_read_the_environment_of_larder_run(
    larder: Path, deployment: Deployment, tmp_path: Path
) -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        shutil.copy(larder, folder / "larder.pyz")
        os.chown(folder, 65_534, 65_534)
        read = 'cat /proc/$PPID/environ >seen 2>&1; tr "\\0" "\\n" <seen'
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        command = [sys.executable, str(folder / "larder.pyz"), "run", "--", "sh", "-c", read]
        env = variables(deployment, folder)
        done = subprocess.run([*user, *command], env=env, cwd=folder, capture_output=True, text=True, timeout=60)
        assert "Permission denied" in done.stdout, done.stderr
        assert KEY not in done.stdout
    finally:
        shutil.rmtree(folder)


PUT_MANY = """
import http.client, os, urllib.parse
parts = urllib.parse.urlsplit(os.environ["LARDER_PROXY"])
headers = {"Authorization": "Bearer " + os.environ["LARDER_PROXY_TOKEN"]}
connection = http.client.HTTPConnection(parts.netloc)
for number in range(150):
    connection.request("PUT", f"/plain/a/{number}", b"x" * 70_000, headers)
    connection.getresponse().read()
"""


def test_a_process_with_few_open_files_stores_everything(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    """moon stores hundreds of files of one task faster than they are uploaded."""
    command = [sys.executable, str(larder), "run", "--", sys.executable, "-c", PUT_MANY]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 48; exec "$@"', "sh", *command],
        env=variables(deployment, tmp_path),
        capture_output=True,
        text=True,
    )
    assert done.stderr == "Larder: 0 hits, 0 misses, 150 stored (10.5 MB)\n"
    assert len(deployment.artifacts) == 150


def test_uploads_are_waited_for(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path)
    put = 'curl -s -X PUT -H "Authorization: Bearer $LARDER_PROXY_TOKEN" --data-binary x $LARDER_PROXY/v1/cache/1'
    status, _, errors = run(larder, env, "run", "--", "sh", "-c", put)
    assert status == 0
    assert deployment.artifacts == {"nx-1": b"x"}
    assert errors == "Larder: 0 hits, 0 misses, 1 stored (1 byte)\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_build_and_the_sidecar(
    larder: Path, deployment: Deployment, tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C goes to both, as in a terminal. SIGTERM goes to `larder run`, which passes it on."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = variables(deployment, tmp_path, TMPDIR=str(temporary))
    command = [sys.executable, str(larder), "run", "--", "sh", "-c", "echo up; exec sleep 60"]
    process = subprocess.Popen(
        with_default_signals(command),
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    if number is signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "Larder: 0 hits" in errors
    assert [*temporary.iterdir()] == []


def test_a_signal_ends_the_wait_for_uploads_and_not_the_status(
    larder: Path, deployment: Deployment, tmp_path: Path
) -> None:
    deployment.broken = slow
    put = 'curl -s -X PUT -H "Authorization: Bearer $LARDER_PROXY_TOKEN" --data-binary x $LARDER_PROXY/v1/cache/1'
    build = ["sh", "-c", f"{put}; exit 3"]
    process = start(larder, variables(deployment, tmp_path), "run", "--", *build)
    while not deployment.asked:
        time.sleep(0.01)
    time.sleep(1)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert errors.endswith("1 not stored (1 no time left)\n")


def test_a_killed_process_leaves_no_file(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    """Of an upload on its way."""
    deployment.broken = slow
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = variables(deployment, tmp_path, TMPDIR=str(temporary))
    put = (
        'head -c 1000000 /dev/zero | curl -s -T - -H "Authorization: Bearer $LARDER_PROXY_TOKEN"'
        " $LARDER_PROXY/v1/cache/1; echo stored; until [ -e go ]; do sleep 0.1; done"
    )
    with start(larder, env, "run", "--", "sh", "-c", put) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stored\n"
        process.kill()
        process.wait()
        (tmp_path / "go").touch()
    assert [*temporary.iterdir()] == []


IN_A_TERMINAL = """
import fcntl, os, sys, termios
terminal = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for number in range(3):
    os.dup2(terminal, number)
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Makes the leader of a session control a terminal."""

COUNT = """
import pathlib, signal, sys, time
counted = []
signal.signal(signal.SIGHUP, lambda *_: counted.append(1))
print("up", flush=True)
while not counted:
    time.sleep(0.01)
time.sleep(1)
pathlib.Path(sys.argv[1]).write_text(str(len(counted)))
"""


@pytest.mark.parametrize("leader", ["larder run", "shell"])
def test_a_closed_terminal_is_one_signal_to_the_build(
    larder: Path, deployment: Deployment, tmp_path: Path, leader: str
) -> None:
    """The system signals only the leader, and all others at its end."""
    ours, theirs = os.openpty()
    build = [sys.executable, "-c", COUNT, str(tmp_path / "count")]
    command = [sys.executable, str(larder), "run", "--", *build]
    if leader == "shell":
        command = ["sh", "-c", '"$@"; exit $?', "sh", *command]
    process = subprocess.Popen(
        with_default_signals([sys.executable, "-c", IN_A_TERMINAL, os.ttyname(theirs), *command]),
        env=variables(deployment, tmp_path),
        start_new_session=True,
    )
    assert os.read(ours, 2) == b"up"
    os.close(theirs)
    os.close(ours)
    process.wait(60)
    ends = time.monotonic() + 60
    while not (tmp_path / "count").exists():
        assert time.monotonic() < ends
        time.sleep(0.05)
    assert (tmp_path / "count").read_text() == "1"


@pytest.mark.parametrize("name", ["HUP", "INT", "TERM"])
def test_an_ignored_signal_is_ignored_by_the_build(
    larder: Path, deployment: Deployment, tmp_path: Path, name: str
) -> None:
    """nohup ignores SIGHUP, and a shell SIGINT for what runs in the background."""
    build = ["sh", "-c", f"kill -{name} $$; exit 3"]
    command = [sys.executable, str(larder), "run", "--", *build]
    ignoring = ["sh", "-c", f"trap '' {name}; exec \"$@\"", "sh", *command]
    assert subprocess.run(ignoring, env=variables(deployment, tmp_path)).returncode == 3


def test_a_process_of_the_user(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path)
    assert run(larder, env, "proxy", "status")[::2] == (
        1,
        "larder proxy does not run. Start it with: larder proxy start\n",
    )
    status, output, errors = run(larder, env, "proxy", "start", "--port", "0")
    assert (status, errors) == (0, "")
    assert output.startswith("larder proxy listens at http://127.0.0.1:")
    # 0 is any free port.
    assert str(PORT) not in output
    try:
        again = run(larder, env, "proxy", "start")
        assert again == (0, output, "")
        for name, value in (("TURBO_TEAM", "other"), ("TURBO_TOKEN", f"{KEY}x")):
            for act in ("start", "stop"):
                status, _, errors = run(larder, {**env, name: value}, "proxy", act)
                assert status == 1
                assert errors.startswith(f"larder proxy runs for acme at {deployment.url}, cred")
                assert "and this is " in errors
        state = tmp_path / ".cache" / "larder" / "proxy.json"
        assert state.stat().st_mode & 0o777 == 0o600
        _, lines, _ = run(larder, env, "proxy", "env", "nx")
        assert [line.partition("=")[0] for line in lines.splitlines()] == [
            "export LARDER_PROXY", "export LARDER_PROXY_TOKEN", "export NO_PROXY", "export no_proxy",
            "export NX_SELF_HOSTED_REMOTE_CACHE_SERVER", "export NX_SELF_HOSTED_REMOTE_CACHE_ACCESS_TOKEN",
        ]  # fmt: skip
        put = 'curl -s -X PUT -u "larder:$LARDER_PROXY_TOKEN" --data-binary x $LARDER_PROXY/gradle/ab'
        subprocess.run(["sh", "-c", f"{lines}{put}"], check=True, env=env)
        ends = time.monotonic() + 60
        while json.loads(run(larder, env, "proxy", "status")[1])["stored"] != 1:
            assert time.monotonic() < ends
    finally:
        stopped = run(larder, env, "proxy", "stop")
    assert stopped == (0, "", "")
    assert not state.exists()
    assert deployment.artifacts == {"gradle-ab": b"x"}


def test_a_refused_key_is_the_last_line_and_the_status(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    deployment.tokens.clear()
    env = variables(deployment, tmp_path)
    get = 'curl -s -H "Authorization: Bearer $LARDER_PROXY_TOKEN" $LARDER_PROXY/v1/cache/'
    put = f"{get}1 -X PUT --data-binary x"
    _, _, errors = run(larder, env, "run", "--", "sh", "-c", f"{get}1; {put}; {get}2")
    off = "no cache: Larder refuses the token (401)"
    assert errors.splitlines()[-1] == (f"Larder: {off}. 0 hits, 2 misses, 0 stored, 1 not stored (1 {off[10:]})")
    run(larder, env, "proxy", "start", "--port", "0")
    try:
        lines = run(larder, env, "proxy", "env", "nx")[1]
        subprocess.run(["sh", "-c", f"{lines}{get}1"], check=True, env=env)
        status = json.loads(run(larder, env, "proxy", "status")[1])
        assert (status["off"], status["misses"]) == (off[10:], 1)
        assert status["for"].startswith("acme at ")
    finally:
        run(larder, env, "proxy", "stop")


def serving(larder: Path, env: dict[str, str], file: Path) -> subprocess.Popen[str]:
    process = start(larder, env, "proxy", "serve", "--port", "0")
    ends = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < ends
        time.sleep(0.01)
    return process


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_strangers_do_not_swell_a_process(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    """200 connections without its token, in four ways: its tool is served, and it lives on."""
    env, file = variables(deployment, tmp_path), tmp_path / ".cache" / "larder" / "proxy.json"
    deployment.artifacts["gradle-ab"] = b"x"
    process = serving(larder, env, file)
    try:
        _, port, token, _ = json.loads(file.read_text())
        head = b"PUT /v8/artifacts/ab HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % port
        field = b"a: %s\r\n" % (b"x" * 900)
        body = b"Content-Length: 1000000000\r\n\r\n" + b"x" * 100_000
        url = f"http://127.0.0.1:{port}/gradle/ab"
        strangers = []
        for number in range(200):
            one = socket.create_connection(("127.0.0.1", port), 10)
            one.setblocking(False)
            one.send((b"", head, head + field * 34, head + body)[number % 4])
            if number % 8 > 3:
                one.shutdown(socket.SHUT_WR)
            strangers.append(one)
        with httpx.Client(auth=("", token), trust_env=False) as tool:
            began = time.monotonic()
            assert tool.get(url).content == b"x"
            # At the end of the time for a head, all of them would be closed.
            assert time.monotonic() - began < HEAD_SECONDS / 2
            status = Path(f"/proc/{process.pid}/status").read_text()
            [kilobytes] = re.findall(r"VmHWM:\s+(\d+)", status)
            assert int(kilobytes) < 80_000
            for one in strangers:
                one.close()
            assert tool.get(url).content == b"x"
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_two_starts_at_once_have_one_process(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path)
    with closing(socket.create_server(("127.0.0.1", 0))) as one:
        port = str(one.getsockname()[1])
    both = [start(larder, env, "proxy", "start", "--port", port) for _ in range(2)]
    try:
        outputs = {one.communicate(timeout=60) for one in both}
        assert len(outputs) == 1, outputs
        assert [one.returncode for one in both] == [0, 0]
    finally:
        assert run(larder, env, "proxy", "stop")[0] == 0


def test_who_listens_at_the_port_of_a_killed_process_gets_no_builds(
    larder: Path, deployment: Deployment, tmp_path: Path
) -> None:
    """It can be another user of the computer, who would choose what the tools restore."""
    env = variables(deployment, tmp_path)
    file = tmp_path / ".cache" / "larder" / "proxy.json"
    killed = serving(larder, env, file)
    killed.kill()
    killed.communicate(timeout=60)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "2")
        handler.end_headers()
        handler.wfile.write(b"{}")

    deployment.broken = answer
    port = int(deployment.url.rpartition(":")[2])
    file.write_text(json.dumps([killed.pid, port, "x", ""]))
    for act in ("env", "status", "stop"):
        status, output, errors = run(larder, env, "proxy", act)
        assert (status, output) == (1, "")
        assert errors.startswith("larder proxy does not run")
    assert deployment.asked == []


def test_a_process_leaves_the_file_of_another(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path)
    file = tmp_path / ".cache" / "larder" / "proxy.json"
    first = serving(larder, env, file)
    file.write_text(json.dumps([os.getpid(), 1, "x", ""]))
    first.terminate()
    first.communicate(timeout=60)
    assert first.returncode == 0
    assert file.exists()


def test_a_port_in_use_is_an_error(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path)
    port = deployment.url.rpartition(":")[2]
    status, _, errors = run(larder, env, "proxy", "start", "--port", port)
    assert status == 1
    assert "larder proxy did not start" in errors
    assert "in use" in errors


@pytest.mark.skipif(python(OLDEST) is None, reason=f"Python {OLDEST} is not installed")
def test_it_runs_on_the_oldest_python_without_any_package(larder: Path, deployment: Deployment, tmp_path: Path) -> None:
    env = variables(deployment, tmp_path)
    done = subprocess.run(
        [python(OLDEST) or "", "-I", "-S", str(larder), "run", "--", "echo", "built"],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "built\n"), done.stderr
