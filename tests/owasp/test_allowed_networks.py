"""With `AllowedNetworks`, only requests from these networks are served. tests/test_catalogue.py sends each request."""

from __future__ import annotations

import base64
import hashlib
import json
from io import StringIO

import pytest

from larder.web.gateway import HEADER
from tests.conftest import SetOption
from tests.requests import Reply, Sender

OFFICE, ELSEWHERE, PROXY = "203.0.113.5", "198.51.100.7", "192.0.2.1"
"""Requests of tests come from the last."""
SECRET = "a long random secret"
PATHS = ("/api/auth/ok", "/openapi.json", "/nothing")
"""An endpoint, a page, and a path without a route."""


def ask(path: str, forwarded: str, secret: str = SECRET) -> Reply:
    return Sender(None)("GET", path, headers={HEADER: secret, "x-forwarded-for": forwarded})


@pytest.fixture
def behind_proxy(option: SetOption) -> None:
    option("allowed_networks", "203.0.113.0/24,2001:db8:1::/48,2001:db8:2::5/128")
    option("proxy_secret_hash", base64.b64encode(hashlib.sha256(SECRET.encode()).digest()).decode())
    option("trusted_proxy_hops", 1)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("forwarded", "refused"),
    [
        (f"{OFFICE}, {PROXY}", None),
        (f"{OFFICE}:4711, {PROXY}", None),
        (f"{ELSEWHERE}, {OFFICE}, {PROXY}", None),
        (f"::ffff:{OFFICE}, {PROXY}", None),
        (f"2001:db8:1:ffff::9, {PROXY}", None),
        (f"[2001:DB8:1::9]:4711, {PROXY}", None),
        (f"2001:db8:2::5, {PROXY}", None),
        (f"2001:db8:2::6, {PROXY}", "2001:db8:2::6"),
        (f"{ELSEWHERE}, {PROXY}", ELSEWHERE),
        (f"{OFFICE}, {ELSEWHERE}, {PROXY}", ELSEWHERE),
        (f"203.0.112.255, {PROXY}", "203.0.112.255"),
        (f"<script>, {PROXY}", "unknown"),
        (f", {PROXY}", "unknown"),
        (OFFICE, PROXY),
        (f"{OFFICE}, {ELSEWHERE}", PROXY),
        ("", PROXY),
    ],
)
@pytest.mark.usefixtures("behind_proxy")
def test_behind_a_proxy_the_address_that_it_reports_decides(forwarded: str, refused: str | None, path: str) -> None:
    reply = ask(path, forwarded)
    if refused is None:
        assert reply.status == (404 if path == "/nothing" else 200)
    else:
        assert (reply.status, reply.json["code"].lower()) == (403, "network_not_allowed")
        assert reply.json["message"].startswith(f"Your address, {refused}, is in none of the networks")


@pytest.mark.usefixtures("behind_proxy")
def test_an_address_of_the_network_does_not_replace_the_secret_of_the_proxy() -> None:
    reply = ask("/api/auth/ok", f"{OFFICE}, {PROXY}", secret="a guess")
    assert (reply.status, reply.json["code"]) == (403, "NOT_THROUGH_PROXY")


@pytest.mark.parametrize(("networks", "status"), [("203.0.113.0/24", 403), (f"203.0.113.0/24,{PROXY}/32", 200)])
def test_without_a_proxy_the_caller_counts_whatever_it_reports(networks: str, status: int, option: SetOption) -> None:
    option("allowed_networks", networks)
    assert ask("/api/auth/ok", OFFICE).status == status


def test_the_log_names_the_reason(option: SetOption, log: StringIO) -> None:
    option("allowed_networks", "203.0.113.0/24")
    for path in PATHS:
        ask(path, OFFICE)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(line["status"], line["error"]) for line in lines] == [(403, "network_not_allowed")] * 3
