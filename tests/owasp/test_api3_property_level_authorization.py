"""API3: Broken object property level authorization. Clients cannot set or read internal properties."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from larder import clock
from larder.accounts.service import find_user, find_user_by_email
from larder.teams.members import list_members
from larder.teams.models import Role
from larder.teams.teams import find_team
from tests.addresses import prove_address
from tests.catalogue import valid
from tests.documented import document
from tests.owasp.conftest import Person, json_body, operations, stored
from tests.requests import Sender

GREEDY: dict[str, Any] = {
    "id": "chosen",
    "_id": "chosen",
    "userId": "chosen",
    "user_id": "chosen",
    "referenceId": "chosen",
    "owner": "chosen",
    "creatorId": "chosen",
    "createdAt": 0,
    "updatedAt": "2000-01-01T00:00:00.000Z",
    "emailVerified": True,
    "email_verified": True,
    "isOperator": True,
    "is_operator": True,
    "operator": True,
    "admin": True,
    "state": {"quota_bytes": 10**18},
    "quotaBytes": 10**18,
    "quota_bytes": 10**18,
    "block": None,
    "version": -1,
    "session_generation": 99,
    "generation": 99,
    "password_hash": "chosen",
    "key_hash": "chosen",
    "key": "chosen",
    "start": "chosen",
    "lastRequest": "chosen",
    "requestCount": 10**18,
    "role": "chosen",
    "prototype": "chosen",
    "__proto__": {"admin": True},
    "constructor": {"prototype": {"admin": True}},
}
"""Properties that no request can set, under their names in requests, in tables and in other products."""

WITH_BODY = [
    one
    for one, operation in operations().items()
    if json_body(operation) and json_body(operation)["schema"].get("type") == "object"  # type: ignore[index]
]


@pytest.mark.parametrize("operation", WITH_BODY, ids=" ".join)
def test_unknown_properties_of_a_body_are_neither_stored_nor_returned(operation: tuple[str, str], ada: Person) -> None:
    body = json_body(operations()[operation])
    assert body is not None
    known = set(body["schema"]["properties"])
    greedy = {name: value for name, value in GREEDY.items() if name not in known}
    request = valid(" ".join(operation), ada.names, email="new@ada.example")
    reply = replace(request, json={**request.json, **greedy})(ada.by_session)
    assert reply.status < 500
    assert "chosen" not in str(stored())
    assert str(10**18) not in str(stored())
    if reply.status < 300 and reply.body not in (b"", b"null"):
        assert "chosen" not in reply.body.decode()
    user = find_user(ada.user.id)
    assert user is None or (user.email_verified, user.id) == (False, ada.user.id)


def test_a_new_user_is_neither_verified_nor_an_operator(ada: Person) -> None:
    body = {"name": "Eve", "email": "eve@eve.example", "password": "a good one", **GREEDY}
    shown = Sender(None)("POST", "/api/auth/sign-up/email", json_body=body).json["user"]
    user = find_user_by_email("eve@eve.example")
    assert user is not None
    assert shown["id"] == user.id != "chosen"
    assert (shown["emailVerified"], user.email_verified, user.version) == (False, False, 0)


def test_a_user_cannot_gain_rights_from_extra_properties_of_a_team_or_invitation(ada: Person) -> None:
    prove_address(ada.user)
    body = {"slug": "new-team", "role": "OWNER", "members": [{"uid": "x"}], "id": "team_chosen"}
    made = ada.by_session("POST", "/v1/teams", json_body=body).json
    assert made["id"] != "team_chosen"
    assert [member.user_id for member in list_members(made["id"])] == [ada.user.id]
    before = {member.user_id: member.role for member in list_members(ada.team.id)}
    patched = {"name": "Ours", "role": "OWNER", "membership": {"role": "OWNER"}, "id": "x"}
    ada.by_session("PATCH", f"/v2/teams/{ada.team.id}", json_body=patched)
    assert {member.user_id: member.role for member in list_members(ada.team.id)} == before
    assert before[ada.member_id] is Role.MEMBER
    team = find_team(ada.team.id)
    assert team is not None
    assert team.state == ada.team.state


SECRET = re.compile(r"password|hash|secret|generation|version|canonical|address$", re.IGNORECASE)
SHOWN_ON_PURPOSE = {
    *(
        "asksAddress", "dirtyHash", "hash", "hashes", "ipAddress", "needsPassword", "passwords", "sameHash",
        "sameHashCount", "turboVersion",
    ),
    "version",
}  # fmt: skip


def test_no_reply_has_a_property_for_a_secret() -> None:
    schemas = document()["components"]["schemas"]
    shown = {name for schema in schemas.values() for name in schema.get("properties", {})}
    assert {name for name in shown if SECRET.search(name)} <= SHOWN_ON_PURPOSE


def test_no_reply_about_a_user_contains_a_hash_of_a_credential(ada: Person) -> None:
    paths = ("/api/auth/get-session", "/api/auth/api-key/list", "/v2/user", "/v2/teams",
             "/v5/user/tokens/current", f"/v3/teams/{ada.team.id}/members")  # fmt: skip
    shown = "".join(ada.by_session("GET", path).body.decode() for path in paths)
    held = str(stored())
    hashes = set(re.findall(r"\b[0-9a-f]{64}\b", held)) | set(re.findall(r"\b[0-9a-f]{32}:[0-9a-f]{64,}", held))
    assert hashes
    assert [one for one in hashes if one in shown] == []
    assert clock.now() > ada.user.created_at
