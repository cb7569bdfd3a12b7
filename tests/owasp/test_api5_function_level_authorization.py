"""API5: Broken function level authorization. Endpoints for operators, owners or admins refuse other callers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import find_user
from larder.accounts.sessions import start_session
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.teams import find_team
from tests.access import ROWS
from tests.catalogue import Request, valid
from tests.owasp.conftest import Person, stored
from tests.requests import Sender

FOR_OPERATORS = "/api/auth/api-key/delete-all-expired-api-keys"


def test_a_team_owner_is_not_an_operator(ada: Person) -> None:
    assert ada.by_session("POST", FOR_OPERATORS).refusal == (403, "OPERATOR_ONLY")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-http-method-override": "DELETE"},
        {"x-method-override": "DELETE"},
        {"x-original-url": "/v1/teams/team-of-ada", "x-rewrite-url": "/v1/teams/team-of-ada"},
        {"x-user-id": "ada", "x-role": "OWNER", "x-amzn-oidc-identity": "ada"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_no_header_changes_the_method_or_path(headers: dict[str, str], ada: Person) -> None:
    reply = ada.by_session("GET", "/v2/teams/team-of-ada", headers=headers)
    assert (reply.status, reply.json["id"]) == (200, ada.team.id)
    assert find_team(ada.team.id) == ada.team


MEMBERS = ("MEMBER", "DEVELOPER", "VIEWER")
BY_OWNERS = [endpoint for endpoint, words in ROWS.items() if {words[role] for role in MEMBERS} == {"role"}]


def requests_of_owners(ada: Person) -> list[Request]:
    requests = [valid(operation, ada.names, member=ada.user.id) for operation in BY_OWNERS]
    pause = valid("PATCH /v2/teams/{idOrSlug}", ada.names)
    return [*requests, replace(pause, json={"remoteCaching": {"enabled": False}})]


@pytest.mark.parametrize("role", MEMBERS)
def test_a_member_cannot_do_what_owners_and_admins_can(role: str, ada: Person) -> None:
    add_member(ada.team.id, ada.member_id, Role(role), now=clock.now())
    token = start_session(_user(ada.member_id), now=clock.now())[1]
    before = stored()
    for request in requests_of_owners(ada):
        reply = request(Sender(token, slug=ada.team.slug))
        assert (reply.status, reply.code) == (403, "missing_role"), request
    assert stored() == before


def _user(user_id: str) -> User:
    user = find_user(user_id)
    assert user is not None
    return user
