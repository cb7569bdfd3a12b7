"""Providers that keep to the standard in their own way: where they put claims, how many groups they send, their clocks.

Okta's org server sends `email_verified` in userinfo only; Entra ID leaves groups out above 200; many providers run on a
server of the company, whose clock is off.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
import time_machine

from larder import clock
from larder.accounts.service import find_user_by_email
from larder.issuers import fetching
from larder.sso import service
from larder.sso.models import VerifiedBy
from tests.issuer import rsa_key
from tests.sso.conftest import Journey, error_of
from tests.sso.hostile_provider import CLIENT_ID
from tests.web_server import Answer

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler

    from tests.conftest import SetOption

ADA = "ada@acme.example"
MISSING = "missing"


@pytest.fixture(autouse=True)
def _open(option: SetOption) -> None:
    option("sign_up_policy", "open")


def verified() -> bool:
    user = find_user_by_email(ADA)
    assert user is not None
    return user.proven


def answering(status: int, body: bytes = b"{}", *, after_s: float = 0) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        time.sleep(after_s)
        request.send_response(status)
        request.end_headers()
        request.wfile.write(body)

    return answer


def signed_userinfo(journey: Journey, **claims: Any) -> Answer:
    own = {"iss": journey.provider.url, "aud": CLIENT_ID, "sub": "ada-1", **claims}
    blank = {"iat": None, "exp": None, "auth_time": None}
    return answering(200, journey.provider.id_token({**blank, **own}).encode())


@pytest.mark.parametrize("in_userinfo", [None, MISSING, True, "true", False])
@pytest.mark.parametrize("in_token", [MISSING, True, "true", False, "false"])
def test_the_token_says_whether_the_address_is_verified_or_else_userinfo(
    journey: Journey, in_token: object, in_userinfo: object
) -> None:
    if in_userinfo is not None:
        more = {} if in_userinfo is MISSING else {"email_verified": in_userinfo}
        journey.provider.userinfo = {"sub": "ada-1", "email": ADA, **more}
    claims: dict[str, Any] = {"email_verified": None if in_token is MISSING else in_token}
    assert error_of(journey.sign_in(**claims)) is None
    decides = in_userinfo if in_token is MISSING else in_token
    assert verified() is (decides in (True, "true"))


@pytest.mark.parametrize(
    ("in_token", "in_userinfo", "error"),
    [
        (ADA, None, None),
        (ADA, ADA, None),
        (None, ADA, None),
        (None, None, "email_not_found"),
        # What userinfo says of another address verifies nothing.
        (ADA, "eve@acme.example", None),
    ],
)
def test_the_address_can_be_in_userinfo(
    journey: Journey, in_token: str | None, in_userinfo: str | None, error: str | None
) -> None:
    more = {} if in_userinfo is None else {"email": in_userinfo, "email_verified": True}
    journey.provider.userinfo = {"sub": "ada-1", **more}
    claims: dict[str, Any] = {"email": in_token, "email_verified": None}
    assert error_of(journey.sign_in(**claims)) == error
    if error is None:
        assert verified() is (in_userinfo == ADA)


@pytest.mark.parametrize("missing", ["email", "email_verified", "groups"])
@pytest.mark.parametrize("how", ["401", "500", "slow", "no JSON", "signed", "signed for another"])
def test_a_userinfo_that_fails_ends_a_sign_in_only_without_an_address(
    journey: Journey, monkeypatch: pytest.MonkeyPatch, how: str, missing: str
) -> None:
    monkeypatch.setattr(fetching, "SECONDS", 0.5)
    claims: dict[str, Any] = {"email": ADA, "email_verified": True, "groups": ["eng"]}
    answers = {
        "401": answering(401),
        "500": answering(500),
        "slow": answering(200, after_s=0.8),
        "no JSON": answering(200, b"<html>"),
        "signed": signed_userinfo(journey, **claims),
        "signed for another": signed_userinfo(journey, **claims, aud="another"),
    }
    journey.provider.answers["/userinfo"] = answers[how]
    replace_provider(journey, groups_claim="groups")
    reply = journey.sign_in(**{**claims, missing: None})
    fails = how != "signed"
    assert error_of(reply) == ("provider_unavailable" if fails and missing == "email" else None)
    if error_of(reply) is None:
        assert verified() is not (fails and missing == "email_verified")


def replace_provider(journey: Journey, **changed: Any) -> None:
    service.change_provider("acme", lambda one: replace(one, **changed), now=clock.now())


@pytest.mark.parametrize("count", [0, 200, 500, 3000])
@pytest.mark.parametrize("form", ["ids", "paths"])
def test_a_person_in_many_groups_signs_in(journey: Journey, count: int, form: str) -> None:
    """More than 500 change nothing, as a claim that is missing."""
    replace_provider(journey, groups_claim="groups")
    paths = [f"/acme/{number:04}/{'x' * 30}" for number in range(count)]
    ids = [str(UUID(int=number)) for number in range(count)]
    assert error_of(journey.sign_in(groups=ids if form == "ids" else paths)) is None


@pytest.mark.parametrize(
    ("claims", "error"),
    [
        ({"iat": -80, "nbf": -80, "exp": 220}, None),
        ({"iat": -120, "nbf": -120, "exp": 180}, None),
        ({"iat": 45, "nbf": 45, "exp": 345}, None),
        ({"iat": 85, "nbf": 85, "exp": 385}, None),
        ({"iat": 120, "nbf": 120, "exp": 420}, "invalid_id_token"),
        ({"iat": -300, "exp": -45}, None),
        ({"iat": -300, "exp": -85}, None),
        ({"iat": -300, "exp": -120}, "invalid_id_token"),
        ({"iat": -900, "exp": 300}, "invalid_id_token"),
    ],
)
def test_the_clock_of_a_provider_may_be_off_by_a_minute_and_a_half(
    journey: Journey, claims: dict[str, int], error: str | None
) -> None:
    now = int(time.time())
    moved: dict[str, Any] = {name: now + seconds for name, seconds in claims.items()}
    assert error_of(journey.sign_in(**moved)) == error


def test_a_new_key_counts_at_once(journey: Journey) -> None:
    """The token comes from the provider itself, so no stranger can have its keys fetched."""
    assert error_of(journey.sign_in()) is None
    journey.provider.keys = {"second": rsa_key(1)}
    journey.provider.kid = "second"
    with time_machine.travel(clock.now() + timedelta(seconds=3)):
        assert error_of(journey.sign_in()) is None
    fetched = [one for one in journey.provider.asked if one.path.startswith("/keys")]
    assert len(fetched) == 2


def test_the_keys_are_fetched_once_in_two_seconds(journey: Journey) -> None:
    assert error_of(journey.sign_in()) is None
    journey.provider.kid = "unknown"
    journey.provider.signs_with = rsa_key(1)
    for _ in range(5):
        assert error_of(journey.sign_in()) == "invalid_id_token"
    fetched = [one for one in journey.provider.asked if one.path.startswith("/keys")]
    assert len(fetched) <= 3


def test_keys_without_ids_count_for_a_token_that_names_one(journey: Journey) -> None:
    journey.provider.header = {"kid": "first"}
    journey.provider.kid = None
    journey.provider.keys = {None: rsa_key(0)}
    assert error_of(journey.sign_in()) is None


@pytest.mark.parametrize("by", VerifiedBy)
def test_another_claim_can_hold_the_address(journey: Journey, by: VerifiedBy) -> None:
    """As for people of Entra ID without a mailbox. Only the domain proves such an address."""
    replace_provider(journey, email_claim="preferred_username", verified_by=by)
    claims: dict[str, Any] = {"email": None, "email_verified": True, "preferred_username": ADA}
    assert error_of(journey.sign_in(**claims)) is None
    assert verified() is (by is VerifiedBy.DOMAIN)
    assert json.dumps(journey.session()["user"]["email"]) == f'"{ADA}"'
