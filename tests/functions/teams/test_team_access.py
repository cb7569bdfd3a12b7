"""Permissions in a team: every team endpoint with every role, every kind of token and every hostile name.

The tables are the contract; docs/teams.md documents it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.sessions import revoke_sessions, start_session
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.models import Permissions
from larder.api_keys.properties import NewKey
from larder.teams.members import list_members
from larder.teams.models import Block, CachingStatus, Role
from larder.teams.state import change_state
from larder.teams.teams import create_team, find_team
from tests.functions.teams.people import Person, joined, key_of, newcomer, outcome, signed_in
from tests.mailbox import Mailbox
from tests.requests import Cloud, Reply, Sender

OWNERS = {Role.OWNER}
MANAGERS = {Role.OWNER, Role.ADMIN}
EVERYBODY = set(Role)
READ: Permissions = {"teams": ("read",)}
WRITE: Permissions = {"teams": ("write",)}
MANAGE: Permissions = {"artifacts": ("manage",)}


@dataclass(frozen=True)
class Endpoint:
    """One request to a team, the roles that can send it, and the permission that a key needs for it."""

    name: str
    method: str
    path: str
    body: object
    roles: set[Role]
    needs: Permissions

    def ask(self, send: Sender, team: str, member: str = "nobody") -> Reply:
        path = self.path.replace("{team}", team).replace("{member}", member)
        return send(self.method, path, json_body=self.body)

    def __str__(self) -> str:
        return self.name


ENDPOINTS = [
    Endpoint("read the team", "GET", "/v2/teams/{team}", None, EVERYBODY, {}),
    Endpoint("list members", "GET", "/v3/teams/{team}/members", None, EVERYBODY, READ),
    Endpoint("rename", "PATCH", "/v2/teams/{team}", {"name": "New"}, MANAGERS, WRITE),
    Endpoint("another slug", "PATCH", "/v2/teams/{team}", {"slug": "new"}, MANAGERS, WRITE),
    Endpoint(
        "set caching", "PATCH", "/v2/teams/{team}", {"remoteCaching": {"enabled": False}}, OWNERS, MANAGE
    ),
    Endpoint(
        "rename and set caching", "PATCH", "/v2/teams/{team}",
        {"name": "New", "remoteCaching": {"enabled": False}}, OWNERS, {**WRITE, **MANAGE},
    ),
    Endpoint("delete", "DELETE", "/v1/teams/{team}", None, OWNERS, WRITE),
    Endpoint(
        "invite", "POST", "/v2/teams/{team}/members", {"email": "new@b.example"}, MANAGERS, WRITE
    ),
    Endpoint(
        "invite with the old path", "POST", "/v1/teams/{team}/members", {"email": "new@b.example"}, MANAGERS, WRITE
    ),
    Endpoint(
        "change a role", "PATCH", "/v1/teams/{team}/members/{member}", {"role": "VIEWER"}, MANAGERS, WRITE
    ),
    Endpoint("list keys", "GET", "/v1/teams/{team}/keys", None, MANAGERS, READ),
    Endpoint("list scopes", "GET", "/v1/teams/{team}/scopes", None, MANAGERS, MANAGE),
    Endpoint("remove", "DELETE", "/v1/teams/{team}/members/{member}", None, MANAGERS, WRITE),
]  # fmt: skip

every_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS, ids=str)
every_role = pytest.mark.parametrize("role", list(Role))


@pytest.fixture
def eve(cloud: Cloud, mailbox: Mailbox) -> Person:
    """A member who is the target of requests."""
    return joined(cloud, Role.MEMBER, "eve")


def state_of(cloud: Cloud) -> tuple[object, ...]:
    return find_team(cloud.team.id), list_members(cloud.team.id)


@every_role
@every_endpoint
def test_a_session_can_do_what_the_role_allows(cloud: Cloud, eve: Person, endpoint: Endpoint, role: Role) -> None:
    bob = joined(cloud, role)
    before = state_of(cloud)
    reply = endpoint.ask(bob.send, "acme", eve.user.id)
    if role in endpoint.roles:
        assert reply.status == 200
    else:
        assert outcome(reply) == (403, "missing_role")
        named = "owner or admin" if Role.ADMIN in endpoint.roles else "owner of the team"
        assert reply.json["message"].startswith(f"Only an {named}")
        assert state_of(cloud) == before


@every_role
@every_endpoint
def test_a_key_can_do_no_more_than_its_users_role_allows(
    cloud: Cloud, eve: Person, endpoint: Endpoint, role: Role
) -> None:
    send = key_of(joined(cloud, role), endpoint.needs, team_id=cloud.team.id)
    reply = endpoint.ask(send, "acme", eve.user.id)
    assert outcome(reply) == ((200, "") if role in endpoint.roles else (403, "missing_role"))


@pytest.mark.parametrize(
    "permissions", [{}, {"artifacts": ("read", "write")}, READ, WRITE, MANAGE, {"teams": ("read", "manage")}], ids=str
)
@every_endpoint
def test_a_key_of_any_role_needs_the_permission(
    cloud: Cloud, eve: Person, endpoint: Endpoint, permissions: Permissions
) -> None:
    send = key_of(signed_in(cloud.user), permissions)
    held = all(set(actions) <= set(permissions.get(resource, ())) for resource, actions in endpoint.needs.items())
    before = state_of(cloud)
    reply = endpoint.ask(send, "acme", eve.user.id)
    assert outcome(reply) == ((200, "") if held else (403, "missing_permission"))
    if not held:
        needs = [f"{on}: {action}" for on, actions in endpoint.needs.items() for action in actions]
        assert reply.json["message"].endswith(f"the request needs: {', '.join(needs)}.")
        assert state_of(cloud) == before


def test_keys_for_builds_have_none_of_these_permissions(cloud: Cloud, eve: Person) -> None:
    for endpoint in ENDPOINTS[1:]:
        reply = endpoint.ask(cloud.send, "acme", eve.user.id)
        assert outcome(reply) == (403, "missing_permission")


@every_endpoint
def test_a_refused_key_does_not_count_a_use(cloud: Cloud, eve: Person, endpoint: Endpoint) -> None:
    if not endpoint.needs:
        return
    key, token = create_key(NewKey(user_id=cloud.user.id, remaining=3), now=clock.now())
    assert endpoint.ask(Sender(token), "acme", eve.user.id).status == 403
    left = find_key(key.id)
    assert left is not None
    assert left.remaining == 3


@every_endpoint
def test_404_for_a_non_member_as_for_an_unknown_team(cloud: Cloud, eve: Person, endpoint: Endpoint) -> None:
    stranger = newcomer("mallory")
    before = state_of(cloud)
    unknown = endpoint.ask(stranger.send, "no-such-team", eve.user.id)
    assert outcome(unknown) == (404, "team_not_found")
    for team in ("acme", cloud.team.id, "team_doesnotexist"):
        reply = endpoint.ask(stranger.send, team, eve.user.id)
        assert (reply.status, reply.body) == (404, unknown.body)
    assert state_of(cloud) == before


@every_endpoint
def test_404_for_a_key_of_another_team(cloud: Cloud, eve: Person, endpoint: Endpoint) -> None:
    other = create_team("Other", "other", owner_user_id=cloud.user.id, now=clock.now())
    send = key_of(signed_in(cloud.user), endpoint.needs, team_id=other.id)
    for team in ("acme", cloud.team.id):
        assert outcome(endpoint.ask(send, team, eve.user.id)) == (404, "team_not_found")


NO_NAMES = (
    "Acme", "ACME", "team_", "team_" + "a" * 65, "team_a%2Fb", "a" * 3000, "%00", "acme%00", "%E9", "\u0430cme",
    "^", "a b", "-", "..", "%2e%2e", "slug%23acme", "deleted", "personal", "team", "*", "{}", "[]", "'", "acme;",
)  # fmt: skip


@every_endpoint
def test_404_for_an_unknown_team(cloud: Cloud, eve: Person, endpoint: Endpoint) -> None:
    owner = signed_in(cloud.user)
    replies = {name: endpoint.ask(owner.send, name, eve.user.id) for name in NO_NAMES}
    assert {name: outcome(reply) for name, reply in replies.items()} == dict.fromkeys(NO_NAMES, (404, "team_not_found"))


def authorization(value: str | None) -> Callable[[Cloud], Sender]:
    return lambda _: Sender(None, authorization=value)


def expired(cloud: Cloud) -> Sender:
    return Sender(start_session(cloud.user, now=clock.now() - timedelta(days=8))[1])


def ended(cloud: Cloud) -> Sender:
    token = start_session(cloud.user, now=clock.now())[1]
    revoke_sessions(cloud.user.id)
    return Sender(token)


NOBODY = {
    "none": authorization(None),
    "empty": authorization(""),
    "Bearer": authorization("Bearer"),
    "Basic": authorization(f"Basic {'a' * 64}"),
    "unknown session": authorization(f"Bearer {'A' * 32}"),
    "unknown key": authorization(f"Bearer {'a' * 64}"),
    "too long": authorization(f"Bearer {'a' * 257}"),
    "expired session": expired,
    "ended session": ended,
}

ALL = [
    *ENDPOINTS,
    Endpoint("create", "POST", "/v1/teams", {"slug": "new"}, EVERYBODY, WRITE),
    Endpoint("join", "POST", "/v1/teams/join", {"token": "A" * 40}, EVERYBODY, {}),
]


@pytest.mark.parametrize("endpoint", ALL, ids=str)
def test_401_without_a_valid_token(cloud: Cloud, eve: Person, endpoint: Endpoint) -> None:
    before = state_of(cloud)
    for kind, sender in NOBODY.items():
        reply = endpoint.ask(sender(cloud), "acme", eve.user.id)
        assert (kind, *outcome(reply)) == (kind, 401, "unauthorized")
        assert reply.headers["www-authenticate"] == "Bearer"
    assert state_of(cloud) == before


@pytest.mark.parametrize("endpoint", [one for one in ALL if one.body is not None], ids=str)
def test_400_for_a_body_that_is_not_a_json_object(cloud: Cloud, eve: Person, endpoint: Endpoint) -> None:
    send = signed_in(cloud.user).send
    path = endpoint.path.replace("{team}", "acme").replace("{member}", eve.user.id)
    for body in (b"", b"{", b"\xff", b"[" * 100_000, b'{"slug": NaN}', b"null"):
        assert outcome(send(endpoint.method, path, body=body)) == (400, "bad_request")


@pytest.mark.parametrize("block", list(Block))
@every_endpoint
def test_a_block_stops_changes_to_the_team_but_not_to_its_members(
    cloud: Cloud, eve: Person, endpoint: Endpoint, block: Block
) -> None:
    change_state(cloud.team.id, block=block, caching=CachingStatus.PAUSED)
    reply = endpoint.ask(signed_in(cloud.user).send, "acme", eve.user.id)
    passes = ("read the team", "list members", "list keys", "list scopes", "change a role", "remove")
    assert reply.status == (200 if endpoint.name in passes else 402)


def test_joining_and_leaving_take_effect_at_the_next_request(cloud: Cloud, mailbox: Mailbox) -> None:
    ada, bob = signed_in(cloud.user), newcomer()
    key = key_of(bob, {**READ, "artifacts": ("read",)})
    readers: list[Callable[[], Reply]] = [
        lambda: bob.send("GET", "/v2/teams/acme"),
        lambda: bob.send("GET", "/v3/teams/acme/members"),
        lambda: key("GET", f"/v3/teams/{cloud.team.id}/members"),
        lambda: Sender(bob.send.token, slug="acme")("GET", "/v8/artifacts/status"),
        lambda: Sender(key.token, slug="acme")("GET", "/v8/artifacts/status"),
    ]
    for _ in range(2):
        assert {read().status for read in readers} == {403, 404}
        ada.send("POST", "/v2/teams/acme/members", json_body={"email": bob.user.email})
        token = mailbox.link().removeprefix("/join?token=")
        assert bob.send("POST", "/v1/teams/join", json_body={"token": token}).status == 200
        assert {read().status for read in readers} == {200}
        assert ada.send("DELETE", f"/v1/teams/acme/members/{bob.user.id}").status == 200


def test_no_reply_and_no_log_line_contains_a_token(
    cloud: Cloud, eve: Person, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    session, token = start_session(cloud.user, now=clock.now())
    order = sorted(ALL, key=lambda endpoint: endpoint.name == "delete")
    replies = [endpoint.ask(Sender(token), cloud.team.id, eve.user.id) for endpoint in order]
    replies += [endpoint.ask(cloud.send, cloud.team.id, eve.user.id) for endpoint in order]
    seen = capsys.readouterr().out + caplog.text + "".join(map(repr, replies))
    assert "answered" in seen
    for secret in (token, session.token_hash, cloud.token, cloud.key.key_hash, "A" * 40):
        assert secret not in seen
