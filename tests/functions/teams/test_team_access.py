"""Endpoints with a team in their path: the permissions that keys need, other teams, and tokens that do not count.

tests/access.py has what each role can do in each state.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.service import find_user_by_email
from larder.accounts.sessions import revoke_sessions, start_session
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.models import Permissions
from larder.api_keys.properties import NewKey
from larder.teams.members import add_member, list_members
from larder.teams.models import Role, Team
from larder.teams.teams import create_team, find_team
from tests.access import ROWS
from tests.catalogue import Names, Request, valid
from tests.functions.teams.people import Person, key_of, newcomer, outcome, signed_in
from tests.mailbox import Mailbox
from tests.requests import Cloud, Reply, Sender

READ: Permissions = {"teams": ("read",)}
WRITE: Permissions = {"teams": ("write",)}
MANAGE: Permissions = {"artifacts": ("manage",)}
TRUST: Permissions = {"trust": ("manage",)}
PATCH = "PATCH /v2/teams/{idOrSlug}"
CACHING, BOTH = f"{PATCH} (caching)", f"{PATCH} (name and caching)"
BODIES = {CACHING: {"remoteCaching": {"enabled": False}}, BOTH: {"name": "New", "remoteCaching": {"enabled": False}}}

NEEDS: dict[str, Permissions] = {
    "GET /v2/teams/{idOrSlug}": {},
    "GET /v3/teams/{idOrSlug}/members": READ,
    PATCH: WRITE,
    CACHING: MANAGE,
    BOTH: {**WRITE, **MANAGE},
    "DELETE /v1/teams/{idOrSlug}": WRITE,
    "POST /v2/teams/{idOrSlug}/members": WRITE,
    "POST /v1/teams/{idOrSlug}/members": WRITE,
    "DELETE /v1/teams/{idOrSlug}/members/{uid}": WRITE,
    "GET /v1/teams/{idOrSlug}/keys": READ,
    "DELETE /v1/teams/{idOrSlug}/keys/{keyId}": WRITE,
    "GET /v1/teams/{idOrSlug}/rules": READ,
    "GET /v1/teams/{idOrSlug}/rules/{ruleId}": READ,
    "DELETE /v1/teams/{idOrSlug}/rules/{ruleId}": TRUST,
    "POST /v1/teams/{idOrSlug}/rules/explain": TRUST,
    "GET /v1/teams/{idOrSlug}/protection": READ,
    "GET /v1/teams/{idOrSlug}/scopes": MANAGE,
}
"""The permissions that a key needs. The other endpoints take only sessions for what makes trust."""

ENDPOINTS = [row for row in ROWS if "/teams/{idOrSlug}" in row]
every_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS)


@pytest.fixture
def ada(names: Names) -> Person:
    """The owner of the team of `names`."""
    user = find_user_by_email(names.email)
    assert user is not None
    return signed_in(user)


def request(endpoint: str, names: Names, team: str | None = None) -> Request:
    """The request of the catalogue, for a team with this id or slug."""
    found = valid(endpoint.partition(" (")[0], replace(names, team=team or names.team))
    return replace(found, json=BODIES[endpoint]) if endpoint in BODIES else found


def team_of(names: Names) -> Team:
    team = find_team(names.team)
    assert team is not None
    return team


def state_of(names: Names) -> object:
    return team_of(names), list_members(team_of(names).id)


@pytest.mark.parametrize("endpoint", NEEDS)
def test_a_key_of_an_owner_needs_the_permission_and_a_refusal_counts_no_use(
    names: Names, ada: Person, endpoint: str
) -> None:
    before, needs = state_of(names), NEEDS[endpoint]
    for held in ({"artifacts": ("read", "write")}, READ, WRITE, MANAGE, TRUST):
        if needs and not needs.items() <= held.items():
            key, token = create_key(NewKey(user_id=ada.user.id, permissions=held, remaining=3), now=clock.now())
            reply = request(endpoint, names)(Sender(token))
            assert outcome(reply) == (403, "missing_permission")
            lacking = [f"{on}: {action}" for on, (action,) in needs.items()]
            assert reply.message.endswith(f"the request needs: {', '.join(lacking)}.")
            left = find_key(key.id)
            assert left is not None
            assert left.remaining == 3
    assert state_of(names) == before
    assert request(endpoint, names)(key_of(ada, needs)).status == 200


def test_only_owners_set_the_caching_status(names: Names, ada: Person) -> None:
    admin = newcomer("admin")
    add_member(team_of(names).id, admin.user.id, Role.ADMIN, now=clock.now())
    for endpoint in BODIES:
        for send in (admin.send, key_of(admin, NEEDS[BOTH])):
            assert outcome(request(endpoint, names)(send)) == (403, "missing_role")


@every_endpoint
def test_404_for_a_non_member_and_a_key_of_another_team_as_for_an_unknown_team(
    names: Names, ada: Person, endpoint: str
) -> None:
    before, team = state_of(names), team_of(names)
    other = create_team("Another", "another", owner_user_id=ada.user.id, now=clock.now())
    everything: Permissions = {"teams": ("read", "write"), "artifacts": ("manage",), "trust": ("manage",)}
    senders = [newcomer("mallory").send, *([key_of(ada, everything, team_id=other.id)] if endpoint in NEEDS else [])]
    unknown = request(endpoint, names, "no-such-team")(ada.send)
    no_names = ("team_doesnotexist", "Acme", "team_", "team_" + "a" * 65, "slug%23acme", "acme%00", "a" * 3000)
    pairs = [(send, named) for send in senders for named in (team.slug, team.id)]
    for send, named in [*pairs, *((ada.send, named) for named in no_names)]:
        reply = request(endpoint, names, named)(send)
        assert (reply.status, reply.code, reply.body) == (404, "team_not_found", unknown.body)
    assert state_of(names) == before


@pytest.mark.parametrize("endpoint", [*ENDPOINTS, "POST /v1/teams", "POST /v1/teams/join"])
def test_401_without_a_valid_token(names: Names, ada: Person, endpoint: str) -> None:
    before = state_of(names)
    expired = start_session(ada.user, now=clock.now() - timedelta(days=8))[1]
    ended = start_session(ada.user, now=clock.now())[1]
    revoke_sessions(ada.user.id)
    bearers = ["", "A" * 32, "a" * 64, "a" * 257, expired, ended]
    for authorization in (None, "", "Bearer", f"Basic {'a' * 64}", *(f"Bearer {token}" for token in bearers)):
        reply = request(endpoint, names)(Sender(None, authorization=authorization))
        assert (authorization, *outcome(reply)) == (authorization, 401, "unauthorized")
        assert reply.headers["www-authenticate"] == "Bearer"
    assert state_of(names) == before


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
