"""`larder smoke` against a local cloud: it passes, and each fault gets the right advice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from . import cloud
from .cloud import LocalCloud
from .front import Fault, Passing, front

pytestmark = pytest.mark.e2e

COMMAND = Path(sys.executable).with_name("larder")
LARGE = "1MB"
"""Large enough to be redirected. The first test uses the default of 50 MB."""
AT_MOST_S = 60
LIMIT_OF_A_PROXY = 1024 * 1024


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURBO_")}
    return subprocess.run(
        [COMMAND, *arguments], env=kept | environment, capture_output=True, text=True, timeout=2 * AT_MOST_S
    )


def smoke(url: str, key: str, team: str | None = None) -> dict[str, dict[str, Any]]:
    """The failed checks, by name."""
    done = run(*("smoke", "--json", "--large", LARGE), TURBO_API=url, TURBO_TOKEN=key, TURBO_TEAM=team or "")
    report = json.loads(done.stdout)
    failed = {check["check"]: check for check in report["checks"] if check["outcome"] != "passed"}
    assert done.returncode == (1 if failed else 0), done.stderr
    assert report["failed"] == len(failed)
    assert key not in done.stdout + done.stderr
    return failed


@pytest.fixture(scope="module")
def local_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """One that refuses uploads above the quota, so that a team can be over it."""
    data = tmp_path_factory.mktemp("cloud") / "data"
    with cloud.running(request.config.rootpath, data, LARDER_OVER_QUOTA="refuse") as server:
        yield server


@pytest.fixture(scope="module")
def team(local_cloud: LocalCloud) -> str:
    """A team for these tests, which change its settings."""
    local_cloud.larder("users", "create", "--email", "ada@acme.example", "--name", "Ada")
    owner = ("--owner", "ada@acme.example")
    local_cloud.larder("teams", "create", "--name", "Acme", "--slug", "acme", *owner)
    return "acme"


def key_of(cloud: LocalCloud, *options: str) -> str:
    return str(cloud.larder("keys", "create", "--user", "ada@acme.example", *options)["key"])


@pytest.fixture(scope="module")
def key(local_cloud: LocalCloud, team: str) -> str:
    """A key of a team that stores an artifact."""
    key = key_of(local_cloud, "--team", team)
    stored = httpx.put(
        f"{local_cloud.url}/v8/artifacts/08e4547d5347b63f",
        content=b"hello",
        headers={"authorization": f"Bearer {key}"},
        trust_env=False,
    )
    assert stored.status_code == 202
    return key


# ----------------------------------------------------------------------------------- passing


def test_a_local_cloud_passes_every_check_within_a_minute(local_cloud: LocalCloud) -> None:
    done = run("--local", local_cloud.data, "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    report, _, requests = done.stdout.partition("\n\n")
    *checks, summary = report.splitlines()[1:]
    assert all(line.startswith("    ok  ") for line in checks)
    assert "a large artifact is uploaded straight to S3" in done.stdout
    assert "(50 MB)" in done.stdout
    passed, _, seconds = summary.removesuffix(" s").partition(" checks passed in ")
    assert passed == f"{len(checks)} of {len(checks)}"
    assert int(seconds) < AT_MOST_S
    kinds = ("OPTIONS", "status", "PUT", "GET of 10 kB", "GET of 100 kB", "GET that", "S3, to")
    _title, _heads, _line, *rows = requests.splitlines()
    for kind, row in zip(kinds, rows, strict=True):
        *_, connect, first, median = row.split()
        assert row.startswith(kind)
        assert 0 <= int(connect) <= int(first) + AT_MOST_S * 1_000
        assert int(median) < AT_MOST_S * 1_000


def test_make_smoke_takes_url_key_and_team(local_cloud: LocalCloud) -> None:
    # The Makefile sets every variable; those that the caller omits are empty.
    done = run(
        *("smoke", "--large", LARGE),
        TURBO_API=f"{local_cloud.url}/",
        TURBO_TOKEN=local_cloud.token,
        TURBO_TEAM=local_cloud.team,
        LARDER_STACK="",
        LARDER_LOCAL="",
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.thorough
def test_only_one_byte_of_each_artifact_remains(local_cloud: LocalCloud, key: str, team: str) -> None:
    before = local_cloud.larder("teams", "show", team)
    assert smoke(local_cloud.url, key) == {}
    left = local_cloud.larder("teams", "show", team)
    assert left["stored_bytes"] - before["stored_bytes"] == 7
    assert left["artifacts"] - before["artifacts"] == 7


@pytest.mark.thorough
def test_nothing_remains_if_the_key_can_delete(local_cloud: LocalCloud, key: str, team: str) -> None:
    before = local_cloud.larder("teams", "show", team)
    rights = ("--permissions", "artifacts=read,write,manage")
    assert smoke(local_cloud.url, key_of(local_cloud, "--team", team, *rights)) == {}
    left = local_cloud.larder("teams", "show", team)
    assert left["stored_bytes"] == before["stored_bytes"]


# --------------------------------------------------------------------------- wrong keys and URLs


def test_a_wrong_key(local_cloud: LocalCloud) -> None:
    (check,) = smoke(local_cloud.url, "larder_" + "x" * 64).values()
    assert check["found"].startswith("401 unauthorized")
    assert "larder keys create" in check["advice"]


def test_a_key_for_another_team(local_cloud: LocalCloud, key: str) -> None:
    (check,) = smoke(local_cloud.url, key, local_cloud.team).values()
    assert check["found"].startswith("403 not_a_team_member")
    assert "--team" in check["advice"]


def test_a_read_only_key(local_cloud: LocalCloud, team: str) -> None:
    failed = smoke(local_cloud.url, key_of(local_cloud, "--team", team, "--permissions", "artifacts=read"))
    assert "use a key that can write" in failed["an artifact can be uploaded and downloaded"]["advice"]
    assert failed["a large artifact is downloaded by redirect"]["outcome"] == "not tried"


def test_a_key_that_is_used_up_during_the_run(local_cloud: LocalCloud, team: str) -> None:
    failed = smoke(local_cloud.url, key_of(local_cloud, "--team", team, "--remaining", "2"))
    assert "larder keys create" in failed["an artifact can be uploaded and downloaded"]["advice"]


def test_a_url_with_a_path(local_cloud: LocalCloud, key: str) -> None:
    (check,) = smoke(f"{local_cloud.url}/v8", key).values()
    assert "without a path" in check["advice"]


def test_the_url_of_another_server(local_cloud: LocalCloud, key: str) -> None:
    environment = json.loads((local_cloud.data / "cloud.json").read_text())["environment"]
    (check,) = smoke(environment["AWS_ENDPOINT_URL_S3"], key).values()
    assert "not Larder" in check["advice"]


# ------------------------------------------------------------------------------------ team settings


@pytest.mark.parametrize(
    ("change", "back", "found", "advice"),
    [
        (["--caching", "disabled"], ["--caching", "enabled"], "caching is disabled", "--caching"),
        *(
            pytest.param(*one, marks=pytest.mark.thorough)
            for one in (
                (["--block", "soft_block"], ["--unblock"], "402 account_soft_blocked", "--unblock"),
                (["--block", "payment_missing"], ["--unblock"], "402 payment_missing", "--unblock"),
                (["--caching", "paused"], ["--caching", "enabled"], "caching is paused", "--caching"),
                (["--quota", "1", "--yes"], ["--default-quota"], "caching is over_limit", "--quota"),
            )
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_team_that_cannot_use_the_cache(
    local_cloud: LocalCloud, key: str, team: str, change: list[str], back: list[str], found: str, advice: str
) -> None:
    local_cloud.larder("teams", "set", team, *change)
    try:
        (check,) = smoke(local_cloud.url, key).values()
    finally:
        local_cloud.larder("teams", "set", team, *back)
    assert check["check"] == "the key gives access to the cache"
    assert check["found"].startswith(found)
    assert advice in check["advice"]


# --------------------------------------------------------------------------- faulty proxies


def drop(name: bytes) -> Any:
    return lambda passing: passing.drop(name)


def answers_options_itself(passing: Passing) -> Passing | None:
    headers = [(b"access-control-allow-origin", b"*"), (b"access-control-allow-methods", b"*")]
    if passing.method != "OPTIONS":
        return None
    return Passing(passing.method, passing.path, headers, b"", 204)


def limits_bodies(passing: Passing) -> Passing | None:
    if len(passing.body) <= LIMIT_OF_A_PROXY:
        return None
    body = b"<html><title>413 Request Entity Too Large</title></html>"
    return Passing(passing.method, passing.path, [(b"content-type", b"text/html")], body, 413)


def adds_a_key(key: str) -> Any:
    def add(passing: Passing) -> None:
        passing.drop(b"authorization")
        passing.headers.append((b"authorization", f"Bearer {key}".encode()))

    return add


def changes_bytes(passing: Passing) -> None:
    if passing.method == "GET" and len(passing.body) > 50_000:
        passing.body = passing.body[:-1] + bytes([passing.body[-1] ^ 1])


def rejects_two_slashes(passing: Passing) -> Passing | None:
    if not passing.path.startswith("//"):
        return None
    return Passing(passing.method, passing.path, [], b'{"message":"Not Found"}', 404)


def drops_the_size(passing: Passing) -> None:
    if passing.method == "HEAD":
        passing.drop(b"content-length")


def changes_the_size(passing: Passing) -> None:
    if passing.method == "HEAD":
        passing.drop(b"content-length")
        passing.headers.append((b"content-length", b"5"))


def loses_bytes_of_text(passing: Passing) -> Passing | None:
    """As Larder replies if the body is not as long as the client has said."""
    if dict(passing.headers).get(b"content-type") != b"text/plain":
        return None
    return Passing(passing.method, passing.path, [], b'{"code":"invalid_request","message":"No."}', 400)


TAG = "a signed artifact keeps its tag"
LARGE_IN = "a large artifact is uploaded straight to S3"
LARGE_OUT = "a large artifact is downloaded by redirect"
EDGE = "the edge keeps the tag and the duration"
FAULTS: dict[str, tuple[Fault, dict[str, tuple[str, str]]]] = {
    "none": (Fault(), {}),
    "strips the tag of downloads": (
        Fault(back=drop(b"x-artifact-tag")),
        {TAG: ("lost in the download", "drops x-artifact-* headers")},
    ),
    "strips the tag of uploads": (
        Fault(inward=drop(b"x-artifact-tag")),
        {TAG: ("lost in the upload", "drops x-artifact-* headers")},
    ),
    "strips the duration": (
        Fault(back=drop(b"x-artifact-duration")),
        {"an artifact can be uploaded and downloaded": ("lost x-artifact-duration", "x-artifact-*")},
    ),
    "answers OPTIONS itself": (
        Fault(answers=answers_options_itself),
        {
            LARGE_IN: ("has no Location", "CORS"),
            LARGE_OUT: ("the earlier upload failed", ""),
            EDGE: ("the earlier upload failed", ""),
            "preflight of downloads allows the token": ("Allow-Headers: none", "CORS"),
        },
    ),
    "follows redirects": (
        Fault(follows_redirects=True),
        {LARGE_OUT: ("something in front of the API", "configure it to pass them on")},
    ),
    "limits bodies": (
        Fault(answers=limits_bodies),
        {"bodies that are too large are rejected": ("does not come from the API", "let 10 MB pass")},
    ),
    "changes bytes": (
        Fault(back=changes_bytes),
        {
            "an artifact can be uploaded and downloaded": ("differ from the", "changes bodies"),
            TAG: ("differ from the", "changes bodies"),
            "an upload without Content-Length is stored": ("differ from the", "changes bodies"),
        },
    ),
    "rejects two slashes": (
        Fault(answers=rejects_two_slashes),
        {"duplicate slashes are ignored": ("404", "TURBO_API")},
    ),
    "drops the size": (Fault(back=drops_the_size), {}),
    "changes the size": (
        Fault(back=changes_the_size),
        {"HEAD returns its size": ("Content-Length is 5", "changes it"), LARGE_IN: ("5 bytes are stored", "truncates")},
    ),
    "loses bytes of text": (Fault(answers=loses_bytes_of_text), {}),
}


@pytest.mark.parametrize(
    "name", [name if name == "changes bytes" else pytest.param(name, marks=pytest.mark.thorough) for name in FAULTS]
)
def test_a_faulty_proxy(local_cloud: LocalCloud, key: str, name: str) -> None:
    fault, expected = FAULTS[name]
    with front(local_cloud.url, fault) as url:
        failed = smoke(url, key)
    assert failed.keys() == expected.keys()
    for check, (found, advice) in expected.items():
        assert found in failed[check]["found"]
        assert advice in failed[check]["advice"]


def test_a_proxy_that_adds_a_key(local_cloud: LocalCloud, key: str) -> None:
    with front(local_cloud.url, Fault(inward=adds_a_key(key))) as url:
        failed = smoke(url, key)
    check = failed["requests without a valid key are rejected"]
    assert "adds its own key" in check["advice"]
