"""GET /api/auth/list-accounts"""

from datetime import timedelta

import time_machine

from larder import clock
from larder.accounts.models import PasswordChange, User
from larder.accounts.service import change_password, create_user
from tests.conftest import SetOption
from tests.functions.accounts.conftest import PASSWORD
from tests.requests import Browser, Cloud, Sender, browser_of

PATH = "/list-accounts"


def test_the_callers_account_has_the_provider_credential(ada: User, bob: User, browser: Browser) -> None:
    reply = browser.get(PATH)
    assert reply.status == 200
    assert reply.json == [
        {
            "id": ada.id,
            "accountId": ada.id,
            "providerId": "credential",
            "issuer": "local:credential",
            "userId": ada.id,
            "createdAt": clock.to_iso(ada.created_at),
            "updatedAt": clock.to_iso(ada.created_at),
            "scopes": [],
        }
    ]


def test_a_new_password_changes_only_updated_at(ada: User, browser: Browser) -> None:
    (before,) = browser.get(PATH).json
    with time_machine.travel(clock.now() + timedelta(minutes=1)):
        change = PasswordChange(current=PASSWORD, new="a new password", ends_other_sessions=False)
        change_password(ada.id, change, now=clock.now())
        (after,) = browser.get(PATH).json
    assert after["updatedAt"] > before["updatedAt"]
    assert after == {**before, "updatedAt": after["updatedAt"]}


def test_a_new_name_does_not_change_the_account(browser: Browser) -> None:
    before = browser.get(PATH).json
    with time_machine.travel(clock.now() + timedelta(minutes=1)):
        assert browser.post("/update-user", {"name": "Countess"}).status == 200
        assert browser.get(PATH).json == before


def test_a_user_without_a_password_has_no_account(aws_in_memory: None) -> None:
    command = create_user("command@example.com", "Command", now=clock.now())
    assert browser_of(command).get(PATH).json == []


def test_a_key_lists_its_owners_account_when_keys_replace_sessions(cloud: Cloud, option: SetOption) -> None:
    option("session_for_api_keys", "true")
    by_key = Sender(None)("GET", f"/api/auth{PATH}", headers={"x-api-key": cloud.token})
    assert (by_key.status, by_key.json) == (200, [])
