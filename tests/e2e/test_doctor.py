"""`larder doctor` in a real repository of turbo with a local cloud: it finds what keeps turbo's artifacts out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from larder_cli.doctor.findings import PREFLIGHT_LINE

from . import build_tools, cloud, turbo
from .cloud import LocalCloud
from .monorepo import Package, generate, wipe_outputs_and_local_cache

pytestmark = pytest.mark.e2e

COMMAND = Path(sys.executable).with_name("larder")
SIZES = {"small": 1_000, "large": 6_000_000}


@pytest.fixture(scope="module")
def local_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """One whose teams these tests block and protect. Without the edge, signatures do not work with preflight."""
    data = tmp_path_factory.mktemp("cloud") / "data"
    with cloud.running(request.config.rootpath, data, EDGE="0") as server:
        server.larder("users", "create", "--email", "ada@acme.example", "--name", "Ada")
        owner = ("--owner", "ada@acme.example")
        server.larder("teams", "create", "--name", "Acme", "--slug", "acme", *owner)
        yield server


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    """A monorepo of two packages, one with an output that no function takes."""
    root = tmp_path_factory.mktemp("doctor") / "monorepo"
    generate(root, [Package(name, size) for name, size in SIZES.items()], home=home)
    return root


@pytest.fixture
def repository(pair: Path, fresh_monorepo: Callable[..., Path], request: Any) -> Path:
    return fresh_monorepo(turbo.NEWEST, seed=request.node.name, template=pair)


def key_of(server: LocalCloud, *options: str) -> str:
    return str(server.larder("keys", "create", "--user", "ada@acme.example", *options)["key"])


def configure(repository: Path, **remote_cache: object) -> None:
    file = repository / "turbo.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"remoteCache": remote_cache}))


def found(repository: Path, environment: Mapping[str, str], home: Path) -> dict[str, Any]:
    """What doctor finds, by id, with only these variables, as turbo runs in tests/e2e/turbo.py."""
    done = subprocess.run(
        [COMMAND, "doctor", str(repository), "--json"],
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    report = json.loads(done.stdout)
    assert done.returncode == bool(report["problems"]), done.stderr
    assert environment.get("TURBO_TOKEN", "none of these") not in done.stdout + done.stderr
    # The sample has no package of turbo, and its runs write no summaries by themselves.
    expected = ("unknown-turbo", "summaries-off")
    return {finding["id"]: finding for finding in report["findings"] if finding["id"] not in expected}


def test_the_pasted_line_lets_every_artifact_into_the_cache(
    client: Callable[..., turbo.Client], repository: Path, home: Path
) -> None:
    newest = client(turbo.NEWEST)
    turbo.build(newest, repository)
    findings = found(repository, newest.remote_cache, home)
    assert findings.keys() == {"preflight-off"}
    assert "1 of 2 artifacts" in findings["preflight-off"]["found"]
    wipe_outputs_and_local_cache(repository)
    assert turbo.build(newest, repository).remote_hits == {"small"}

    file = repository / "turbo.json"
    text = file.read_text()
    without = text.replace('"remoteCache": {\n    "signature": false\n  }', PREFLIGHT_LINE)
    assert PREFLIGHT_LINE in without
    file.write_text(f"// Ours.\n{without}")
    assert found(repository, newest.remote_cache, home) == {}
    wipe_outputs_and_local_cache(repository)
    turbo.build(newest, repository)
    wipe_outputs_and_local_cache(repository)
    assert turbo.build(newest, repository).full_turbo


@pytest.mark.thorough
def test_what_the_deployment_refuses(local_cloud: LocalCloud, repository: Path, home: Path) -> None:
    configure(repository, preflight=True)
    acme = {"TURBO_API": local_cloud.url, "TURBO_TEAM": "acme"}

    def ids(token: str, **variables: str) -> set[str]:
        return {*found(repository, {**acme, "TURBO_TOKEN": token, **variables}, home)}

    key = key_of(local_cloud, "--team", "acme")
    assert ids(key) == set()
    assert ids("larder_" + "x" * 64) == {"token-refused"}
    assert ids(key, TURBO_TEAM="other") == {"other-team"}
    reader = key_of(local_cloud, "--team", "acme", "--permissions", "artifacts=read")
    assert ids(reader) == {"read-only"}
    assert ids(key_of(local_cloud, "--team", "acme", "--expires-in", "2d")) == {"token-expires"}
    for change, back, id in (
        (("--block", "soft_block"), "--unblock", "blocked"),
        (("--caching", "paused"), "--caching=enabled", "team-off"),
    ):
        local_cloud.larder("teams", "set", "acme", *change)
        assert ids(key) == {id}
        local_cloud.larder("teams", "set", "acme", back)
    local_cloud.larder("teams", "protect", "acme")
    assert ids(key) == {"own-scope"}
    local_cloud.larder("teams", "unprotect", "acme")


def test_signed_artifacts_and_preflight_need_the_edge(
    client: Callable[..., turbo.Client], repository: Path, home: Path
) -> None:
    configure(repository, preflight=True, signature=True)
    newest = client(turbo.NEWEST)
    variables = {**newest.remote_cache, "TURBO_REMOTE_CACHE_SIGNATURE_KEY": "k" * 32}
    assert found(repository, variables, home).keys() == {"signature-with-preflight"}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, None),
        ({"TURBO_TOKEN": "larder_" + "x" * 64}, "no cache: Larder refuses the token (401)."),
        ({"TURBO_TEAM": "nobody"}, "Larder refuses a lookup (not_a_team_member): The token's"),
        ({"TURBO_API": "http://127.0.0.1:9"}, "Larder does not answer (ConnectionRefusedError)"),
    ],
)
def test_doctor_in_larder_run_finds_what_larder_run_meets(
    change: dict[str, str], found: str | None, local_cloud: LocalCloud, repository: Path, larder: Path, home: Path
) -> None:
    variables = {**build_tools.settings(local_cloud, home), **change}
    done = subprocess.run(
        [sys.executable, larder, "run", "--", COMMAND, "doctor", "--json"],
        env=variables,
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=60,
    )
    findings = [finding for finding in json.loads(done.stdout)["findings"] if finding["id"] == "sidecar"]
    assert done.returncode == len(findings) == bool(found)
    assert findings == [] or findings[0]["found"].startswith(str(found))


@pytest.mark.thorough
def test_turbo_reads_its_settings_where_doctor_does(
    client: Callable[..., turbo.Client], local_cloud: LocalCloud, repository: Path, home: Path
) -> None:
    """Each case has the variables, the file of `turbo link`, and whether turbo asks this cloud."""
    newest = client(turbo.NEWEST)
    token, team = newest.remote_cache["TURBO_TOKEN"], newest.remote_cache["TURBO_TEAM"]
    configure(repository, preflight=True, apiUrl=local_cloud.url, loginUrl=local_cloud.url)
    linked = repository / ".turbo" / "config.json"
    nowhere = "http://127.0.0.1:9"
    cases: tuple[tuple[dict[str, str], dict[str, str], bool, set[str]], ...] = (
        ({"TURBO_TOKEN": token, "TURBO_TEAM": team}, {}, True, set()),
        ({"turbo_token": token, "turbo_team": team}, {}, True, set()),
        ({"TURBO_TOKEN": token}, {"teamSlug": team}, True, set()),
        ({"TURBO_TOKEN": token}, {}, False, {"no-team"}),
        ({"TURBO_TEAM": team}, {}, False, {"no-token"}),
        ({"TURBO_TOKEN": token, "TURBO_TEAM": team}, {"apiUrl": nowhere}, False, {"hidden-setting", "unreachable"}),
        (
            {"TURBO_TOKEN": token, "TURBO_TEAM": team, "TURBO_API": local_cloud.url},
            {"apiUrl": nowhere},
            True,
            {"hidden-setting"},
        ),
        ({"TURBO_TOKEN": token, "TURBO_TEAM": ""}, {"teamSlug": team}, False, {"empty-variable", "no-team"}),
    )
    for variables, link, asks, expected in cases:
        linked.parent.mkdir(exist_ok=True)
        linked.write_text(json.dumps(link))
        # The address is the repository's own, so doctor sends it no token, and says so.
        not_sent = set() if "TURBO_API" in variables else {"token-not-sent"}
        findings = found(repository, variables, home).keys()
        assert findings - not_sent == expected, (variables.keys(), link)
        mark = local_cloud.log_size()
        turbo.build(replace(newest, remote_cache=variables), repository)
        # The cloud can log doctor's own request late.
        asked = {request.path for request in local_cloud.requests_since(mark)} - {"/api/auth/ok"}
        assert bool(asked) == asks, (variables.keys(), link)
