"""Where the sidecar's token comes from, and how that of a job is renewed and revoked."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
from larder_proxy.credentials import NoCredential, read_target

from .deployment import KEY, Deployment, Running, sidecar

GITHUB = {"TURBO_TOKEN": "", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request"}


def github(deployment: Deployment) -> dict[str, str]:
    return {**GITHUB, "ACTIONS_ID_TOKEN_REQUEST_URL": f"{deployment.url}/id-token?api-version=2.0"}


def look_up(running: Running, number: int = 1) -> None:
    headers = {"Authorization": f"Bearer {running.sidecar.listener.token}"}
    httpx.get(f"{running.sidecar.listener.url}/v1/cache/{number}", headers=headers, trust_env=False)


def test_a_job_of_github_exchanges_its_id_token_and_revokes_the_token(
    deployment: Deployment, tmp_path: Path
) -> None:
    with sidecar(deployment, tmp_path, **github(deployment), LARDER_RULE="rule_1") as running:
        look_up(running)
        look_up(running, 2)
    (asked,) = deployment.sent("GET", "/id-token")
    assert asked.query["audience"] == [deployment.url]
    assert asked.headers["authorization"] == "bearer request"
    (exchange,) = [
        one for one in deployment.sent("POST", "/login") if one.path == "/login/oauth/token"
    ]
    form = parse_qs(exchange.body.decode())
    assert (form["team_id_or_slug"], form["policy_id"]) == (["acme"], ["rule_1"])
    assert deployment.tokens == {KEY}
    assert running.lines == []


def test_the_token_of_a_long_job_is_renewed_before_it_ends(
    deployment: Deployment, tmp_path: Path
) -> None:
    """GitHub gives a new id token each time, because each can be used once."""
    deployment.lifetime_s = 1
    with sidecar(deployment, tmp_path, **github(deployment)) as running:
        for number in range(4):
            look_up(running, number)
            time.sleep(0.6)
    assert deployment.exchanged >= 2
    used = [one.headers["authorization"] for one in deployment.sent("GET", "/v8/artifacts/")]
    assert len(set(used)) >= 2
    id_tokens = [
        parse_qs(one.body.decode())["subject_token"]
        for one in deployment.sent("POST", "/login/oauth/token")
        if b"subject_token" in one.body
    ]
    assert len(id_tokens) == len({str(one) for one in id_tokens})


@pytest.mark.parametrize("days", [-1, 1])
def test_a_clock_that_jumps_renews_no_token(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    with sidecar(deployment, tmp_path, **github(deployment)) as running:
        look_up(running)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + days * 86_400)
        look_up(running, 2)
    assert deployment.exchanged == 1


def test_a_job_of_gitlab_has_its_id_token_in_a_variable(
    deployment: Deployment, tmp_path: Path
) -> None:
    with sidecar(deployment, tmp_path, TURBO_TOKEN="", LARDER_ID_TOKEN="x.y.z") as running:
        look_up(running)
    form = parse_qs(deployment.sent("POST", "/login")[0].body.decode())
    assert form["subject_token"] == ["x.y.z"]


def test_a_job_without_an_id_token_is_one_line(deployment: Deployment, tmp_path: Path) -> None:
    """That of a fork, for example."""
    with sidecar(deployment, tmp_path, TURBO_TOKEN="") as running:
        for number in range(3):
            look_up(running, number)
    (line,) = running.lines
    assert line.startswith("no cache: there is no key in TURBO_TOKEN")
    assert deployment.asked == []


def test_a_refused_id_token_is_one_line_with_the_reason(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    deployment.failing["POST"] = [(400, "no rule accepts this job")] * 20
    with sidecar(deployment, tmp_path, **github(deployment)) as running:
        look_up(running)
        look_up(running, 2)
    (line,) = running.lines
    assert "the id token of the job was refused" in line
    assert len(deployment.sent("GET", "/id-token")) == 3


def test_turbo_login_is_used_on_a_computer(deployment: Deployment, tmp_path: Path) -> None:
    file = tmp_path / ".config" / "turborepo" / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"token": KEY}))
    with sidecar(deployment, tmp_path, TURBO_TOKEN="") as running:
        look_up(running)
    (lookup,) = deployment.sent("GET")
    assert lookup.headers["authorization"] == f"Bearer {KEY}"
    # A key stays.
    assert deployment.sent("POST", "/login") == []


@pytest.mark.parametrize("token", ["a\nb: c" * 3, 'x"y' * 5, "short"])
def test_a_token_with_other_characters_is_not_sent(
    deployment: Deployment, tmp_path: Path, token: str
) -> None:
    with sidecar(deployment, tmp_path, TURBO_TOKEN=token) as running:
        look_up(running)
    assert deployment.asked == []
    assert running.lines == ["no cache: the token has characters that no token has"]


def test_the_settings_are_those_of_turbo(tmp_path: Path) -> None:
    """Variables, then the repository's file, then the user's."""
    inner = tmp_path / "packages" / "web"
    inner.mkdir(parents=True)
    for folder, content in (
        (tmp_path / ".turbo", {"teamSlug": "acme", "apiUrl": "https://repository.example/"}),
        (
            tmp_path / ".config" / "turborepo",
            {"apiUrl": "https://user.example", "teamId": "team_1"},
        ),
    ):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(content))
    found = read_target({"HOME": str(tmp_path)}, inner)
    assert (found.url, found.team, found.team_id) == (
        "https://repository.example",
        "acme",
        "team_1",
    )
    found = read_target({"HOME": str(tmp_path), "TURBO_API": "https://own.example"}, inner)
    assert found.url == "https://own.example"
    with pytest.raises(NoCredential):
        read_target({"HOME": str(inner)}, Path("/"))
    # Deeper than Python can read.
    (inner / ".turbo").mkdir()
    (inner / ".turbo" / "config.json").write_text("[" * 200_000)
    assert read_target({"HOME": str(tmp_path)}, inner) == read_target(
        {"HOME": str(tmp_path)}, tmp_path
    )
