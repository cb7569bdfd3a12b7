"""Where the sidecar's token comes from, and how that of a job is renewed and revoked."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
from larder_proxy.credentials import NoCredential, read_target
from larder_proxy.listener import Listener
from larder_proxy.settings import Settings
from larder_proxy.sidecar import Sidecar

from .deployment import KEY, Deployment, Running, sidecar, variables

GITHUB = {"TURBO_TOKEN": "", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request"}


def github(deployment: Deployment) -> dict[str, str]:
    return {**GITHUB, "ACTIONS_ID_TOKEN_REQUEST_URL": f"{deployment.url}/id-token?api-version=2.0"}


def look_up(running: Running, number: int = 1) -> None:
    headers = {"Authorization": f"Bearer {running.sidecar.listener.token}"}
    httpx.get(f"{running.sidecar.listener.url}/v1/cache/{number}", headers=headers, trust_env=False)


def test_a_job_of_github_exchanges_its_id_token_and_revokes_the_token(deployment: Deployment, tmp_path: Path) -> None:
    with sidecar(deployment, tmp_path, **github(deployment), LARDER_RULE="rule_1") as running:
        look_up(running)
        look_up(running, 2)
    (asked,) = deployment.sent("GET", "/id-token")
    assert asked.query["audience"] == [deployment.url]
    assert asked.headers["authorization"] == "bearer request"
    (exchange,) = [one for one in deployment.sent("POST", "/login") if one.path == "/login/oauth/token"]
    form = parse_qs(exchange.body.decode())
    assert (form["team_id_or_slug"], form["policy_id"]) == (["acme"], ["rule_1"])
    assert deployment.tokens == {KEY}
    assert running.lines == []


def test_the_token_of_a_long_job_is_renewed_before_it_ends(deployment: Deployment, tmp_path: Path) -> None:
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
    assert len(id_tokens) == len({str(id_token) for id_token in id_tokens})


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


def test_a_job_of_gitlab_has_its_id_token_in_a_variable(deployment: Deployment, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ["auth.json", "config.json"])
def test_turbo_login_is_used_on_a_computer(deployment: Deployment, tmp_path: Path, name: str) -> None:
    """Of turbo 2.9, and of older ones."""
    write(tmp_path / ".config" / "turborepo" / name, {"token": KEY})
    environment = variables(deployment, tmp_path)
    del environment["TURBO_TOKEN"]
    settings = Settings(None, environment)
    running = Running(Sidecar(environment, settings, Listener()), [])
    look_up(running)
    running.sidecar.close(0)
    (lookup,) = deployment.sent("GET")
    assert lookup.headers["authorization"] == f"Bearer {KEY}"
    # A key stays.
    assert deployment.sent("POST", "/login") == []


@pytest.mark.parametrize("token", ["a\nb: c" * 3, 'x"y' * 5, "short"])
def test_a_token_with_other_characters_is_not_sent(deployment: Deployment, tmp_path: Path, token: str) -> None:
    with sidecar(deployment, tmp_path, TURBO_TOKEN=token) as running:
        look_up(running)
    assert deployment.asked == []
    assert running.lines == ["no cache: the token has characters that no token has"]


def write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def test_the_settings_are_those_of_turbo(tmp_path: Path) -> None:
    """Variables, the file of the repository, the user's, and turbo.json. An empty variable hides the others."""
    inner, home = tmp_path / "packages" / "web", {"HOME": str(tmp_path)}
    inner.mkdir(parents=True)
    write(inner / "turbo.json", {"extends": ["//"], "remoteCache": {"apiUrl": "https://x"}})
    write(tmp_path / "turbo.json", {"remoteCache": {"apiUrl": "https://t", "teamId": "acme"}})
    write(tmp_path / ".turbo" / "config.json", {"teamslug": "acme", "apiUrl": "https://r/"})
    user = tmp_path / ".config" / "turborepo"
    write(user / "config.json", {"apiUrl": "https://u", "token": "of 2.8"})
    write(user / "auth.json", {"token": "of 2.9"})
    found = Settings(str(inner), home)
    assert (found.root, found.api, found.text("token")) == (str(tmp_path), "https://r", "of 2.9")
    # turbo ignores an id that does not begin with team_.
    assert found.team == {"slug": "acme"}
    assert [one.where for one in found.values["apiUrl"]] == [".turbo/config.json", "turbo login", "turbo.json:1"]
    assert Settings(None, home).api == "https://u"
    assert Settings(str(inner), {**home, "turbo_api": "https://own/"}).api == "https://own"
    assert Settings(str(inner), {**home, "TURBO_API": ""}).api is None
    # Deeper than Python can read.
    (tmp_path / ".turbo" / "config.json").write_text("[" * 200_000)
    assert Settings(str(inner), home).api == "https://u"


@pytest.mark.parametrize("file", ["turbo.json", ".turbo/config.json"])
def test_an_address_of_the_repository_gets_a_token_only_if_the_user_knows_it(
    deployment: Deployment, tmp_path: Path, file: str
) -> None:
    """Or else every repository that someone clones could collect tokens."""
    clone, home = tmp_path / "clone", tmp_path / "home"
    write(clone / file, {"apiUrl": deployment.url, "remoteCache": {"apiUrl": deployment.url}})
    environment = {"HOME": str(home), "TURBO_TOKEN": KEY}

    def is_given(folder: Path = clone) -> bool:
        try:
            return bool(read_target(Settings(str(folder), environment)).url)
        except NoCredential as refusal:
            return f"larder accept {deployment.url}" not in str(refusal)

    assert not is_given()
    write(home / ".config" / "turborepo" / "config.json", {"apiUrl": f"{deployment.url}/"})
    assert is_given()
    (home / ".config" / "turborepo" / "config.json").unlink()
    Settings(str(clone), environment).accept(deployment.url)
    assert (home / ".config" / "larder" / "accepted.json").stat().st_mode & 0o777 == 0o600
    assert is_given()
    # Of this repository, and this address.
    other = tmp_path / "other"
    write(other / file, {"apiUrl": deployment.url, "remoteCache": {"apiUrl": deployment.url}})
    assert not is_given(other)
    Settings(str(clone), environment).accept("https://before.example")
    assert not is_given()
    environment["TURBO_API"] = deployment.url
    assert is_given()
