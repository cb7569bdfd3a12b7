"""Keys that are refused, but not deleted: with their user, by a reset, with a membership, and without access."""

from collections.abc import Callable

import pytest

from larder import clock
from larder.accounts.access import suspend_user
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token, reset_password
from larder.accounts.service import create_user, delete_user, find_user
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.models import ARTIFACT_ACTIONS, TEAM_ACTIONS
from larder.api_keys.properties import NewKey
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role
from larder.teams.teams import delete_team
from tests.addresses import prove_address
from tests.conftest import SetOption
from tests.faults import answering, error
from tests.functions.accounts.conftest import MAIL_CONTEXT
from tests.mailbox import Mailbox
from tests.requests import Cloud, Sender
from tests.sso.people import end_access

NEW_PASSWORD = "another correct horse"
ALL = {"artifacts": ARTIFACT_ACTIONS, "teams": TEAM_ACTIONS}


@pytest.fixture
def bob(cloud: Cloud, option: SetOption) -> User:
    option("scrypt_cost", 1024)
    option("session_for_api_keys", "true")
    bob = create_user("bob@acme.example", "Bob", password="correct horse battery", now=clock.now())
    add_member(cloud.team.id, bob.id, Role.OWNER, now=clock.now())
    return bob


def by_key(method: str, path: str, **more: object) -> Callable[[str], bool]:
    def is_accepted(raw: str) -> bool:
        return Sender(raw)(method, path, **more).status < 400  # type: ignore[arg-type]

    return is_accepted


def verify(raw: str) -> bool:
    reply = Sender(None)("POST", "/api/auth/api-key/verify", json_body={"key": raw})
    assert reply.json["valid"] or reply.json["error"]["code"] == "INVALID_API_KEY"
    return bool(reply.json["valid"])


def as_session(raw: str) -> bool:
    reply = Sender(None)("GET", "/api/auth/api-key/list", headers={"x-api-key": raw})
    return reply.status == 200


WAYS: dict[str, Callable[[str], bool]] = {
    "status": by_key("GET", "/v8/artifacts/status"),
    "HEAD": by_key("HEAD", "/v8/artifacts/small"),
    "PUT": by_key("PUT", "/v8/artifacts/new", body=b"artifact"),
    "usage": by_key("GET", "/v1/usage"),
    "user": by_key("GET", "/v2/user"),
    "teams": by_key("GET", "/v2/teams"),
    "team": by_key("GET", "/v2/teams/acme"),
    "members": by_key("GET", "/v3/teams/acme/members"),
    "new team": by_key("POST", "/v1/teams", json_body={"slug": "new"}),
    "token": by_key("GET", "/v5/user/tokens/current"),
    "verify": verify,
    "session": as_session,
    "revoke": by_key("DELETE", "/v3/user/tokens/current"),
}
"""Every way in which a key is accepted. The last one deletes it."""


def is_removed(cloud: Cloud, bob: User) -> None:
    remove_member(cloud.team.id, bob.id, by=None)


def has_joined_again(cloud: Cloud, bob: User) -> None:
    remove_member(cloud.team.id, bob.id, by=None)
    add_member(cloud.team.id, bob.id, Role.OWNER, now=clock.now())


def team_is_deleted(cloud: Cloud, bob: User) -> None:
    delete_team(cloud.team.id, by=None, now=clock.now())


def resets_the_password(cloud: Cloud, bob: User) -> None:
    token = issue_reset_token(bob, now=clock.now())
    throttled = error("ProvisionedThroughputExceededException")
    # Of the keys: the user's accounts are read before.
    with answering("dynamodb", "Query", throttled, only=lambda sent: "by_user" in str(sent["body"])):
        reset_password(token, NEW_PASSWORD, MAIL_CONTEXT, now=clock.now())


def is_deleted(cloud: Cloud, bob: User) -> None:
    delete_user(bob.id, now=clock.now())


def is_suspended(cloud: Cloud, bob: User) -> None:
    suspend_user(bob.id, now=clock.now())


def has_not_signed_in_for_too_long(cloud: Cloud, bob: User) -> None:
    end_access(bob, at=clock.now())


OF_TEAM = [is_removed, has_joined_again, team_is_deleted]
OF_USER = [resets_the_password, is_deleted, is_suspended, has_not_signed_in_for_too_long]


def new_key(bob: User, team_id: str | None) -> tuple[str, str]:
    """The id and the secret."""
    new = NewKey(user_id=bob.id, team_id=team_id, permissions=ALL)
    key, raw = create_key(new, now=clock.now())
    return key.id, raw


@pytest.mark.parametrize("heat", ["warm", "cold"])
@pytest.mark.parametrize(
    ("end", "bound"),
    [*[(end, True) for end in OF_TEAM], *[(end, is_bound) for end in OF_USER for is_bound in (True, False)]],
)  # fmt: skip
def test_an_ended_key_is_refused_everywhere(
    cloud: Cloud, mailbox: Mailbox, bob: User, end: Callable[[Cloud, User], None], bound: bool, heat: str
) -> None:
    assert cloud.send("PUT", "/v8/artifacts/small", body=b"artifact").status == 202
    keys = {way: new_key(bob, cloud.team.id if bound else None) for way in WAYS}
    if heat == "warm":
        for _, raw in keys.values():
            assert Sender(raw)("GET", "/v8/artifacts/status").status == 200
    end(cloud, bob)
    accepted = {way for way, is_accepted in WAYS.items() if is_accepted(keys[way][1])}
    assert accepted == set()
    assert all(find_key(key_id) is not None for key_id, _ in keys.values())


@pytest.mark.parametrize("end", OF_TEAM)
def test_a_key_without_a_team_keeps_working_for_its_user(
    cloud: Cloud, bob: User, end: Callable[[Cloud, User], None]
) -> None:
    _, raw = new_key(bob, None)
    end(cloud, bob)
    assert verify(raw)
    assert as_session(raw)
    assert Sender(raw)("GET", "/v8/artifacts/status").status == 200


def test_keys_of_a_current_user_and_member_are_accepted(cloud: Cloud, bob: User) -> None:
    prove_address(bob)
    assert cloud.send("PUT", "/v8/artifacts/small", body=b"artifact").status == 202
    accepted = {
        way
        for team_id in (cloud.team.id, None)
        for _, raw in [new_key(bob, team_id)]
        for way, is_accepted in WAYS.items()
        if is_accepted(raw)
    }
    assert accepted == WAYS.keys()


def test_keys_created_after_a_reset_work(cloud: Cloud, mailbox: Mailbox, bob: User) -> None:
    resets_the_password(cloud, bob)
    _, raw = new_key(bob, cloud.team.id)
    for way in ("status", "user", "verify", "session"):
        assert WAYS[way](raw)
    changed = find_user(bob.id)
    assert changed is not None
    token = issue_reset_token(changed, now=clock.now())
    reset_password(token, "a third password", MAIL_CONTEXT, now=clock.now())
    assert verify(raw)
