"""API1: Broken object level authorization. A request for another user's data reads nothing and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.owasp.conftest import HASH, Person, operations, stored
from tests.requests import Reply, Sender

Ask = Callable[[Sender, Person], Reply]


def of_team(method: str, path: str, body: Any = None) -> Ask:
    """A request with the id of Ada's team in its path."""

    def ask(send: Sender, ada: Person) -> Reply:
        filled = path.format(idOrSlug=ada.team.id, uid=ada.member_id)
        return send(method, filled, json_body=body)

    return ask


def for_team(method: str, path: str, **sent: Any) -> Ask:
    """A request for the cache with Ada's team in its query."""

    def ask(send: Sender, ada: Person) -> Reply:
        return send(method, f"{path.format(hash=HASH)}?slug={ada.team.slug}", **sent)

    return ask


def of_key(path: str, **more: Any) -> Ask:
    return lambda send, ada: send(
        "POST", f"/api/auth/api-key/{path}", json_body={"keyId": ada.key_id, **more}
    )


INVITE = {"email": "mallory@mallory.example", "role": "OWNER"}
SESSION = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
EVENT = {"sessionId": SESSION, "source": "LOCAL", "event": "HIT", "hash": HASH}

REQUESTS: dict[tuple[str, str], Ask] = {
    ("PUT", "/v8/artifacts/{hash}"): for_team("PUT", "/v8/artifacts/{hash}", body=b"poison"),
    ("GET", "/v8/artifacts/{hash}"): for_team("GET", "/v8/artifacts/{hash}"),
    ("HEAD", "/v8/artifacts/{hash}"): for_team("HEAD", "/v8/artifacts/{hash}"),
    ("OPTIONS", "/v8/artifacts/{hash}"): for_team(
        "OPTIONS", "/v8/artifacts/{hash}", headers={"access-control-request-method": "PUT"}
    ),
    ("POST", "/v8/artifacts"): for_team("POST", "/v8/artifacts", json_body={"hashes": [HASH]}),
    ("POST", "/v8/artifacts/events"): for_team("POST", "/v8/artifacts/events", json_body=[EVENT]),
    ("GET", "/v8/artifacts/status"): for_team("GET", "/v8/artifacts/status"),
    ("PUT", "/v1/artifacts/status"): for_team(
        "PUT", "/v1/artifacts/status", json_body={"status": "disabled"}
    ),
    ("GET", "/v1/artifacts"): for_team("GET", "/v1/artifacts"),
    ("GET", "/v1/artifacts/{hash}"): for_team("GET", "/v1/artifacts/{hash}"),
    ("DELETE", "/v1/artifacts/{hash}"): for_team("DELETE", "/v1/artifacts/{hash}"),
    ("DELETE", "/v1/artifacts"): lambda send, ada: send(
        "DELETE", f"/v1/artifacts?slug={ada.team.slug}&writer={ada.user.id}"
    ),
    ("GET", "/v1/usage"): for_team("GET", "/v1/usage"),
    ("GET", "/v2/teams/{idOrSlug}"): of_team("GET", "/v2/teams/{idOrSlug}"),
    ("PATCH", "/v2/teams/{idOrSlug}"): of_team("PATCH", "/v2/teams/{idOrSlug}", {"name": "Mine"}),
    ("DELETE", "/v1/teams/{idOrSlug}"): of_team("DELETE", "/v1/teams/{idOrSlug}"),
    ("GET", "/v3/teams/{idOrSlug}/members"): of_team("GET", "/v3/teams/{idOrSlug}/members"),
    ("POST", "/v1/teams/{idOrSlug}/members"): of_team(
        "POST", "/v1/teams/{idOrSlug}/members", INVITE
    ),
    ("POST", "/v2/teams/{idOrSlug}/members"): of_team(
        "POST", "/v2/teams/{idOrSlug}/members", [INVITE]
    ),
    ("PATCH", "/v1/teams/{idOrSlug}/members/{uid}"): of_team(
        "PATCH", "/v1/teams/{idOrSlug}/members/{uid}", {"role": "VIEWER"}
    ),
    ("DELETE", "/v1/teams/{idOrSlug}/members/{uid}"): of_team(
        "DELETE", "/v1/teams/{idOrSlug}/members/{uid}"
    ),
    ("POST", "/v1/teams/{idOrSlug}/members/teams/join"): of_team(
        "POST", "/v1/teams/{idOrSlug}/members/teams/join", {"token": "A" * 40}
    ),
    ("POST", "/v1/teams/join"): lambda send, ada: send(
        "POST", "/v1/teams/join", json_body={"inviteCode": ada.invitation_id}
    ),
    ("GET", "/api/auth/api-key/get"): lambda send, ada: send(
        "GET", f"/api/auth/api-key/get?id={ada.key_id}"
    ),
    ("POST", "/api/auth/api-key/update"): of_key("update", enabled=False),
    ("POST", "/api/auth/api-key/delete"): of_key("delete"),
    ("POST", "/api/auth/api-key/create"): lambda send, ada: send(
        "POST", "/api/auth/api-key/create", json_body={"teamId": ada.team.id}
    ),
    ("POST", "/api/auth/revoke-session"): lambda send, ada: send(
        "POST", "/api/auth/revoke-session", json_body={"token": ada.session}
    ),
    ("GET", "/api/auth/turbo-login"): lambda send, ada: send(
        "GET", f"/api/auth/turbo-login?redirect_uri=http://127.0.0.1:9789&team={ada.team.id}"
    ),
    ("POST", "/api/auth/turbo-login"): lambda send, ada: send(
        "POST",
        "/api/auth/turbo-login",
        json_body={"redirectUri": "http://127.0.0.1:9789", "teamId": ada.team.id},
        headers={"origin": "https://cache.example.com"},
    ),
}

