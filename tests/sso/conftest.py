"""A deployment on a loopback address with the hostile provider, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from larder.sso import service
from larder.sso.models import IdentityProvider
from tests.conftest import SetOption
from tests.mailbox import Mailbox
from tests.requests import Browser, Reply
from tests.sso.hostile_provider import HostileProvider, serving_provider
from tests.sso.providers import SECRET

ORIGIN = "http://127.0.0.1:3000"
FROM_PAGE = {"origin": ORIGIN}


@dataclass
class Journey:
    """The way of a person from the button to the session."""

    provider: HostileProvider
    browser: Browser
    url: str = ""
    """The address at the provider that the sign-in leads to."""

    def start(self, path: str = "/sign-in/social", **body: Any) -> Reply:
        sent = {"provider": "acme", "callbackURL": "/console", **body}
        reply = self.browser.post(path, sent, headers=FROM_PAGE)
        if reply.status == 200:
            self.url = reply.json["url"]
        return reply

    @property
    def asked(self) -> dict[str, str]:
        """The query of the address at the provider."""
        return dict(parse_qsl(urlsplit(self.url).query))

    def callback(self, query: dict[str, Any] | str, *, at: str = "acme") -> Reply:
        text = query if isinstance(query, str) else urlencode(query)
        return self.browser.get(f"/callback/{at}?{text}")

    def sign_in(self, *, start: dict[str, Any] | None = None, **claims: Any) -> Reply:
        """From the start to the callback, with these claims of the person."""
        started = self.start(**(start or {}))
        assert started.status == 200, started
        return self.callback(self.provider.authorize(self.url, **claims))

    def session(self) -> Any:
        """What `/get-session` says."""
        return self.browser.get("/get-session").json


def error_of(reply: Reply) -> str | None:
    """The code that the page gets. None for a sign-in that succeeds."""
    assert reply.status == 302, reply
    return dict(parse_qsl(urlsplit(reply.headers["location"]).query)).get("error")


@pytest.fixture(autouse=True)
def quick_hashes(option: SetOption) -> None:
    option("scrypt_cost", 1024)


@pytest.fixture
def on_loopback(option: SetOption, mailbox: Mailbox) -> None:
    """A deployment on a loopback address, which accepts providers there."""
    option("base_url", ORIGIN)


@pytest.fixture
def hostile() -> Iterator[HostileProvider]:
    with serving_provider() as provider:
        yield provider


@pytest.fixture
def added(aws_in_memory: None, on_loopback: None, hostile: HostileProvider) -> IdentityProvider:
    """The hostile provider, as the operator added it, with the id `acme`."""
    return add(hostile)


@pytest.fixture
def journey(added: IdentityProvider, hostile: HostileProvider) -> Journey:
    return Journey(hostile, Browser())


def add(hostile: HostileProvider, **settings: Any) -> IdentityProvider:
    return service.add_provider(hostile.settings(**settings), SECRET)
