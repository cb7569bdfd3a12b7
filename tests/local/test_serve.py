"""Starting, stopping and restarting."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from larder_cli.doctor.findings import PREFLIGHT_LINE
from local.banner import banner
from local.turbo_env import TurboEnv
from tests.local.stub_service import BUCKET, ROOT, StubCloud, alive, eventually, write_service

# Each starts processes, and waits for them.
pytestmark = pytest.mark.slow


def serve(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to fail."""
    return subprocess.run(
        [sys.executable, "-m", "local", "serve"],
        cwd=ROOT,
        env={**os.environ, "TEMPLATE": str(write_service(folder)), **variables},
        capture_output=True,
        text=True,
        timeout=30,
    )


def turbo_env(cloud: StubCloud) -> dict[str, str]:
    lines = (cloud.data / "turbo.env").read_text().splitlines()
    return dict(line.removeprefix("# ").split("=", 1) for line in lines)


def cache_status(lines: dict[str, str]) -> int:
    return httpx.get(
        f"{lines['TURBO_API']}/v8/artifacts/status",
        params={"slug": lines["TURBO_TEAM"]},
        headers={"authorization": f"Bearer {lines['TURBO_TOKEN']}"},
        trust_env=False,
        timeout=30,
    ).status_code


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything(tmp_path: Path, with_signal: signal.Signals) -> None:
    cloud = StubCloud(tmp_path)
    children = cloud.children()
    assert len(children) >= 3
    assert cloud.stop(with_signal) == 0
    assert not any(alive(pid) for pid in children)
    assert not (cloud.data / "cloud.json").exists()


def test_stops_promptly_with_requests_in_progress(tmp_path: Path) -> None:
    template = write_service(tmp_path)
    template.write_text(template.read_text().replace("Timeout: 5\n", "Timeout: 25\n"))
    cloud = StubCloud(tmp_path, template=template)
    request = subprocess.Popen(
        [sys.executable, "-c", f"import httpx; httpx.get('{cloud.url}/misbehave/sleep')"], stderr=subprocess.DEVNULL
    )
    assert eventually((tmp_path / "functions" / "things" / "sleeps").exists)
    children, started = cloud.children(), time.monotonic()
    assert cloud.stop() == 0
    assert time.monotonic() - started < 15
    assert not any(alive(pid) for pid in children)
    request.wait(20)


def test_after_a_kill_the_children_end_and_the_next_start_finds_everything(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path)
    cloud.s3().put_object(Bucket=BUCKET, Key="kept", Body=b"1")
    places = {name: url for name, url in cloud.description["environment"].items() if "URL" in name}
    children = cloud.children()
    cloud.kill()
    assert eventually(lambda: not any(alive(pid) for pid in children))
    cloud.start()
    try:
        assert cloud.s3().get_object(Bucket=BUCKET, Key="kept")["Body"].read() == b"1"
        environment = cloud.description["environment"]
        assert {name: environment[name] for name in places} == places
    finally:
        cloud.stop()


def test_a_child_that_dies_is_replaced(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path)

    def works() -> bool:
        try:
            cloud.s3().head_bucket(Bucket=BUCKET)
            cloud.dynamodb().list_tables()
        except (BotoCoreError, ClientError):
            return False
        return httpx.get(f"{cloud.url}/echo/a", trust_env=False, timeout=20).status_code == 200

    try:
        for module in ("local.tables", "local.object_storage", "local.workers"):
            os.kill(cloud.child(module), signal.SIGKILL)
            assert eventually(works), module
    finally:
        assert cloud.stop() == 0


def test_a_port_in_use_is_told_before_anything_is_started(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = serve(tmp_path, PORT=str(port), DATA=str(tmp_path / "data"))
    assert result.returncode == 1
    assert result.stderr == f"larder: port {port} is in use: choose another with PORT=...\n"
    assert result.stdout == ""
    assert not (tmp_path / "data" / "turbo.env").exists()
    assert list((tmp_path / "data" / "logs").iterdir()) == []


def test_a_folder_in_use_is_rejected(cloud: StubCloud, tmp_path: Path) -> None:
    result = serve(tmp_path, PORT="0", DATA=str(cloud.data))
    assert result.returncode == 1
    assert "a local cloud already runs on" in result.stderr
    assert httpx.get(f"{cloud.url}/echo/a", trust_env=False).status_code == 200


def test_a_folder_with_tables_in_another_engine_is_rejected(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "lock").touch()
    known = {"access_key_id": "LOCAL", "secret_access_key": "x", "signing_secret": "x"}
    (data / "local.json").write_text(json.dumps({**known, "engine": "dynamodb-local"}))
    result = serve(tmp_path, PORT="0", DATA=str(data))
    assert result.returncode == 1
    assert f"the tables in {data} are in DynamoDB Local" in result.stderr


def test_a_folder_with_other_files_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    (tmp_path / "home" / "letter.txt").write_text("dear ...")
    result = serve(tmp_path, PORT="0", DATA=str(tmp_path / "home"))
    assert result.returncode == 1
    assert "contains other files" in result.stderr
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("PORT", "70000", "0 to 65535"),
        ("FUNCTION_WORKERS", "0", "at least 1"),
        ("THROTTLE", "500", "a rate and a burst"),
    ],
)
def test_a_wrong_setting_is_told(tmp_path: Path, variable: str, value: str, expected: str) -> None:
    result = serve(tmp_path, **{"PORT": "0", "DATA": str(tmp_path / "data"), variable: value})
    assert result.returncode == 2
    assert expected in result.stderr


