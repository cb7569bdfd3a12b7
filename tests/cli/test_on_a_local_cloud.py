"""The installed command against a running local cloud, for behaviour that in-memory stores cannot show."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from tests.e2e.cloud import LocalCloud, run_larder, start

pytestmark = pytest.mark.slow

COMMAND = Path(sys.executable).with_name("larder")


@pytest.fixture(scope="module")
def local_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    server = start(request.config.rootpath, tmp_path_factory.mktemp("cloud") / "data")
    yield server
    server.stop()


def larder(cloud: LocalCloud, *arguments: str) -> Any:
    """Run the command as an operator's script would, with AWS variables of another account set."""
    environment = os.environ | {"AWS_PROFILE": "of-another-account", "LARDER_STACK": "another"}
    return run_larder("--local", cloud.data, *arguments, timeout_s=120, environment=environment)


def client(cloud: LocalCloud, token: str) -> httpx.Client:
    return httpx.Client(
        base_url=cloud.url,
        params={"slug": cloud.team},
        headers={"Authorization": f"Bearer {token}"},
        timeout=30,
        trust_env=False,
    )


def body_of(hash: str) -> bytes:
    return f"the body of {hash}".encode() * 20


def put(http: httpx.Client, number: int, kind: str) -> str:
    hash = f"{kind}{number:015x}"
    headers = {
        "x-artifact-duration": str(number),
        "x-artifact-tag": f"tag+{number:04d}",
        "content-type": "application/octet-stream",
    }
    stored = http.put(f"/v8/artifacts/{hash}", content=body_of(hash), headers=headers)
    assert stored.status_code == 202, stored.text
    return hash


def check(http: httpx.Client, hash: str) -> None:
    got = http.get(f"/v8/artifacts/{hash}")
    number = int(hash[1:], 16)
    assert (got.status_code, got.content) == (200, body_of(hash))
    assert got.headers["x-artifact-tag"] == f"tag+{number:04d}"
    assert got.headers["x-artifact-duration"] == str(number)


def lose_the_index(cloud: LocalCloud) -> int:
    table = cloud.table("LARDER_ARTIFACTS_TABLE")
    items = cloud.items("LARDER_ARTIFACTS_TABLE")
    for item in items:
        table.delete_item(Key={name: item[name] for name in ("owner", "hash")})
    return len(items)


def test_a_created_key_gives_access_until_it_is_revoked(local_cloud: LocalCloud) -> None:
    email = ("--email", "ada@acme.example", "--name", "Ada")
    larder(local_cloud, "users", "create", *email)
    larder(local_cloud, "teams", "add-member", local_cloud.team, "ada@acme.example")
    user = ("--user", "ada@acme.example")
    made = larder(local_cloud, "keys", "create", *user, "--team", local_cloud.team)
    with client(local_cloud, made["key"]) as http:
        check(http, put(http, 1, "a"))
        larder(local_cloud, "keys", "revoke", made["id"])
        assert http.get("/v8/artifacts/status").status_code == 401


@pytest.mark.thorough
def test_key_limits_rotation_and_deletion_take_effect(local_cloud: LocalCloud) -> None:
    larder(local_cloud, "users", "create", "--email", "bob@acme.example", "--name", "Bob")
    user = ("--user", "bob@acme.example")

    def statuses(token: str, times: int) -> list[int]:
        with client(local_cloud, token) as http:
            http.params = httpx.QueryParams()
            return [http.get("/v8/artifacts/status").status_code for _ in range(times)]

    counted = larder(local_cloud, "keys", "create", *user, "--remaining", "2")
    assert statuses(counted["key"], 3) == [200, 200, 401]
    limited = larder(local_cloud, "keys", "create", *user, "--rate-limit-max", "2")
    assert statuses(limited["key"], 3) == [200, 200, 429]
    old = larder(local_cloud, "keys", "create", *user, "--expires-in", "10m")
    new = larder(local_cloud, "keys", "rotate", old["id"], "--overlap", "1s")
    ended = datetime.fromisoformat(new["old_expires_at"])
    time.sleep(max(0.0, (ended - datetime.now(UTC)).total_seconds()) + 0.1)
    assert statuses(old["key"], 1) == [401]
    assert statuses(new["key"], 1) == [200]
    larder(local_cloud, "keys", "delete-expired")
    left = [key["id"] for key in larder(local_cloud, "keys", "list", *user)]
    assert left == [limited["id"], new["id"]]


