"""Common passwords are refused wherever a password is set, and only there."""

import pytest

from larder import clock
from larder.accounts.models import User
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.service import create_user
from tests.conftest import SetOption
from tests.functions.accounts.conftest import PASSWORD
from tests.requests import Browser, browser_of

COMMON = "iloveyou"


@pytest.mark.parametrize("way", ["sign up", "change", "reset"])
def test_a_common_password_cannot_be_set(ada: User, option: SetOption, way: str) -> None:
    option("refuse_common_passwords", "true")
    if way == "sign up":
        body = {"email": "eve@example.com", "name": "Eve", "password": COMMON}
        reply, field = Browser().post("/sign-up/email", body), "password"
    elif way == "change":
        body = {"currentPassword": PASSWORD, "newPassword": COMMON}
        reply, field = browser_of(ada).post("/change-password", body), "newPassword"
    else:
        body = {"token": issue_reset_token(ada, now=clock.now()), "newPassword": COMMON}
        reply, field = Browser().post("/reset-password", body), "newPassword"
    assert reply.refusal == (400, "PASSWORD_TOO_COMMON")
    assert reply.json["message"] == (f"{field}: is one of the most common passwords. Choose another one")


def test_an_existing_common_password_still_signs_in(aws_in_memory: None, option: SetOption) -> None:
    create_user("eve@example.com", "Eve", password=COMMON, now=clock.now())
    option("refuse_common_passwords", "true")
    body = {"email": "eve@example.com", "password": COMMON}
    assert Browser().post("/sign-in/email", body).status == 200
