"""GET /api/auth/sign-in/providers"""

from typing import Any

import pytest

from larder.sso.models import Mode
from larder.sso.service import add_provider
from tests.conftest import SetOption
from tests.requests import Cloud, Sender
from tests.sso.providers import SECRET, acme

PATH = "/api/auth/sign-in/providers"
SHOWN = [{"id": "acme", "name": "Acme"}]


def listed() -> Any:
    reply = Sender(None)("GET", PATH)
    assert (reply.status, reply.headers["cache-control"]) == (200, "public, max-age=60")
    return reply.json


def test_without_a_provider_everyone_has_a_password(cloud: Cloud) -> None:
    assert listed() == {"providers": [], "passwords": "all", "asksAddress": False}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"providers": SHOWN, "passwords": "all", "asksAddress": False}),
        ({"mode": Mode.REQUIRED}, {"providers": SHOWN, "passwords": "some", "asksAddress": True}),
        ({"hidden": True}, {"providers": [], "passwords": "all", "asksAddress": True}),
    ],
)
def test_a_provider_that_is_required_or_hidden_is_found_by_the_address(
    cloud: Cloud, settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    add_provider(acme(**settings), SECRET)
    assert listed() == expected


def test_no_one_has_a_password_if_the_option_turns_it_off(cloud: Cloud, option: SetOption) -> None:
    option("enable_email_and_password", "false")
    add_provider(acme(), SECRET)
    assert listed() == {"providers": SHOWN, "passwords": "none", "asksAddress": False}
