"""API7: Server side request forgery. Larder requests no URL from a client and redirects only to trusted ones.

The keys of issuers are at URLs that the deployment or its operator trusts.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.owasp.conftest import Person, json_body, operations
from tests.requests import Sender

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = {"aiohttp", "ftplib", "http.client", "httpx", "requests", "smtplib", "socket", "urllib.request", "urllib3"}
INNER = [
    "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/latest/",
    "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next", "http://localhost/", "file:///proc/self/environ",
    "gopher://127.0.0.1:6379/_", "//evil.example/", "https://cache.example.com@evil.example/",
    "https://cache.example.com.evil.example/", "javascript:alert(1)", "/\\evil.example", "https:evil.example",
]  # fmt: skip
URLS = ("callbackURL", "redirectTo", "errorCallbackURL", "newUserCallbackURL")


def test_the_only_network_clients_are_those_of_aws_and_of_issuers() -> None:
    found = {
        (path.name, name)
        for folder in ("functions", "layers/larder/src")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _imported(node)
        if name in CLIENTS
    }
    assert found == {
        # Its hosts are those of AWS in the region, or of the variables AWS_ENDPOINT_URL_*.
        ("connections.py", "socket"),
        # Its hosts are those of issuers that the deployment trusts, on the internet: tests/trust has the attacks.
        ("fetching.py", "http.client"),
        ("fetching.py", "socket"),
    }


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


@pytest.mark.parametrize("inner", INNER)
def test_no_body_redirects_to_an_untrusted_address(inner: str, ada: Person) -> None:
    for (method, path), operation in operations().items():
        body = json_body(operation)
        if body is None or not path.startswith("/api/auth/"):
            continue
        for field in URLS:
            values = {**body["example"], field: inner}
            reply = ada.by_session(method, path, json_body=values)
            assert reply.status == 403, (path, field)


@pytest.mark.parametrize("inner", INNER)
def test_no_link_leads_to_an_untrusted_address(inner: str, ada: Person) -> None:
    for path in ("/verify-email?token=x", f"/reset-password/{'A' * 32}?x=y"):
        send = Sender(None).asking(callbackURL=inner.replace("\\", "%5C"))
        reply = send("GET", f"/api/auth{path}")
        assert reply.refusal == (403, "INVALID_CALLBACK_URL")


@pytest.mark.parametrize("inner", [one for one in INNER if "127.0.0.1:9001/" not in one])
def test_tokens_go_only_to_the_users_own_computer(inner: str, ada: Person) -> None:
    reply = ada.by_session(
        "POST",
        "/api/auth/turbo-login",
        json_body={"redirectUri": inner},
        headers={"origin": "https://cache.example.com"},
    )
    assert reply.refusal == (400, "REDIRECT_IS_NOT_LOOPBACK")


def test_a_picture_is_stored_as_a_url_and_not_fetched(ada: Person) -> None:
    image = "http://169.254.169.254/latest/meta-data/"
    reply = ada.by_session("POST", "/api/auth/update-user", json_body={"image": image})
    assert reply.status in (200, 400)
