"""Every function logs the key and team of a request, and no secrets."""

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from larder import clock
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.service import find_user
from larder.accounts.sessions import list_sessions, start_session
from larder.api_keys.keys import list_keys
from local.template import Function
from tests.catalogue import CALLBACK, NAMES
from tests.default_template import template
from tests.functions.test_sample_events import arrive, run, sample
from tests.mailbox import Mailbox
from tests.requests import Browser, Cloud, Context, Sender, browser_of, invoke

KEYS = "/api/auth/api-key"
AUDITED = ("action", "user_id", "credential_id", "owner", "subject")
FUNCTIONS = template().functions
BEFORE = {
    "fetch_artifact": ["put_artifact"],
    "artifact_exists": ["put_artifact"],
    "query_artifacts": ["put_artifact"],
    "sign_in": ["sign_up"],
}
"""Requests to send first, so that a request succeeds."""

SECRET_FIELDS = {"authorization", "body", "cookie", "email", "key", "link", "token", "url", "x-api-key"}
SHORTEST_SECRET = 8


def is_secret(name: str) -> bool:
    return name.lower() in SECRET_FIELDS or "password" in name.lower()


def secrets(value: Any) -> Iterator[str]:
    """The secret strings of an event or a reply: by their names, and inside bodies and links."""
    if isinstance(value, list):
        for inner in value:
            yield from secrets(inner)
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        if name == "cookies":
            yield from (line.split(";")[0].partition("=")[2] for line in inner)
        elif name.lower() == "location" and isinstance(inner, str):
            yield from (text for _, text in parse_qsl(urlsplit(inner).query) if len(text) > 30)
        elif isinstance(inner, str) and is_secret(name):
            yield inner.removeprefix("Bearer ")
            if inner.startswith(("{", "[")):
                yield from secrets(json.loads(inner))
        else:
            yield from secrets(inner)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: str(function.logical_id))
def test_every_function_logs_the_request_and_no_secrets(
    function: Function, cloud: Cloud, mailbox: Mailbox, log: StringIO
) -> None:
    name = function.handler.split(".")[1]
    if name == "commit_upload":
        arrive(cloud)
    for first in BEFORE.get(name, []):
        run(first, cloud)
    event = sample(name, cloud)
    reply = invoke(function.handler, event)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    hidden = {text for text in secrets([event, reply]) if len(text) >= SHORTEST_SECRET}
    hidden |= {cloud.token, cloud.key.key_hash, cloud.user.email}
    assert [text for text in hidden if text in log.getvalue()] == []
    if "requestContext" in event:
        answered = lines[-1]
        assert answered["message"] == "answered"
        assert answered["request_id"] == event["requestContext"]["requestId"]
        assert answered["route"] == event["requestContext"]["routeKey"]
        assert answered["status"] == reply["statusCode"]
        assert answered["user_agent"] == event["requestContext"]["http"]["userAgent"]
    else:
        own = [line for line in lines if line.get("request_id") == Context.aws_request_id]
        assert own or name == "commit_upload", "it logs only errors of an object"
        assert not [line for line in own if "route" in line]


@pytest.mark.parametrize("name", ["put_artifact", "fetch_artifact", "query_artifacts", "record_events", "get_status"])
def test_a_line_has_the_key_and_the_team(name: str, cloud: Cloud, log: StringIO) -> None:
    run(name, cloud)
    line = json.loads(log.getvalue())
    assert line["key_id"] == cloud.key.id
    assert line["owner"] == cloud.team.id


def test_a_user_agent_cannot_forge_a_field(send: Sender, log: StringIO) -> None:
    agent = 'turbo","status":200,"x":"' + "x" * 200
    assert send("GET", "/v8/artifacts/absent", headers={"user-agent": agent}).status == 404
    line = json.loads(log.getvalue())
    assert (line["status"], line["user_agent"]) == (404, agent[:200])


@pytest.mark.parametrize("name", ["put_artifact", "fetch_artifact"])
def test_a_line_has_the_hash_of_the_artifact(name: str, cloud: Cloud, log: StringIO) -> None:
    run(name, cloud)
    line = json.loads(log.getvalue())
    assert line["hash"] == NAMES.hash


def test_the_log_says_who_signed_in_and_changed_which_key(cloud: Cloud, log: StringIO, mailbox: Mailbox) -> None:
    session, token = start_session(cloud.user, now=clock.now())
    send = Sender(token)
    key_id = send("POST", f"{KEYS}/create", json_body={"name": "ci"}).json["id"]
    send("POST", f"{KEYS}/update", json_body={"keyId": key_id, "enabled": False})
    send("POST", f"{KEYS}/delete", json_body={"keyId": key_id})
    body = {"email": "bob@acme.example", "password": "correct horse", "name": "Bob"}
    user_id = Browser().post("/sign-up/email", body).json["user"]["id"]
    Browser().post("/sign-in/email", {name: body[name] for name in ("email", "password")})
    bob = find_user(user_id)
    assert bob is not None
    second, first = (one.id for one in list_sessions(bob, now=clock.now()))
    token = issue_reset_token(cloud.user, now=clock.now())
    Browser().post("/reset-password", {"newPassword": "another horse", "token": token})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    audited = [tuple(line.get(name) for name in AUDITED) for line in lines if line["message"] == "audit"]
    ada = cloud.user.id
    assert audited == [
        ("key_created", ada, session.id, ada, key_id),
        ("key_changed", ada, session.id, ada, key_id),
        ("key_deleted", ada, session.id, ada, key_id),
        ("signed_up", user_id, "password", user_id, user_id),
        ("signed_in", user_id, "password", user_id, first),
        ("signed_in", user_id, "password", user_id, second),
        ("password_reset", None, None, ada, ada),
    ]
    answered = [line for line in lines if line.get("route") == f"POST {KEYS}/create"]
    assert {(line["user_id"], line["session_id"]) for line in answered} == {(ada, session.id)}
    (line,) = [line for line in lines if line.get("route") == "POST /api/auth/sign-in/email" and "status" in line]
    assert (line["user_id"], line["session_id"]) == (user_id, second)


def test_the_log_names_the_key_of_a_turbo_login(cloud: Cloud, log: StringIO) -> None:
    session, token = start_session(cloud.user, now=clock.now())
    body = {"redirectUri": CALLBACK, "state": "s", "name": "turbo on Linux"}
    assert browser_of(cloud.user, token=token).post("/turbo-login", body).status == 200
    (key,) = [key for key in list_keys(cloud.user.id) if key.id != cloud.key.id]
    audited, answered = [json.loads(line) for line in log.getvalue().splitlines()]
    assert tuple(audited[name] for name in AUDITED) == ("key_created", cloud.user.id, session.id, cloud.user.id, key.id)
    assert (answered["key_id"], answered["session_id"]) == (key.id, session.id)


def test_a_line_has_the_error_code_and_nothing_of_the_previous_request(cloud: Cloud, log: StringIO) -> None:
    run("get_status", cloud)
    run("get_status", cloud)
    cloud.send("GET", "/v8/artifacts/status", headers={"authorization": "Bearer none"})
    refused = json.loads(log.getvalue().splitlines()[-1])
    assert (refused["status"], refused["error"]) == (401, "unauthorized")
    assert not {"key_id", "owner"} & refused.keys()
