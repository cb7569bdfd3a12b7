"""`/_local/provider`: an OpenID provider, only for requests of this machine."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import jwt
import pytest
import time_machine
from starlette.responses import PlainTextResponse

from larder import clock
from larder.sso import service
from larder.sso.models import Endpoints
from local.provider.app import CLIENT_ID, CLIENT_SECRET, PATH, LocalProvider
from local.provider.people import PEOPLE
from local.provider.registration import handler, provider_at

ORIGIN = "http://127.0.0.1:3000"
ISSUER = ORIGIN + PATH
CALLBACK = f"{ORIGIN}/api/auth/callback/example"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=")
CLIENT = (CLIENT_ID, CLIENT_SECRET)
ASKED = {
    "response_type": "code",
    "client_id": CLIENT_ID,
    "redirect_uri": CALLBACK,
    "scope": "openid email",
    "state": "s&t",
    "nonce": "n",
    "code_challenge": CHALLENGE.decode(),
    "code_challenge_method": "S256",
}


@pytest.fixture
def provider(tmp_path: Path) -> LocalProvider:
    return LocalProvider(PlainTextResponse("the gateway"), ISSUER, ISSUER, tmp_path / "provider.pem")


def send(
    provider: LocalProvider, url: str, *, method: str = "GET", client: str = "127.0.0.1", **options: Any
) -> httpx.Response:
    async def sent() -> httpx.Response:
        transport = httpx.ASGITransport(provider, client=(client, 5000))
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as asking:
            return await asking.request(method, url, **options)

    return asyncio.run(sent())


def authorize(provider: LocalProvider, **changed: str | None) -> httpx.Response:
    asked = {name: value for name, value in {**ASKED, **changed}.items() if value is not None}
    return send(provider, f"{PATH}/authorize?{urlencode(asked)}")


def result(reply: httpx.Response) -> dict[str, str]:
    """What the reply sends back to the client."""
    assert reply.status_code == 303
    location = reply.headers["location"]
    assert location.startswith(f"{CALLBACK}?")
    return {name: value for name, (value,) in parse_qs(urlsplit(location).query).items()}


def code_of(provider: LocalProvider, subject: str = "employee-1") -> str:
    """Follow the link of a person on the page."""
    page = authorize(provider)
    (link,) = re.findall(rf'href="([^"]+person={subject})"', page.text)
    sent_back = result(send(provider, f"{PATH}/authorize{link.replace('&amp;', '&')}"))
    assert sent_back.keys() == {"code", "state", "iss"}
    assert (sent_back["state"], sent_back["iss"]) == ("s&t", ISSUER)
    return sent_back["code"]


def exchange(provider: LocalProvider, code: str, auth: Any = CLIENT, **changed: str) -> httpx.Response:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
    form |= {"code_verifier": VERIFIER, **changed}
    return send(provider, f"{PATH}/token", method="POST", data=form, auth=auth)


def verified(provider: LocalProvider, token: str) -> dict[str, Any]:
    (key,) = send(provider, f"{PATH}/keys").json()["keys"]
    assert jwt.get_unverified_header(token)["kid"] == key["kid"]
    claims: dict[str, Any] = jwt.decode(token, jwt.PyJWK(key), algorithms=["RS256"], audience=CLIENT_ID, issuer=ISSUER)
    return claims


def test_the_configuration_names_endpoints_that_reply(provider: LocalProvider) -> None:
    configuration = send(provider, f"{PATH}/.well-known/openid-configuration").json()
    assert configuration["issuer"] == ISSUER
    addresses = [value for name, value in configuration.items() if name.endswith("_endpoint")]
    for address in [*addresses, configuration["jwks_uri"]]:
        method = "POST" if address.endswith("/token") else "GET"
        assert send(provider, address, method=method).text != "the gateway"


def test_a_person_signs_in_with_a_code_and_its_verifier(provider: LocalProvider) -> None:
    reply = exchange(provider, code_of(provider, "employee-2")).json()
    claims = verified(provider, reply["id_token"])
    assert claims.pop("exp") - claims.pop("iat") == reply["expires_in"]
    assert claims.pop("auth_time") > 0
    bob = {
        "sub": "employee-2",
        "name": "Bob",
        "email": "bob@company.example",
        "email_verified": True,
        "groups": ["eng"],
    }
    assert claims == {"iss": ISSUER, "aud": CLIENT_ID, "nonce": "n", **bob}
    headers = {"authorization": f"Bearer {reply['access_token']}"}
    assert send(provider, f"{PATH}/userinfo", headers=headers).json() == bob


def test_the_people_are_those_that_the_documentation_names() -> None:
    assert {person.name: (person.groups, person.is_verified) for person in PEOPLE.values()} == {
        "Ada": (("admins",), True),
        "Bob": (("eng",), True),
        "Cy": ((), True),
        "Mallory": ((), False),
    }


def test_each_login_is_new(provider: LocalProvider) -> None:
    with time_machine.travel(1_800_000_000, tick=False):
        code = code_of(provider)
    with time_machine.travel(1_800_000_030, tick=False):
        claims = jwt.decode(exchange(provider, code).json()["id_token"], options={"verify_signature": False})
    assert (claims["auth_time"], claims["iat"]) == (1_800_000_000, 1_800_000_030)
    assert "Choose a person" in authorize(provider, prompt="login", max_age="0").text
    assert result(authorize(provider, prompt="none"))["error"] == "login_required"


def test_a_code_works_once(provider: LocalProvider) -> None:
    code = code_of(provider)
    assert exchange(provider, code).status_code == 200
    refused = exchange(provider, code)
    assert (refused.status_code, refused.json()) == (400, {"error": "invalid_grant"})


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"redirect_uri": f"{CALLBACK}2"}, "invalid_grant"),
        ({"code": "another"}, "invalid_grant"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
    ],
)
def test_a_code_needs_its_request(provider: LocalProvider, changed: dict[str, str], error: str) -> None:
    form = {"code": code_of(provider), **changed}
    assert exchange(provider, **form).json() == {"error": error}


@pytest.mark.parametrize("auth", [None, (CLIENT_ID, "another"), ("another", CLIENT_SECRET)])
def test_a_code_needs_the_client_and_its_secret(provider: LocalProvider, auth: Any) -> None:
    refused = exchange(provider, code_of(provider), auth)
    assert (refused.status_code, refused.json()) == (401, {"error": "invalid_client"})


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "email"}, "invalid_scope"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
    ],
)
def test_a_wrong_request_is_sent_back(provider: LocalProvider, changed: dict[str, str | None], error: str) -> None:
    assert result(authorize(provider, **changed)) == {"error": error, "state": "s&t", "iss": ISSUER}


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "another"},
        {"redirect_uri": "http://127.0.0.1:3001/api/auth/callback/example"},
        {"redirect_uri": "http://acme.example:3000/api/auth/callback/example"},
        {"redirect_uri": "https://127.0.0.1:3000/api/auth/callback/example"},
        {"redirect_uri": "http://127.0.0.1:3000/console"},
        {"redirect_uri": "http://127.0.0.1:x/api/auth/callback/example"},
    ],
)
def test_nothing_is_sent_to_another_client(provider: LocalProvider, changed: dict[str, str | None]) -> None:
    reply = authorize(provider, person="employee-1", **changed)
    assert (reply.status_code, "location" in reply.headers) == (400, False)


def test_another_name_of_this_machine_is_a_callback_too(provider: LocalProvider) -> None:
    callback = "http://localhost:3000/api/auth/callback/example"
    reply = authorize(provider, person="employee-1", redirect_uri=callback)
    assert reply.headers["location"].startswith(f"{callback}?code=")


def test_one_can_cancel(provider: LocalProvider) -> None:
    (link,) = re.findall(r'href="([^"]+)">Cancel', authorize(provider).text)
    assert "error=access_denied" in link


def test_values_of_the_request_are_text_on_the_page(provider: LocalProvider) -> None:
    page = authorize(provider, state='"><script>').text
    assert "<script>" not in page


def test_userinfo_needs_an_access_token(provider: LocalProvider) -> None:
    for headers in ({}, {"authorization": "Bearer another"}):
        assert send(provider, f"{PATH}/userinfo", headers=headers).status_code == 401


def test_the_key_survives_a_restart(provider: LocalProvider, tmp_path: Path) -> None:
    token = exchange(provider, code_of(provider)).json()["id_token"]
    again = LocalProvider(PlainTextResponse(""), ISSUER, ISSUER, tmp_path / "provider.pem")
    assert verified(again, token)["sub"] == "employee-1"
    assert (tmp_path / "provider.pem").stat().st_mode & 0o777 == 0o600


def test_another_machine_gets_the_gateway(provider: LocalProvider) -> None:
    reply = send(provider, f"{PATH}/authorize?{urlencode(ASKED)}", client="192.0.2.9")
    assert reply.text == "the gateway"
    assert send(provider, "/sign-in").text == "the gateway"


# -------------------------------------------------------------------------------------- its registration


def registered(url: str | None) -> str | None:
    return handler({"url": url}, None)["issuer"]


def test_the_first_start_adds_it(aws_in_memory: None) -> None:
    assert registered(ISSUER) == ISSUER
    provider = service.find_provider("example")
    assert provider is not None
    assert (provider.name, provider.domains) == ("Example Company", ("company.example",))
    assert service.unsealed_secrets(provider, now=clock.now()) == [CLIENT_SECRET]


def test_its_endpoints_are_those_of_its_configuration(aws_in_memory: None, provider: LocalProvider) -> None:
    registered(ISSUER)
    configuration = send(provider, f"{PATH}/.well-known/openid-configuration").json()
    known = service.require_provider("example").endpoints
    assert known == Endpoints(
        authorization=configuration["authorization_endpoint"],
        token=configuration["token_endpoint"],
        jwks=configuration["jwks_uri"],
        userinfo=configuration["userinfo_endpoint"],
        sends_issuer=configuration["authorization_response_iss_parameter_supported"],
        authentication=configuration["token_endpoint_auth_methods_supported"][0],
        algorithms=tuple(configuration["id_token_signing_alg_values_supported"]),
    )


def test_another_port_keeps_the_issuer_and_the_settings(aws_in_memory: None) -> None:
    registered(ISSUER)
    service.change_provider("example", lambda old: replace(old, hidden=True), now=clock.now())
    assert registered(f"http://127.0.0.1:4000{PATH}") == ISSUER
    provider = service.require_provider("example")
    assert provider.endpoints.token == f"http://127.0.0.1:4000{PATH}/token"
    assert (provider.issuer, provider.hidden) == (ISSUER, True)


def test_a_start_without_it_removes_it(aws_in_memory: None) -> None:
    assert registered(None) is None
    registered(ISSUER)
    assert registered(None) is None
    assert service.find_provider("example") is None


def test_a_provider_of_the_operator_with_its_id_stays(aws_in_memory: None) -> None:
    made = provider_at("https://login.acme.example", clock.now())
    service.add_provider(made, "secret")
    assert registered(ISSUER) is None
    assert registered(None) is None
    assert service.find_provider("example") is not None
