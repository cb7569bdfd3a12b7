"""Who may manage what is stored: every endpoint of it against roles, permissions and states of a team."""

from typing import Any

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user
from larder.accounts.sessions import start_session
from larder.api_keys.models import NewKey, Permissions
from larder.api_keys.service import create_key
from larder.teams.models import Block, CachingStatus, Role
from larder.teams.service import add_member, change_state, create_team, remove_member
from tests.requests import Cloud, Reply, Sender

pytestmark = pytest.mark.usefixtures("removal_jobs")

ENDPOINTS = {"list": 200, "inspect": 200, "delete": 200, "delete written": 202}
MANAGE: Permissions = {"artifacts": ("manage",)}

every_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS)


def ask(token: str, endpoint: str, query: str = "slug=acme") -> Reply:
    send = Sender(token, query=query)
    match endpoint:
        case "list":
            return send("GET", "/v1/artifacts")
        case "inspect":
            return send("GET", "/v1/artifacts/abc")
        case "delete":
            return send("DELETE", "/v1/artifacts/abc")
        case _:
            return Sender(token, query=f"{query}&writer=somebody")("DELETE", "/v1/artifacts")


def outcome(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.code if reply.status >= 400 else ""


@pytest.fixture
def stored(cloud: Cloud) -> Cloud:
    """The team and its owner have an artifact `abc` each."""
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
    own = Sender(key(cloud.user, {"artifacts": ("write",)}))
    assert own("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
    return cloud


def key(user: User, permissions: Permissions, **more: Any) -> str:
    return create_key(NewKey(user_id=user.id, permissions=permissions, **more), now=clock.now())[1]


def session(user: User) -> str:
    return start_session(user, now=clock.now())[1]


def member(cloud: Cloud, role: Role) -> User:
    user = create_user("member@acme.example", "Member", now=clock.now())
    add_member(cloud.team.id, user.id, role, now=clock.now())
    return user


@every_endpoint
@pytest.mark.parametrize("credential", ["key", "session"])
@pytest.mark.parametrize("role", list(Role))
def test_owners_and_admins_manage_and_nobody_else(
    stored: Cloud, role: Role, credential: str, endpoint: str
) -> None:
    user = member(stored, role)
    token = session(user) if credential == "session" else key(user, MANAGE)
    may = role in (Role.OWNER, Role.ADMIN)
    assert outcome(ask(token, endpoint)) == (
        (ENDPOINTS[endpoint], "") if may else (403, "missing_role")
    )


@every_endpoint
@pytest.mark.parametrize(
    "permissions",
    [{}, {"artifacts": ("read", "write")}, {"teams": ("manage",)}],
    ids=["none", "those of a build", "of something else"],
)
def test_an_owners_key_needs_the_permission(
    stored: Cloud, permissions: Permissions, endpoint: str
) -> None:
    reply = ask(key(stored.user, permissions), endpoint)
    assert outcome(reply) == (403, "missing_permission")


@pytest.mark.parametrize(("method", "path"), [("GET", "/v8/artifacts/abc"), ("PUT", "/v8/artifacts/abc")])  # fmt: skip
def test_the_permission_neither_reads_nor_writes(stored: Cloud, method: str, path: str) -> None:
    send = Sender(key(stored.user, MANAGE), slug="acme")
    assert outcome(send(method, path, body=b"x" if method == "PUT" else b"")) == (
        (403, "missing_permission")
    )


@every_endpoint
def test_without_a_team_people_manage_what_they_store_themselves(
    stored: Cloud, endpoint: str
) -> None:
    for token in (session(stored.user), key(stored.user, MANAGE)):
        assert ask(token, endpoint, query="").status == ENDPOINTS[endpoint]
        # The team's is another one.
        assert ask(token, "inspect").status == 200


@every_endpoint
def test_a_key_of_the_team_manages_that_team_alone(stored: Cloud, endpoint: str) -> None:
    bound = key(stored.user, MANAGE, team_id=stored.team.id)
    create_team("Other", "other", owner_user_id=stored.user.id, now=clock.now())
    assert ask(bound, endpoint).status == ENDPOINTS[endpoint]
    assert ask(bound, endpoint, query="").status in (200, 202, 404)
    assert outcome(ask(bound, endpoint, query="slug=other")) == (403, "not_a_team_member")


@every_endpoint
def test_strangers_are_told_nothing(stored: Cloud, endpoint: str) -> None:
    mallory = create_user("mallory@elsewhere.example", "Mallory", now=clock.now())
    for token in (session(mallory), key(mallory, MANAGE)):
        for query in ("slug=acme", f"teamId={stored.team.id}", "slug=nobody"):
            assert outcome(ask(token, endpoint, query=query)) == (403, "not_a_team_member")


@every_endpoint
def test_losing_the_role_takes_effect_at_the_next_request(stored: Cloud, endpoint: str) -> None:
    admin = member(stored, Role.ADMIN)
    token = key(admin, MANAGE)
    assert ask(token, "list").status == 200
    add_member(stored.team.id, admin.id, Role.DEVELOPER, now=clock.now())
    assert outcome(ask(token, endpoint)) == (403, "missing_role")
    remove_member(stored.team.id, admin.id)
    assert outcome(ask(token, endpoint)) == (403, "not_a_team_member")


@every_endpoint
@pytest.mark.parametrize("token", ["", "short", "a" * 64, "A" * 32])
def test_401_without_a_token_that_somebody_has(stored: Cloud, token: str, endpoint: str) -> None:
    assert outcome(ask(token, endpoint)) == (401, "unauthorized")


@every_endpoint
@pytest.mark.parametrize("status", [CachingStatus.DISABLED, CachingStatus.PAUSED])
def test_what_is_stored_can_be_managed_while_caching_is_off(
    stored: Cloud, status: CachingStatus, endpoint: str
) -> None:
    change_state(stored.team.id, caching=status)
    assert ask(session(stored.user), endpoint).status == ENDPOINTS[endpoint]


@every_endpoint
def test_a_team_over_its_quota_can_be_managed(stored: Cloud, endpoint: str) -> None:
    change_state(stored.team.id, quota_bytes=1)
    assert ask(session(stored.user), endpoint).status == ENDPOINTS[endpoint]


@every_endpoint
@pytest.mark.parametrize(
    ("block", "code"),
    [(Block.SOFT, "account_soft_blocked"), (Block.PAYMENT, "payment_missing")],
)
def test_402_for_a_blocked_account(stored: Cloud, block: Block, code: str, endpoint: str) -> None:
    change_state(stored.team.id, block=block)
    assert outcome(ask(session(stored.user), endpoint)) == (402, code)
