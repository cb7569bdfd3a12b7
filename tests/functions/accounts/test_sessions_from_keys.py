"""Endpoints of accounts that accept a key in place of a session, with SessionForApiKeys enabled."""

from collections.abc import Mapping
from typing import Any

import pytest

from larder.accounts.service import find_user
from tests.catalogue import valid
from tests.conftest import SetOption
from tests.documented import document
from tests.requests import Cloud, Reply, Sender

FOR_OPERATORS = "POST /api/auth/api-key/delete-all-expired-api-keys"
"""A key gets the error of a user who is no operator."""

IN_PERSON = [
    f"{method.upper()} {path}"
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
    if [list(way) for way in operation["security"]] == [["sessionCookie"], ["sessionToken"]]
]


@pytest.fixture
def by_key(cloud: Cloud, option: SetOption) -> Any:
    """Sends requests with Ada's key in its header."""
    option("session_for_api_keys", "true")

    def send(method: str, path: str, body: Any = None, more: Mapping[str, str] | None = None) -> Reply:
        headers = {**(more or {}), "x-api-key": cloud.token}
        return Sender(None)(method, f"/api/auth{path}", json_body=body, headers=headers)

    return send


@pytest.mark.parametrize("operation", sorted(set(IN_PERSON) - {FOR_OPERATORS}))
def test_401_for_an_api_key_where_a_session_is_required(cloud: Cloud, by_key: Any, operation: str) -> None:
    request = valid(operation)
    path = request.path.removeprefix("/api/auth")
    reply = by_key(request.method, path, request.json, request.headers)
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
