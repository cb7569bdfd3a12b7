"""Which artifacts a caller can manage. tests/functions/test_access.py tests which roles can."""

from typing import Any

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key
from larder.api_keys.models import Permissions
from larder.api_keys.properties import NewKey
from larder.hashing import random_id
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.teams import create_team
from tests.requests import Cloud, Reply, Sender

pytestmark = pytest.mark.usefixtures("removal_jobs")

ENDPOINTS = {"list": 200, "inspect": 200, "delete": 200, "delete many": 202}
MANAGE: Permissions = {"artifacts": ("manage",)}

every_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS)


def ask(send: Sender, endpoint: str) -> Reply:
    match endpoint:
        case "list":
            return send("GET", "/v1/artifacts")
        case "inspect":
            return send("GET", "/v1/artifacts/abc")
        case "delete":
            return send("DELETE", "/v1/artifacts/abc")
        case _:
            return send.asking(writer=random_id())("DELETE", "/v1/artifacts")


def key(user: User, permissions: Permissions = MANAGE, **more: Any) -> str:
    return create_key(NewKey(user_id=user.id, permissions=permissions, **more), now=clock.now())[1]


@pytest.fixture
def stored(cloud: Cloud) -> Cloud:
    """The team and its owner each have an artifact `abc`."""
    own = Sender(key(cloud.user, {"artifacts": ("write",)}))
    for send in (cloud.send, own):
        assert send("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
    return cloud


@every_endpoint
def test_users_manage_their_personal_artifacts(stored: Cloud, endpoint: str) -> None:
    for token in (start_session(stored.user, now=clock.now())[1], key(stored.user)):
        assert ask(Sender(token), endpoint).status == ENDPOINTS[endpoint]
        # The team has another artifact of that hash.
        assert ask(Sender(token, slug="acme"), "inspect").status == 200


@every_endpoint
def test_a_team_key_manages_only_that_team(stored: Cloud, endpoint: str) -> None:
    bound = key(stored.user, team_id=stored.team.id)
    create_team("Other", "other", owner_user_id=stored.user.id, now=clock.now())
    reply = ask(Sender(bound, slug="other"), endpoint)
    assert (reply.status, reply.code) == (403, "not_a_team_member")
    assert ask(Sender(bound), endpoint).status == ENDPOINTS[endpoint]
    # The key does not affect the personal artifacts of its owner.
    assert ask(Sender(key(stored.user)), "inspect").status == 200


@every_endpoint
def test_losing_the_role_takes_effect_at_the_next_request(stored: Cloud, endpoint: str) -> None:
    admin = create_user("admin@acme.example", "Admin", now=clock.now())
    add_member(stored.team.id, admin.id, Role.ADMIN, now=clock.now())
    send = Sender(key(admin), slug="acme")
    assert ask(send, "list").status == 200
    add_member(stored.team.id, admin.id, Role.DEVELOPER, now=clock.now())
    reply = ask(send, endpoint)
    assert (reply.status, reply.code) == (403, "missing_role")
