"""Endpoints of accounts that accept a key in place of a session, with SessionForApiKeys enabled."""

from typing import Any

import pytest

from larder.accounts.service import find_user
from tests.conftest import SetOption
from tests.requests import Cloud, Reply, Sender

IN_PERSON: dict[str, tuple[str, str, Any]] = {
    "change-password": ("POST", "/change-password", {"currentPassword": "x" * 8, "newPassword": "y" * 8}),
    "change-email": ("POST", "/change-email", {"newEmail": "new@acme.example"}),
    "update-user": ("POST", "/update-user", {"name": "Countess"}),
    "delete-user": ("POST", "/delete-user", {}),
    "verify-password": ("POST", "/verify-password", {"password": "x" * 8}),
    "list-sessions": ("GET", "/list-sessions", None),
    "revoke-session": ("POST", "/revoke-session", {"token": "A" * 32}),
    "revoke-other-sessions": ("POST", "/revoke-other-sessions", {}),
    "revoke-sessions": ("POST", "/revoke-sessions", {}),
}  # fmt: skip


@pytest.fixture
def by_key(cloud: Cloud, option: SetOption) -> Any:
    """Sends requests with Ada's key in its header."""
    option("session_for_api_keys", "true")

    def send(method: str, path: str, body: Any = None) -> Reply:
        headers = {"x-api-key": cloud.token}
        return Sender(None)(method, f"/api/auth{path}", json_body=body, headers=headers)

    return send


@pytest.mark.parametrize("name", IN_PERSON)
def test_401_for_an_api_key_where_a_session_is_required(
    cloud: Cloud, by_key: Any, name: str
) -> None:
    reply = by_key(*IN_PERSON[name])
    assert (reply.status, reply.json["code"]) == (401, "UNAUTHORIZED")
    assert find_user(cloud.user.id) == cloud.user


def test_get_session_returns_the_owner_and_never_the_key(cloud: Cloud, by_key: Any) -> None:
    reply = by_key("GET", "/get-session")
    assert reply.json["user"]["id"] == cloud.user.id
    assert reply.json["session"]["token"] == cloud.key.id
    assert cloud.token not in reply.body.decode()
    assert reply.cookies == ()


def test_sign_out_ends_no_session(cloud: Cloud, by_key: Any) -> None:
    assert by_key("POST", "/sign-out", {}).status == 200
    assert by_key("GET", "/get-session").status == 200
