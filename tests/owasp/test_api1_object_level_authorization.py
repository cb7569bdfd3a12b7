"""API1: Broken object level authorization. A request for another user's data reads nothing and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.catalogue import CALLBACK, Request, valid
from tests.owasp.conftest import HASH, Person, operations, stored

INVITE = {"email": "mallory@mallory.example", "role": "OWNER"}

CHANGED: dict[tuple[str, str], Callable[[Person], dict[str, Any]]] = {
    ("GET", "/api/auth/turbo-login"): lambda ada: {"query": f"redirect_uri={CALLBACK}&team={ada.team.id}"},
    ("POST", "/api/auth/turbo-login"): lambda ada: {"json": {"redirectUri": CALLBACK, "teamId": ada.team.id}},
    ("POST", "/api/auth/api-key/create"): lambda ada: {"json": {"teamId": ada.team.id}},
    ("POST", "/v1/teams/join"): lambda ada: {"json": {"inviteCode": ada.invitation_id}},
    ("POST", "/v1/teams/{idOrSlug}/members"): lambda _: {"json": INVITE},
    ("POST", "/v2/teams/{idOrSlug}/members"): lambda _: {"json": [INVITE]},
}
"""What makes a request of the catalogue name Ada's object, or give Mallory more than it otherwise would."""

# These take a secret, and the secret alone is the credential.
BY_SECRET = {
    ("GET", "/api/auth/reset-password/{token}"),
    ("GET", "/registration/verify"),
    ("POST", "/login/oauth/token"),
}
LINKS = {("GET", "/api/auth/verify-email"), ("POST", "/api/auth/reset-password")}
OTHERS = {
    ("GET", "/api/auth/sso"),
    # The id is that of an identity provider, which belongs to no user.
    ("GET", "/api/auth/callback/{id}"),
}
SAME_REPLY_FOR_UNKNOWN = {"/api/auth/revoke-session"}
"""Revoking another user's session gets the same reply as revoking an unknown session."""


def names_something(operation: dict[str, Any]) -> bool:
    """Whether a request can name an object that belongs to a user or team."""
    parameters = {parameter["name"] for parameter in operation.get("parameters", [])}
    named = {"hash", "idOrSlug", "uid", "id", "keyId", "teamId", "slug", "token", "team"}
    bodies = str(operation.get("requestBody", {}))
    return bool(parameters & named) or bool(re.search(r"'(keyId|teamId|inviteCode)'", bodies))


NAMING = {one for one, operation in operations().items() if names_something(operation)}
TESTED = sorted((NAMING | {("POST", "/api/auth/revoke-session")}) - BY_SECRET - LINKS - OTHERS)


def request_for(operation: tuple[str, str], ada: Person) -> Request:
    """A request for Ada's object. The sender adds her team."""
    request = valid(" ".join(operation), ada.names)
    return replace(request, **CHANGED[operation](ada)) if operation in CHANGED else request


def test_every_operation_with_an_object_id_is_tested_with_another_users_object(ada: Person) -> None:
    assert NAMING >= BY_SECRET | LINKS | OTHERS
    for operation in TESTED:
        request = request_for(operation, ada)
        assert request.for_team or any(trace in str(request) for trace in ada.traces), request


# Endpoints under /api/auth do not accept keys.
BY = [
    (operation, by)
    for operation in TESTED
    for by in (["session"] if operation[1].startswith("/api/auth/") else ["session", "key"])
]


@pytest.mark.parametrize(("operation", "by"), BY, ids=lambda one: one if isinstance(one, str) else " ".join(one))
def test_another_users_object_is_refused_unchanged_and_not_revealed(
    operation: tuple[str, str], by: str, ada: Person, mallory: Person
) -> None:
    before = stored(but_of=mallory.key_id)
    request = request_for(operation, ada)
    send = mallory.by_session if by == "session" else mallory.by_key
    reply = request(replace(send, slug=ada.team.slug) if request.for_team else send)
    if operation[1] in SAME_REPLY_FOR_UNKNOWN:
        assert reply.status == 200
    else:
        assert reply.status in (401, 403, 404)
    assert stored(but_of=mallory.key_id) == before
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
