"""POST /api/auth/delete-user"""

from contextlib import ExitStack
from datetime import timedelta

from larder import clock
from larder.accounts.models import User
from larder.accounts.service import create_user, find_user, find_user_by_email
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey
from larder.teams.members import add_member, remove_member, role_of
from larder.teams.models import Role
from larder.teams.teams import create_team
from tests.conftest import SetOption
from tests.faults import just_before, unreachable
from tests.functions.accounts.conftest import PASSWORD
from tests.requests import Browser, Sender, browser_of, invoke

PATH = "/delete-user"


def late(user: User) -> Browser:
    """A browser where the user signed in two days ago."""
    _, token = start_session(user, now=clock.now() - timedelta(days=2))
    return browser_of(user, token=token)


def test_the_user_is_deleted_and_can_sign_up_again(ada: User, browser: Browser) -> None:
    reply = browser.post(PATH)
    assert (reply.status, reply.json) == (200, {"success": True, "message": "User deleted"})
    assert browser.cookies == {}
    assert find_user(ada.id) is None
    assert find_user_by_email(ada.email) is None
    create_user(ada.email, "Ada again", now=clock.now())


def test_no_credential_works_after_deletion(ada: User, browser: Browser) -> None:
    now = clock.now()
    team = create_team("Acme", "acme", owner_user_id=create_user("o@a.de", "O", now=now).id, now=now)
    add_member(team.id, ada.id, Role.MEMBER, now=now)
    _, own = create_key(NewKey(user_id=ada.id), now=now)
    _, bound = create_key(NewKey(user_id=ada.id, team_id=team.id), now=now)
    elsewhere = browser_of(ada)
    assert Sender(own)("GET", "/v8/artifacts/status").status == 200
    browser.post(PATH)
    assert elsewhere.get("/get-session").json is None
    for token in (own, bound):
        assert Sender(token)("GET", "/v8/artifacts/status").status == 401
    assert list_keys(ada.id) == []
    assert role_of(team.id, ada.id) is None
    reply = Browser().post("/sign-in/email", {"email": ada.email, "password": PASSWORD})
    assert reply.refusal == (401, "INVALID_EMAIL_OR_PASSWORD")


def test_the_password_is_required_one_day_after_sign_in(ada: User) -> None:
    browser = late(ada)
    assert browser.post(PATH).refusal == (400, "SESSION_EXPIRED")
    assert browser.post(PATH, {"password": "wrong"}).refusal == (400, "INVALID_PASSWORD")
    assert find_user(ada.id) == ada
    assert browser.post(PATH, {"password": PASSWORD}).status == 200


def test_a_token_of_a_link_deletes_nobody(ada: User, browser: Browser) -> None:
    """Larder sends no such links. Ignored, the token would delete a user who only opened one."""
    for body in ({"token": "nope"}, {"token": "", "password": PASSWORD}):
        assert browser.post(PATH, body).refusal == (404, "INVALID_TOKEN")
    assert find_user(ada.id) is not None


def test_the_last_owner_of_a_team_cannot_be_deleted(ada: User, bob: User, browser: Browser) -> None:
    now = clock.now()
    team = create_team("Acme", "acme", owner_user_id=ada.id, now=now)
    reply = browser.post(PATH)
    assert reply.refusal == (400, "SOLE_TEAM_OWNER")
    assert "acme" in reply.json["message"]
    assert find_user(ada.id) == ada
    add_member(team.id, bob.id, Role.OWNER, now=now)
    assert browser.post(PATH).status == 200


def test_an_owner_who_becomes_the_last_one_during_the_request_is_deleted(
    ada: User, bob: User, browser: Browser
) -> None:
    now = clock.now()
    team = create_team("Acme", "acme", owner_user_id=ada.id, now=now)
    add_member(team.id, bob.id, Role.OWNER, now=now)

    def bob_leaves() -> None:
        remove_member(team.id, bob.id, by=None)

    with just_before("dynamodb", "TransactWriteItems", bob_leaves):
        assert browser.post(PATH).status == 200
    assert find_user(ada.id) is None
    assert role_of(team.id, ada.id) is None
    add_member(team.id, bob.id, Role.OWNER, now=now)
    assert role_of(team.id, bob.id) is Role.OWNER


def test_memberships_that_cannot_be_removed_are_left_to_the_hourly_run(ada: User, bob: User, browser: Browser) -> None:
    now = clock.now()
    team = create_team("Acme", "acme", owner_user_id=bob.id, now=now)
    add_member(team.id, ada.id, Role.MEMBER, now=now)
    with ExitStack() as from_then_on:

        def nothing_is_read() -> None:
            from_then_on.enter_context(unreachable("dynamodb", "BatchGetItem"))

        with just_before("dynamodb", "TransactWriteItems", nothing_is_read):
            assert browser.post(PATH).status == 200
    assert find_user(ada.id) is None
    assert role_of(team.id, ada.id) is Role.MEMBER
    invoke("accounts.sweep_deleted_users.handler", {})
    assert role_of(team.id, ada.id) is None


def test_404_when_deleting_users_is_disabled(ada: User, browser: Browser, option: SetOption) -> None:
    option("enable_delete_user", "false")
    reply = browser.post(PATH)
    assert (reply.status, reply.body) == (404, b"")
    assert find_user(ada.id) == ada
