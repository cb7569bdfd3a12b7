"""GET /api/auth/callback/{id}. tests/sso has the sign-ins that reach the provider."""

import pytest

from tests.requests import Browser
from tests.sso.providers import add_acme


@pytest.mark.usefixtures("aws_in_memory")
@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "state_not_found"),
        ("code=x", "state_not_found"),
        ("code=x&state=", "state_mismatch"),
        ("code=x&state=5a3d91c2.x", "state_mismatch"),
        ("code=x&state=5a3d91c2.LarderSampleSignInStateOfTheUser", "state_mismatch"),
        ("state=a&state=b", "invalid_callback_request"),
        ("error=access_denied&error_description=Call+us", "state_not_found"),
        ("&".join(f"p{n}=x" for n in range(60)), "state_not_found"),
    ],
)
@pytest.mark.parametrize("provider", ["acme", "other", "%3Cscript%3E"])
def test_without_a_valid_state_the_browser_goes_to_the_sign_in_page(query: str, code: str, provider: str) -> None:
    add_acme()
    reply = Browser().get(f"/callback/{provider}?{query}")
    assert (reply.status, reply.cookies) == (302, ())
    assert reply.headers["location"] == f"/sign-in?error={code}"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["referrer-policy"] == "no-referrer"


@pytest.mark.usefixtures("aws_in_memory")
def test_a_provider_that_denies_access() -> None:
    add_acme()
    browser = Browser()
    body = {"provider": "acme", "errorCallbackURL": "/join?token=x"}
    state = browser.post("/sign-in/social", body).json["url"].partition("&state=")[2]
    state = state.partition("&")[0]
    issuer = "https%3A%2F%2Flogin.acme.example"
    reply = browser.get(f"/callback/acme?state={state}&iss={issuer}&error=access_denied")
    assert reply.headers["location"] == "/join?token=x&error=access_denied"
    # The sign-in is over.
    assert browser.cookies == {}
