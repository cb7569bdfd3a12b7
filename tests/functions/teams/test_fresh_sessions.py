"""A session that began some time ago, or a key, makes nothing that is trusted and outlives it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from larder import clock
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, find_key, list_keys
from larder.api_keys.models import ARTIFACT_ACTIONS
from larder.api_keys.properties import NewKey
from larder.teams.members import role_of
from larder.teams.models import Role
from larder.trust.rules import find_rule
from tests.conftest import SetOption
from tests.functions.teams.people import Person, joined, key_of, outcome
from tests.functions.teams.rules import IDS, RULES, made
from tests.requests import Cloud, Reply, Sender

pytestmark = pytest.mark.usefixtures("mailbox")

KEYS = "/api/auth/api-key"
TEAM = "/v1/teams/acme"
STALE = (403, "session_not_fresh")
BY_KEY = (403, "session_required")
ALL = {"artifacts": ARTIFACT_ACTIONS, "teams": ("read", "write"), "trust": ("manage",)}


@pytest.fixture
def stale(ada: Person) -> Iterator[Sender]:
    """The session of the owner, a day later."""
    with time_machine.travel(clock.now() + timedelta(days=1, seconds=1), tick=True):
        yield ada.send


def refused(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.json["code"]


def trusted_acts(cloud: Cloud, rule_id: str, bob: Person) -> dict[str, tuple[str, str, Any]]:
    rule = {"provider": "github", "pinned": {**IDS, "repository_id": "99"}}
    member = f"{TEAM}/members/{bob.user.id}"
    return {
        "rule": ("POST", RULES, rule),
        "change": ("PATCH", f"{RULES}/{rule_id}", {"lifetimeSeconds": 600}),
        "enable": ("PATCH", f"{RULES}/{rule_id}", {"enabled": True}),
        "owner": ("PATCH", member, {"role": "OWNER"}),
        "admin": ("PATCH", member, {"role": "ADMIN"}),
        "invite an owner": ("POST", f"{TEAM}/members", {"email": "e@x.example", "role": "OWNER"}),
        "invite an admin": (
            "POST",
            f"{TEAM}/members",
            [{"email": "a@x.example", "role": "VIEWER"}, {"email": "e@x.example", "role": "ADMIN"}],
        ),
        "protect": ("PUT", f"{TEAM}/protection", {"protected": True}),
        "unprotect": ("PUT", f"{TEAM}/protection", {"protected": False}),
    }


def test_a_stale_session_and_a_key_change_nothing_that_is_trusted(cloud: Cloud, ada: Person) -> None:
    rule, bob = made(cloud), joined(cloud, Role.DEVELOPER)
    acts = trusted_acts(cloud, rule.id, bob)
    key = key_of(ada, ALL)
    for act in acts.values():
        assert outcome(key(act[0], act[1], json_body=act[2])) == BY_KEY, act
    with time_machine.travel(clock.now() + timedelta(days=1, seconds=1), tick=True):
        for act in acts.values():
            assert outcome(ada.send(act[0], act[1], json_body=act[2])) == STALE, act
    assert role_of(cloud.team.id, bob.user.id) is Role.DEVELOPER
    assert find_rule(cloud.team.id, rule.id) == rule
    for act in acts.values():
        assert ada.send(act[0], act[1], json_body=act[2]).status in (200, 201), act


def test_a_stale_session_and_a_key_still_take_trust_away(cloud: Cloud, stale: Sender, ada: Person) -> None:
    rule, bob = made(cloud), joined(cloud, Role.ADMIN)
    for send in (stale, key_of(ada, ALL)):
        assert send("PATCH", f"{RULES}/{rule.id}", json_body={"enabled": False}).status == 200
    member = f"{TEAM}/members/{bob.user.id}"
    assert stale("PATCH", member, json_body={"role": "VIEWER"}).status == 200
    invited = {"email": "dev@x.example", "role": "DEVELOPER"}
    assert stale("POST", f"{TEAM}/members", json_body=invited).status == 200
    assert stale("DELETE", f"{RULES}/{rule.id}").status == 200


@pytest.mark.parametrize("action", ["trust", "replace", "manage"])
def test_a_stale_session_creates_only_keys_for_builds(cloud: Cloud, stale: Sender, action: str) -> None:
    def create(*actions: str) -> Reply:
        body = {"teamId": cloud.team.id, "permissions": {"artifacts": actions}}
        return stale("POST", f"{KEYS}/create", json_body=body)

    assert refused(create("read", action)) == (403, "SESSION_NOT_FRESH")
    assert list_keys(cloud.user.id) == [cloud.key]
    assert create("read", "write").status == 200


def test_a_stale_session_only_weakens_a_key_that_does_more(cloud: Cloud, stale: Sender) -> None:
    new = NewKey(
        user_id=cloud.user.id,
        team_id=cloud.team.id,
        expires_in_s=864_000,
        permissions={"artifacts": ("read", "trust", "manage")},
    )
    key, _ = create_key(new, now=clock.now())

    def update(key_id: str = key.id, **changes: Any) -> Reply:
        return stale("POST", f"{KEYS}/update", json_body={"keyId": key_id, **changes})

    stronger = {"artifacts": ["read", "trust", "manage", "replace"]}
    for changes in ({"expiresIn": 2_000_000}, {"expiresIn": None}, {"permissions": stronger}):
        assert refused(update(**changes)) == (403, "SESSION_NOT_FRESH"), changes
    assert find_key(key.id) == key
    assert update(name="main", expiresIn=86_400, enabled=False).status == 200
    assert refused(update(enabled=True)) == (403, "SESSION_NOT_FRESH")
    assert update(permissions={"artifacts": ["read"]}).status == 200
    assert update(enabled=True, expiresIn=2_000_000).status == 200
    manages = {"artifacts": ["read", "manage"]}
    assert refused(update(cloud.key.id, permissions=manages)) == (403, "SESSION_NOT_FRESH")


def test_a_key_in_place_of_a_session_creates_no_trusted_key(cloud: Cloud, option: SetOption) -> None:
    option("session_for_api_keys", "true")
    new = NewKey(user_id=cloud.user.id, team_id=cloud.team.id, permissions=ALL)
    _, raw = create_key(new, now=clock.now())

    def create(*actions: str) -> Reply:
        body = {"permissions": {"artifacts": actions}}
        return Sender(None)("POST", f"{KEYS}/create", json_body=body, headers={"x-api-key": raw})

    assert refused(create("read", "trust")) == (403, "SESSION_REQUIRED")
    assert refused(create("manage")) == (403, "SESSION_REQUIRED")
    assert create("read", "write").status == 200


def test_after_another_sign_in_everything_is_possible(cloud: Cloud, stale: Sender) -> None:
    rule = {"provider": "github", "pinned": IDS}
    assert outcome(stale("POST", RULES, json_body=rule)) == STALE
    again = Sender(start_session(cloud.user, now=clock.now())[1])
    assert again("POST", RULES, json_body=rule).status == 200
