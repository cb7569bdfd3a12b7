"""`larder smoke` against a local cloud: all is well, and each fault gets the right advice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from .cloud import LocalCloud
from .front import Fault, Passing, front

pytestmark = pytest.mark.e2e

COMMAND = Path(sys.executable).with_name("larder")
LARGE = "1MB"
"""Enough to be redirected; the default of 50 MB is in the first test."""
AT_MOST_S = 60
LIMIT_OF_A_PROXY = 1024 * 1024


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TURBO_")}
    return subprocess.run(
        [COMMAND, *arguments],
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=2 * AT_MOST_S,
    )


def smoke(url: str, key: str, team: str | None = None) -> dict[str, dict[str, Any]]:
    """Every check that did not pass, by its name."""
    done = run(
        *("smoke", "--json", "--large", LARGE),
        TURBO_API=url,
        TURBO_TOKEN=key,
        TURBO_TEAM=team or "",
    )
    told = json.loads(done.stdout)
    failed = {one["check"]: one for one in told["checks"] if one["outcome"] != "passed"}
    assert done.returncode == (1 if failed else 0), done.stderr
    assert told["failed"] == len(failed)
    assert key not in done.stdout + done.stderr
    return failed


@pytest.fixture(scope="module")
def team(local_cloud: LocalCloud) -> str:
    """A team of its own, whose state the tests change."""
    local_cloud.larder("users", "create", "--email", "ada@acme.example", "--name", "Ada")
    owner = ("--owner", "ada@acme.example")
    local_cloud.larder("teams", "create", "--name", "Acme", "--slug", "acme", *owner)
    return "acme"


def key_of(cloud: LocalCloud, *options: str) -> str:
    return str(cloud.larder("keys", "create", "--user", "ada@acme.example", *options)["key"])


@pytest.fixture(scope="module")
def key(local_cloud: LocalCloud, team: str) -> str:
    """A key of a team that has something stored."""
    key = key_of(local_cloud, "--team", team)
    stored = httpx.put(
        f"{local_cloud.url}/v8/artifacts/08e4547d5347b63f",
        content=b"hello",
        headers={"authorization": f"Bearer {key}"},
        trust_env=False,
    )
    assert stored.status_code == 202
    return key


# ----------------------------------------------------------------------------------- all is well


def test_a_local_cloud_passes_every_check_within_a_minute(local_cloud: LocalCloud) -> None:
    done = run("--local", local_cloud.data, "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    *checks, summary = done.stdout.splitlines()[1:]
    assert all(line.startswith("    ok  ") for line in checks)
    assert "a large artifact goes straight to S3" in done.stdout
    assert "(50 MB)" in done.stdout
    passed, _, seconds = summary.removesuffix(" s").partition(" checks passed in ")
    assert passed == f"{len(checks)} of {len(checks)}"
    assert int(seconds) < AT_MOST_S


def test_make_smoke_takes_address_key_and_team(local_cloud: LocalCloud) -> None:
    # As the Makefile calls it: what is not given is an empty variable.
    done = run(
        *("smoke", "--large", LARGE),
        TURBO_API=f"{local_cloud.url}/",
        TURBO_TOKEN=local_cloud.token,
        TURBO_TEAM=local_cloud.team,
        LARDER_STACK="",
        LARDER_LOCAL="",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_little_is_left_behind(local_cloud: LocalCloud, key: str, team: str) -> None:
    before = local_cloud.larder("teams", "show", team)
    assert smoke(local_cloud.url, key) == {}
    left = local_cloud.larder("teams", "show", team)
    assert left["stored_bytes"] - before["stored_bytes"] == 4
    assert left["artifacts"] - before["artifacts"] == 4


def test_nothing_is_left_behind_by_a_key_that_may_delete(
    local_cloud: LocalCloud, key: str, team: str
) -> None:
    before = local_cloud.larder("teams", "show", team)
    rights = ("--permissions", "artifacts=read,write,manage")
    assert smoke(local_cloud.url, key_of(local_cloud, "--team", team, *rights)) == {}
    left = local_cloud.larder("teams", "show", team)
    assert left["stored_bytes"] == before["stored_bytes"]


# --------------------------------------------------------------------------- the wrong key or address


def test_a_wrong_key(local_cloud: LocalCloud) -> None:
    (check,) = smoke(local_cloud.url, "larder_" + "x" * 64).values()
    assert check["found"].startswith("401 unauthorized")
    assert "larder keys create" in check["advice"]


def test_a_key_for_another_team(local_cloud: LocalCloud, key: str) -> None:
    (check,) = smoke(local_cloud.url, key, local_cloud.team).values()
    assert check["found"].startswith("403 not_a_team_member")
    assert "--team" in check["advice"]


def test_a_key_that_only_reads(local_cloud: LocalCloud, team: str) -> None:
    failed = smoke(
        local_cloud.url, key_of(local_cloud, "--team", team, "--permissions", "artifacts=read")
    )
    assert "take one that writes" in failed["an artifact goes in and comes back"]["advice"]
    assert failed["and comes back by a redirect"]["outcome"] == "not tried"


def test_a_key_that_is_used_up_on_the_way(local_cloud: LocalCloud, team: str) -> None:
    failed = smoke(local_cloud.url, key_of(local_cloud, "--team", team, "--remaining", "2"))
    assert "larder keys create" in failed["an artifact goes in and comes back"]["advice"]


def test_a_path_behind_the_address(local_cloud: LocalCloud, key: str) -> None:
    (check,) = smoke(f"{local_cloud.url}/v8", key).values()
    assert "without a path" in check["advice"]


def test_the_address_of_something_else(local_cloud: LocalCloud, key: str) -> None:
    environment = json.loads((local_cloud.data / "cloud.json").read_text())["environment"]
    (check,) = smoke(environment["AWS_ENDPOINT_URL_S3"], key).values()
    assert "no Larder" in check["advice"]


# ------------------------------------------------------------------------------------ the team's state


@pytest.mark.parametrize(
    ("change", "back", "found", "advice"),
    [
        (["--block", "soft_block"], ["--unblock"], "402 account_soft_blocked", "--unblock"),
        (["--block", "payment_missing"], ["--unblock"], "402 payment_missing", "--unblock"),
        (["--caching", "paused"], ["--caching", "enabled"], "caching is paused", "--caching"),
        (["--caching", "disabled"], ["--caching", "enabled"], "caching is disabled", "--caching"),
        (["--quota", "1"], ["--default-quota"], "caching is over_limit", "--quota"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_team_that_cannot_use_the_cache(
    local_cloud: LocalCloud,
    key: str,
    team: str,
    change: list[str],
    back: list[str],
    found: str,
    advice: str,
) -> None:
    local_cloud.larder("teams", "set", team, *change)
    try:
        (check,) = smoke(local_cloud.url, key).values()
    finally:
        local_cloud.larder("teams", "set", team, *back)
    assert check["check"] == "the key opens the cache"
    assert check["found"].startswith(found)
    assert advice in check["advice"]


# --------------------------------------------------------------------------- a front that does wrong


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


def signs_everybody_in(key: str) -> Any:
    def add(passing: Passing) -> None:
        passing.drop(b"authorization")
        passing.headers.append((b"authorization", f"Bearer {key}".encode()))

    return add


def changes_bytes(passing: Passing) -> None:
    if passing.method == "GET" and len(passing.body) > 50_000:
        passing.body = passing.body[:-1] + bytes([passing.body[-1] ^ 1])


def keeps_one_slash(passing: Passing) -> Passing | None:
    if not passing.path.startswith("//"):
        return None
    return Passing(passing.method, passing.path, [], b'{"message":"Not Found"}', 404)


def forgets_the_size(passing: Passing) -> None:
    if passing.method == "HEAD":
        passing.drop(b"content-length")


TAG = "a signed artifact keeps its tag"
LARGE_IN, LARGE_OUT = "a large artifact goes straight to S3", "and comes back by a redirect"
FAULTS: dict[str, tuple[Fault, dict[str, tuple[str, str]]]] = {
    "none": (Fault(), {}),
    "strips the tag of answers": (
        Fault(back=drop(b"x-artifact-tag")),
        {TAG: ("lost on the way back", "drops x-artifact-* headers")},
    ),
    "strips the tag of uploads": (
        Fault(inward=drop(b"x-artifact-tag")),
        {TAG: ("lost on the way in", "drops x-artifact-* headers")},
    ),
    "strips the duration": (
        Fault(back=drop(b"x-artifact-duration")),
        {"an artifact goes in and comes back": ("x-artifact-duration is lost", "x-artifact-*")},
    ),
    "answers OPTIONS itself": (
        Fault(answers=answers_options_itself),
        {
            LARGE_IN: ("without a Location", "CORS"),
            LARGE_OUT: ("the upload before it failed", ""),
            "requests that are announced are let through": ("Allow-Headers: none", "CORS"),
        },
    ),
    "follows redirects": (
        Fault(follows_redirects=True),
        {LARGE_OUT: ("answered by what stands in front", "must hand them on")},
    ),
    "limits bodies": (
        Fault(answers=limits_bodies),
        {"bodies that are too large are refused": ("not the API's own", "let 10 MB pass")},
    ),
    "changes bytes": (
        Fault(back=changes_bytes),
        {
            "an artifact goes in and comes back": ("that are not the", "changes bodies"),
            TAG: ("that are not the", "changes bodies"),
            "an upload without a length": ("that are not the", "changes bodies"),
        },
    ),
    "keeps one slash": (
        Fault(answers=keeps_one_slash),
        {"two slashes count as one": ("404", "TURBO_API")},
    ),
    "forgets the size": (
        Fault(back=forgets_the_size),
        {"HEAD tells its size": ("Content-Length is None", "drops it")},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_front_that_does_wrong(local_cloud: LocalCloud, key: str, name: str) -> None:
    fault, expected = FAULTS[name]
    with front(local_cloud.url, fault) as url:
        failed = smoke(url, key)
    assert failed.keys() == expected.keys()
    for check, (found, advice) in expected.items():
        assert found in failed[check]["found"]
        assert advice in failed[check]["advice"]


def test_a_front_that_lets_everybody_in(local_cloud: LocalCloud, key: str) -> None:
    with front(local_cloud.url, Fault(inward=signs_everybody_in(key))) as url:
        failed = smoke(url, key)
    assert "a key of its own" in failed["nobody gets in without a key"]["advice"]
