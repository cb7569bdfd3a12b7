"""The sentences for what a provider's sign-in can end with."""

import re
from pathlib import Path

import pytest

from larder.web.pages import page
from tests.page import opened

SCRIPT = Path(page.__code__.co_filename).with_name("html") / "provider-errors.js"
CODES = {
    "access_denied",
    "account_already_linked_to_different_user",
    "account_not_linked",
    "email_does_not_match",
    "email_not_found",
    "email_not_verified",
    "invalid_callback_request",
    "invalid_code",
    "invalid_id_token",
    "issuer_mismatch",
    "issuer_missing",
    "login_required",
    "no_code",
    "oauth_provider_not_found",
    "provider_error",
    "provider_unavailable",
    "reauthentication_missing",
    "signup_disabled",
    "state_mismatch",
    "state_not_found",
    "unable_to_link_account",
    "user_suspended",
}


def test_each_code_has_a_sentence() -> None:
    sentences = dict(re.findall(r"^  (\w+): [\"`](.+)[\"`],$", SCRIPT.read_text(), re.MULTILINE))
    assert sentences.keys() == CODES
    assert all("_" not in sentence for sentence in sentences.values())


@pytest.mark.parametrize("path", ["/sign-in", "/turborepo/token", "/join"])
def test_pages_that_sign_in_have_them(environment: pytest.MonkeyPatch, path: str) -> None:
    (script,) = opened(path).texts["script"]
    assert "account_not_linked" in script
