"""Jobs of GitHub and GitLab use the cache without a stored secret: our action and snippet, in the shells of their CI.

The issuer and GitHub's address for id tokens are a server of the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import yaml

from tests.issuer import Issuer, Server, github_claims, gitlab_claims, serving
from tests.trust.ci_scripts import CI, step

from . import turbo
from .cloud import COUNTS_AFTER_S, LocalCloud
from .monorepo import wipe_outputs_and_local_cache

pytestmark = pytest.mark.e2e

REQUEST_TOKEN = "the request token of the job"


@pytest.fixture(scope="module")
def server(local_cloud: LocalCloud) -> Iterator[Server]:
    """An issuer that the operator of the local cloud has accepted."""
    with serving() as server:
        server.issuer()
        local_cloud.larder("issuers", "add", server.url)
        yield server


@pytest.fixture(scope="module")
def issuer(server: Server) -> Issuer:
    return Issuer(server.url)


def github_job(server: Server, cloud: LocalCloud, folder: Path, **claims: Any) -> tuple[dict[str, str], str]:
    """Run the action as a step of a job. Returns what the steps after it see, and its log."""
    issuer = Issuer(server.url)

    def id_token(request: BaseHTTPRequestHandler) -> None:
        assert request.headers["authorization"] == f"bearer {REQUEST_TOKEN}"
        (audience,) = parse_qs(urlsplit(request.path).query)["audience"]
        token = issuer.mint({**github_claims(**claims), "aud": audience})
        request.send_response(200)
        request.end_headers()
        request.wfile.write(json.dumps({"count": 1, "value": token}).encode())

    server.answers["/id-token"] = id_token
    for name in ("env", "output", "state", "summary"):
        (folder / name).write_text("")
    log = step(
        folder,
        "main",
        {"api": cloud.url, "team": cloud.team, "summary": "true"},
        ACTIONS_ID_TOKEN_REQUEST_URL=f"{server.url}/id-token?api-version=2.0",
        ACTIONS_ID_TOKEN_REQUEST_TOKEN=REQUEST_TOKEN,
    )
    return written(folder / "env"), log.decode()


def written(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def build_in_job(newest: turbo.Client, remote_cache: dict[str, str], root: Path) -> turbo.Run:
    """Build with what the action gives to the steps after it."""
    job = turbo.Client(newest.command, newest.version, remote_cache, newest.home, preflight=True)
    return turbo.build(job, root)


def end_github_job(cloud: LocalCloud, folder: Path, root: Path, **inputs: str) -> bytes:
    """Run what the action does at the end of the job. Returns its log."""
    state = {f"STATE_{name}": value for name, value in written(folder / "state").items()}
    asked = {"api": cloud.url, "team": cloud.team, "summary": "true", "directory": str(root)}
    return step(folder, "post", {**asked, **inputs}, **state)


def gitlab_job(shell: str, id_token: str, cloud: LocalCloud, **own: str) -> str:
    """Run the snippet before a script. Returns the token that the script sees, or an empty text.

    `own` are more variables of the job.
    """
    snippet = yaml.safe_load((CI / "gitlab" / "larder.yml").read_text())[".larder"]
    assert snippet["id_tokens"] == {"LARDER_ID_TOKEN": {"aud": "$TURBO_API"}}
    script = "\n".join([*snippet["before_script"], 'printf "<%s>" "$(printenv TURBO_TOKEN)"'])
    variables = {"TURBO_API": cloud.url, "TURBO_TEAM": cloud.team, "LARDER_ID_TOKEN": id_token}
    log = run([shell, "-e", "-c", script], {**variables, **own})
    return log.rpartition("<")[2].removesuffix(">")


def check_reported(cloud: LocalCloud, runs: list[turbo.Run]) -> None:
    """GET /v1/runs shows what turbo said about each task, the newest run first."""
    headers = {"Authorization": f"Bearer {cloud.token}"}
    reply = httpx.get(f"{cloud.url}/v1/runs?slug={cloud.team}", headers=headers, trust_env=False).json()
    assert [(one["tasks"], one["remoteHits"], one["built"], one["names"], one["ci"]) for one in reply["runs"]] == [
        (run.total, run.cached, run.total - run.cached, ["build"], "GITHUB_ACTIONS") for run in runs
    ]
    assert {one["package"] for one in reply["figures"]["tasks"]} == {
        f"@sample/{task.package}" for task in runs[0].tasks
    }
    assert reply["figures"]["tasks"][0]["builtMs"] > 0


def run(command: list[str], variables: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, env={"PATH": os.environ["PATH"], **variables}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def status(cloud: LocalCloud, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{cloud.url}/v8/artifacts/status?slug={cloud.team}"
    return httpx.get(url, headers=headers, trust_env=False).status_code


def test_a_job_of_github_builds_from_the_cache(
    local_cloud: LocalCloud,
    server: Server,
    client: Callable[..., turbo.Client],
    short_monorepo: Path,
    fresh_monorepo: Callable[..., Path],
    tmp_path: Path,
) -> None:
    rule = local_cloud.larder(*("trust", "add", local_cloud.team, "--github", "acme/web", "--issuer", server.url))
    # The first rule has protected the team, and a job of main writes its shared scope.
    time.sleep(COUNTS_AFTER_S)
    root = fresh_monorepo(turbo.NEWEST, seed="github", template=short_monorepo)
    runs, remote_cache = [], dict[str, str]()
    for _ in range(2):
        remote_cache, log = github_job(server, local_cloud, tmp_path)
        assert f"::add-mask::{remote_cache['TURBO_TOKEN']}" in log
        runs.append(build_in_job(client(turbo.NEWEST), remote_cache, root))
        summary = tmp_path / "summary"
        assert end_github_job(local_cloud, tmp_path, root) == b""
        assert f"uses the cache of the team `{local_cloud.team}`" in summary.read_text()
        hits, built = runs[-1].cached, runs[-1].total - runs[-1].cached
        assert f"\n| {hits} | {hits} | {built} | " in summary.read_text()
        wipe_outputs_and_local_cache(root)
    assert [run.cached for run in runs] == [0, runs[1].total]
    assert runs[1].full_turbo
    check_reported(local_cloud, [runs[1], runs[0]])

    # The end of the job has revoked its token.
    assert status(local_cloud, remote_cache["TURBO_TOKEN"]) == 401
    other, _ = github_job(server, local_cloud, tmp_path)
    assert status(local_cloud, other["TURBO_TOKEN"]) == 200
    local_cloud.larder("trust", "set", local_cloud.team, rule["id"], "--disable")
    assert status(local_cloud, other["TURBO_TOKEN"]) == 401


@pytest.mark.thorough
def test_the_summary_of_a_job_says_why_its_tasks_missed(
    local_cloud: LocalCloud,
    server: Server,
    client: Callable[..., turbo.Client],
    short_monorepo: Path,
    fresh_monorepo: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """The second job compares itself with the first, without a word in its workflow but `inputs`."""
    local_cloud.larder("teams", "run-inputs", local_cloud.team, "names")
    local_cloud.larder(*("trust", "add", local_cloud.team, "--github", "acme/docs", "--issuer", server.url))
    time.sleep(COUNTS_AFTER_S)
    root = fresh_monorepo(turbo.NEWEST, seed="causes", template=short_monorepo)
    summaries = []
    for number in range(2):
        remote_cache, _ = github_job(server, local_cloud, tmp_path, repository="acme/docs")
        build_in_job(client(turbo.NEWEST), remote_cache, root)
        assert end_github_job(local_cloud, tmp_path, root, inputs="names") == b""
        summaries.append((tmp_path / "summary").read_text())
        (next(root.glob("packages/*")) / f"new-{number}.txt").write_text("x")
        wipe_outputs_and_local_cache(root)
    first, second = summaries
    assert "tasks compared with" not in first
    assert "tasks compared with" in second
    assert "/new-0.txt` added" in second


def test_a_job_of_github_that_is_refused_builds_without_the_cache(
    local_cloud: LocalCloud, server: Server, tmp_path: Path
) -> None:
    remote_cache, log = github_job(server, local_cloud, tmp_path, repository_id="99")
    assert "TURBO_TOKEN" not in remote_cache
    for text in (log, (tmp_path / "summary").read_text()):
        assert "no rule of this team accepts repository 99 (acme/web)" in text


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_job_of_gitlab_gets_a_token(local_cloud: LocalCloud, server: Server, issuer: Issuer, shell: str) -> None:
    project = f"acme/{shell}"
    claims = gitlab_claims(project_path=project, project_id=shell, aud=local_cloud.url)
    refused = gitlab_job(shell, issuer.mint(claims), local_cloud)
    assert refused == ""
    local_cloud.larder(*("trust", "add", local_cloud.team, "--gitlab", project, "--issuer", server.url))
    token = gitlab_job(shell, issuer.mint(claims), local_cloud)
    assert token.startswith("larder_ci_")
    assert status(local_cloud, token) == 200


def test_a_job_of_gitlab_names_one_of_two_rules(local_cloud: LocalCloud, server: Server, issuer: Issuer) -> None:
    project = "acme/two-rules"
    add = ("trust", "add", local_cloud.team, "--gitlab", project, "--issuer", server.url)
    rules = [local_cloud.larder(*add, "--lifetime", one)["id"] for one in ("30m", "1h")]
    claims = gitlab_claims(project_path=project, project_id="two-rules", aud=local_cloud.url)
    assert gitlab_job("sh", issuer.mint(claims), local_cloud) == ""
    token = gitlab_job("sh", issuer.mint(claims), local_cloud, LARDER_RULE=rules[1])
    assert token.startswith("larder_ci_")