@pytest.mark.thorough
def test_an_index_is_rebuilt_during_uploads(local_cloud: LocalCloud) -> None:
    with client(local_cloud, local_cloud.token) as http:
        before = [put(http, number, "b") for number in range(40)]
        assert lose_the_index(local_cloud) > len(before)
        written: list[str] = []
        done = Event()

        def write() -> None:
            with client(local_cloud, local_cloud.token) as other:
                # Mostly new hashes, and sometimes one that is being rebuilt.
                while not done.is_set() and len(written) < 500:
                    number = len(written)
                    written.append(put(other, number % 40, "b") if number % 3 == 0 else put(other, number, "c"))

        writer = Thread(target=write)
        writer.start()
        try:
            output = larder(local_cloud, "rebuild-index")
        finally:
            done.set()
            writer.join(60)
        assert output["objects"] >= len(before)
        hashes = sorted({*before, *written})
        for hash in hashes:
            check(http, hash)

    again = larder(local_cloud, "rebuild-index")
    assert again["indexed"] == 0
    items = [item for item in local_cloud.items("LARDER_ARTIFACTS_TABLE") if "created_at" in item]
    shown = larder(local_cloud, "teams", "show", local_cloud.team)
    assert shown["artifacts"] == len(items)
    assert shown["stored_bytes"] == sum(int(item["size_bytes"]) for item in items)


def test_a_terminal_shows_the_count_and_the_summary(local_cloud: LocalCloud) -> None:
    terminal, child_end = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "--local", local_cloud.data, "rebuild-index"],
        stdout=subprocess.PIPE,
        stderr=child_end,
        env=os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
    ) as process:
        os.close(child_end)
        shown = b""
        # Reading a terminal after its last process has exited raises an error instead of ending.
        try:
            while piece := os.read(terminal, 4096):
                shown += piece
        except OSError:
            pass
        finally:
            os.close(terminal)
        assert process.stdout is not None
        summary = process.stdout.read().decode()
    assert process.returncode == 0
    assert b" objects" in shown
    assert b"/s" in shown
    assert "already current" in summary
    assert "\x1b" not in summary


@pytest.mark.thorough
def test_rotating_the_signing_secret_keeps_users_signed_in(local_cloud: LocalCloud) -> None:
    def session(http: httpx.Client) -> Any:
        return http.get("/api/auth/get-session").raise_for_status().json()

    def start_again() -> None:
        local_cloud.stop()
        local_cloud.start()

    with httpx.Client(base_url=local_cloud.url, trust_env=False, timeout=30) as http:
        person = {"name": "Eve", "email": "eve@acme.example", "password": "correct horse"}
        signed_up = http.post("/api/auth/sign-up/email", json=person, headers={"origin": local_cloud.url})
        assert signed_up.status_code == 200, signed_up.text
        before = dict(http.cookies)
        larder(local_cloud, "rotate-signing-secret")
        start_again()
        assert session(http)["user"]["name"] == "Eve"
        assert dict(http.cookies) != before
        larder(local_cloud, "rotate-signing-secret", "--force")
        start_again()
        assert session(http)["user"]["name"] == "Eve"
        larder(local_cloud, "rotate-signing-secret", "--drop-old")
        start_again()
        assert session(http) is None


def test_a_stopped_cloud_is_reported(local_cloud: LocalCloud) -> None:
    local_cloud.stop()
    try:
        done = subprocess.run(
            [COMMAND, "--local", local_cloud.data, "teams", "list"], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert "no local cloud is running on" in done.stderr
        assert "make serve" in done.stderr
    finally:
        local_cloud.start()
