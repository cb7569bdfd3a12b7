"""Functions of the integrator, as `make serve EXTENSIONS=module PYTHONPATH=folder` runs them."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .cloud import running
from .workspaces import write

pytestmark = pytest.mark.e2e

MODULE = """
import hashlib
import json
import pathlib

_CALLS = pathlib.Path(__file__).with_name("calls")


def _note(name, **more):
    with _CALLS.open("a") as file:
        file.write(json.dumps({"name": name, **more}) + chr(10))


def generate_key(length, prefix):
    _note("generate_key")
    import secrets

    return prefix + "own" + secrets.token_hex(length)


async def validate_key(key, ctx):
    return not key.startswith("refused")


async def default_key_permissions(user_id, ctx):
    return {"artifacts": ["read"], "files": ["read"]}


def find_api_key(ctx):
    return ctx["headers"].get("x-own")


def hash_password(password):
    return "own:" + hashlib.sha256(password.encode()).hexdigest()


def verify_password(hash, password):
    _note("verify_password")
    return hash == hash_password(password)


def send_verification_email(data, request):
    _note("send_verification_email", token=data["token"])


def send_reset_password(data, request):
    _note("send_reset_password", token=data["token"])


def on_password_reset(data, request):
    _note("on_password_reset", email=data["user"]["email"])


def send_team_invitation(data, request):
    _note("send_team_invitation", email=data["email"], team=data["team"]["slug"])
"""

PASSWORD = "correct horse battery"


class Server:
    """`make serve` with the module, whose folder has its calls."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Without cookies, as a program."""
        return httpx.request(method, self.url + path, trust_env=False, timeout=60, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.ask("POST", f"/api/auth{path}", **more)

    def calls(self, name: str) -> list[dict[str, str]]:
        """The calls of a function. Mail is sent in the background."""
        path = self.folder / "calls"
        deadline = time.monotonic() + 15
        while True:
            lines = path.read_text().splitlines() if path.exists() else []
            found = [one for one in map(json.loads, lines) if one["name"] == name]
            if found or time.monotonic() > deadline:
                return found
            time.sleep(0.1)


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("integrator")
    write(folder, {"company/__init__.py": "", "company/larder.py": MODULE})
    options = {"EXTENSIONS": "company.larder", "PYTHONPATH": str(folder), "LARDER_SESSION_FOR_API_KEYS": "true"}
    command = ("make", "serve")
    with running(request.config.rootpath, folder / "data", command=command, **options) as cloud:
        yield Server(folder / "company", cloud.url)


def test_each_function_replaces_what_larder_does(server: Server) -> None:
    post = server.post
    person = {"name": "Ada", "email": "ada@acme.example", "password": PASSWORD}
    token = post("/sign-up/email", json=person).json()["token"]
    assert server.calls("send_verification_email")
    assert post("/sign-in/email", json={**person, "password": "wrong horse"}).status_code == 401
    assert post("/sign-in/email", json=person).status_code == 200
    assert server.calls("verify_password")

    bearer = {"authorization": f"Bearer {token}"}
    key = post("/api-key/create", json={"name": "ci"}, headers=bearer).json()
    assert key["key"].startswith("own")
    assert key["permissions"] == {"artifacts": ["read"], "files": ["read"]}
    assert post("/api-key/verify", json={"key": key["key"]}).json()["valid"]
    refused = post("/api-key/verify", json={"key": "refused" + "x" * 64}).json()
    assert refused["error"]["code"] == "INVALID_API_KEY"
    session = server.ask("GET", "/api/auth/get-session", headers={"x-own": key["key"]}).json()
    assert session["user"]["email"] == person["email"]

    mail = {"email": person["email"], "redirectTo": "/reset"}
    assert post("/request-password-reset", json=mail).status_code == 200
    (sent,) = server.calls("send_reset_password")
    new = {"newPassword": "another correct horse", "token": sent["token"]}
    assert post("/reset-password", json=new).status_code == 200
    assert server.calls("on_password_reset") == [{"name": "on_password_reset", "email": person["email"]}]

    again = post("/sign-in/email", json={**person, "password": new["newPassword"]}).json()["token"]
    bearer = {"authorization": f"Bearer {again}"}
    team = server.ask("POST", "/v1/teams", json={"slug": "web", "name": "Web"}, headers=bearer)
    assert team.status_code == 200, team.text
    invited = {"email": "bob@acme.example", "role": "DEVELOPER"}
    reply = server.ask("POST", "/v2/teams/web/members", json=invited, headers=bearer)
    assert reply.status_code == 200, reply.text
    (call,) = server.calls("send_team_invitation")
    assert (call["email"], call["team"]) == ("bob@acme.example", "web")