# These take a secret, and the secret alone is the credential.
BY_SECRET = {
    ("GET", "/api/auth/reset-password/{token}"),
    ("GET", "/registration/verify"),
}
SAME_REPLY_FOR_UNKNOWN = {"/api/auth/revoke-session"}
"""Revoking another user's session gets the same reply as revoking an unknown session."""


def names_something(operation: dict[str, Any]) -> bool:
    """Whether a request can name an object that belongs to a user or team."""
    parameters = {one["name"] for one in operation.get("parameters", [])}
    named = {"hash", "idOrSlug", "uid", "id", "keyId", "teamId", "slug", "token", "team"}
    bodies = str(operation.get("requestBody", {}))
    return bool(parameters & named) or bool(re.search(r"'(keyId|teamId|inviteCode)'", bodies))


def test_every_operation_with_an_object_id_is_tested_with_another_users_object() -> None:
    links = {("GET", "/api/auth/verify-email"), ("POST", "/api/auth/reset-password")}
    others = {("GET", "/v2/teams"), ("GET", "/api/auth/sso")}
    naming = {one for one, operation in operations().items() if names_something(operation)}
    assert naming - REQUESTS.keys() == (BY_SECRET | links | others) & naming


# Endpoints under /api/auth do not accept keys.
BY = [
    (operation, by)
    for operation in REQUESTS
    for by in (["session"] if operation[1].startswith("/api/auth/") else ["session", "key"])
]


@pytest.mark.parametrize(
    ("operation", "by"), BY, ids=lambda one: one if isinstance(one, str) else " ".join(one)
)
def test_another_users_object_is_refused_unchanged_and_not_revealed(
    operation: tuple[str, str], by: str, ada: Person, mallory: Person
) -> None:
    before = stored(but_of=mallory)
    reply = REQUESTS[operation](mallory.by_session if by == "session" else mallory.by_key, ada)
    if operation[1] in SAME_REPLY_FOR_UNKNOWN:
        assert reply.status == 200
    else:
        assert reply.status in (401, 403, 404)
    assert stored(but_of=mallory) == before
    shown = reply.body.decode() + str(reply.headers)
    assert [trace for trace in ada.traces if trace in shown] == []


def test_the_same_hash_is_a_separate_artifact_for_each_owner(ada: Person, mallory: Person) -> None:
    own = mallory.by_key("GET", f"/v8/artifacts/{HASH}")
    assert own.body == b"the artifact of mallory"
    assert ada.by_key("GET", f"/v8/artifacts/{HASH}").body == b"the artifact of ada"


def test_lists_contain_only_the_callers_own_objects(ada: Person, mallory: Person) -> None:
    listed = [
        mallory.by_session("GET", path).body.decode()
        for path in ("/v2/teams", "/api/auth/api-key/list", "/api/auth/list-sessions", "/v2/user")
    ]
    assert [trace for trace in ada.traces if trace in str(listed)] == []


def test_an_invitation_id_does_not_work_as_its_token(ada: Person) -> None:
    send = ada.by_session
    joined = send("POST", "/v1/teams/join", json_body={"token": ada.invitation_id})
    assert (joined.status, joined.code) == (404, "invitation_not_found")