def test_an_invalid_setting_ends_the_start_with_one_line(tmp_path: Path) -> None:
    real = {"TEMPLATE": str(ROOT / "template.yaml"), "FUNCTION_WORKERS": "1"}
    wrong = {"LARDER_SCRYPT_COST": "20000"}
    result = serve(tmp_path, PORT="0", DATA=str(tmp_path / "data"), **real, **wrong)
    assert result.returncode == 1
    assert result.stderr == ("larder: LARDER_SCRYPT_COST must be a power of two from 1024 to 262144, not '20000'\n")


def test_an_unknown_variable_is_reported(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path, LARDER_GREETING="hi", LARDER_STACK="x", LARDER_RETENTION_DAY="3")
    try:
        assert eventually(lambda: "stop: Ctrl-C" in cloud.screen)
        (remark,) = (line for line in cloud.screen.splitlines() if "LARDER_" in line)
        assert remark.strip().startswith("LARDER_RETENTION_DAY is not a setting of Larder")
    finally:
        cloud.stop()


def test_secrets_are_readable_only_by_their_owner(cloud: StubCloud) -> None:
    assert stat.S_IMODE(cloud.data.stat().st_mode) == 0o700
    for name in ("cloud.json", "local.json"):
        assert stat.S_IMODE((cloud.data / name).stat().st_mode) == 0o600


def test_listens_on_loopback_by_default(cloud: StubCloud) -> None:
    assert cloud.url.startswith("http://127.0.0.1:")
    for name, value in cloud.description["environment"].items():
        if name.startswith("AWS_ENDPOINT_URL"):
            assert value.startswith("http://127.0.0.1:")


def test_listening_on_every_address_it_returns_reachable_urls(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path, HOST="0.0.0.0", PUBLIC_HOST="localhost")
    try:
        environment = cloud.description["environment"]
        assert cloud.url.startswith("http://localhost:")
        assert environment["AWS_ENDPOINT_URL_S3"].startswith("http://localhost:")
        assert environment["AWS_ENDPOINT_URL_DYNAMODB"].startswith("http://127.0.0.1:")
        assert httpx.get(f"{cloud.url}/echo/a", trust_env=False).status_code == 200
    finally:
        cloud.stop()


def test_the_first_start_makes_a_key_and_later_ones_keep_it(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path, template=ROOT / "template.yaml")
    try:
        first = turbo_env(cloud)
        assert stat.S_IMODE((cloud.data / "turbo.env").stat().st_mode) == 0o600
        assert eventually(lambda: "stop: Ctrl-C" in cloud.screen)
        for name in ("TURBO_API", "TURBO_TOKEN", "TURBO_TEAM"):
            assert f"{name}={first[name]}" in cloud.screen
        assert PREFLIGHT_LINE in cloud.screen
        assert "Created: the operator operator@larder.local" in cloud.screen
        assert "can sign up (LARDER_SIGN_UP_POLICY=open)" in cloud.screen
        assert cloud.description["environment"]["LARDER_OPERATOR_EMAILS"] == "operator@larder.local"
        assert cache_status(first) == 200
        assert cache_status({**first, "TURBO_TOKEN": first["TURBO_TOKEN"][:-1] + "_"}) == 401

        cloud.stop()
        cloud.start()
        second = turbo_env(cloud)
        assert second["TURBO_TOKEN"] == first["TURBO_TOKEN"]
        assert second["TURBO_API"] == cloud.url
        assert cache_status(second) == 200

        cloud.stop()
        (cloud.data / "turbo.env").unlink()
        cloud.start()
        third = turbo_env(cloud)
        assert cache_status(third) == 200
        assert cache_status({**third, "TURBO_TOKEN": first["TURBO_TOKEN"]}) == 401
        # The key is stored only in turbo.env.
        for path in cloud.data.rglob("*"):
            if path.is_file() and path.name != "turbo.env":
                assert third["TURBO_TOKEN"] not in path.read_text(errors="replace"), path
    finally:
        cloud.stop()


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ("operator@larder.local", "the operator operator@larder.local, the team my-team"),
        ("ada@acme.example, Operator@larder.local", "the operator operator@larder.local"),
        ("ada@acme.example", "the user operator@larder.local, the team my-team"),
    ],
)
def test_the_screen_says_whether_the_user_is_an_operator(tmp_path: Path, operators: str, expected: str) -> None:
    turbo = TurboEnv("http://127.0.0.1:3000", "larder_x", "my-team", "id")
    assert expected in banner(
        turbo.api_url, tmp_path, turbo, first_start=True, operator_emails=operators, sign_up_policy="open"
    )


def test_a_damaged_journal_is_told_and_nothing_is_guessed(tmp_path: Path) -> None:
    journals = tmp_path / "data" / "dynamodb"
    journals.mkdir(parents=True, mode=0o700)
    (tmp_path / "data" / "lock").touch()
    (journals / "journal-1.jsonl").write_text("0badc0de [[\n0badc0de [[\n")
    result = serve(tmp_path, PORT="0", DATA=str(tmp_path / "data"))
    assert result.returncode == 1
    assert "journal-1.jsonl: line 1 is damaged" in result.stderr
    assert (journals / "journal-1.jsonl").exists()


def test_the_demo_says_what_it_lacks(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "local", "demo", "--data", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert "the demo needs node, which is not installed" in result.stderr


def test_help_lists_every_option() -> None:
    text = subprocess.run(
        [sys.executable, "-m", "local", "serve", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for variable in (
        "PORT",
        "HOST",
        "PUBLIC_HOST",
        "DATA",
        "FUNCTION_WORKERS",
        "EXPIRY_SECONDS",
        "RUNTIME",
        "THROTTLE",
        "CONCURRENCY",
    ):
        assert re.search(rf"\b{variable}\b", text)
