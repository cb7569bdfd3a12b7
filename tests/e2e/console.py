"""A user of the console: signed up without the forms, which tests/e2e/test_pages.py covers."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from .browser import Browser
from .cloud import LocalCloud
from .outbox import link_to


@dataclass(frozen=True)
class Person:
    name: str = "Ada"
    email: str = field(default_factory=lambda: f"ada-{secrets.token_hex(6)}@acme.example")
    password: str = field(default_factory=lambda: secrets.token_hex(12))


def sign_up(page: Browser, server: LocalCloud, person: Person) -> None:
    """Sign up in the browser, and prove the address by opening the link in the mail there."""
    page.open(f"{server.url}/verified")
    body = {"name": person.name, "email": person.email, "password": person.password}
    assert post(page, "/api/auth/sign-up/email", body)["user"]["email"] == person.email
    page.open(link_to(server, person.email, "verify-email"))


def join(server: LocalCloud, person: Person, role: str) -> None:
    """Make the person a member of the local cloud's first team."""
    server.larder("teams", "add-member", server.team, person.email, "--role", role)


def act(page: Browser, action: str, *, row: int = 0) -> None:
    """Choose an action in a menu. `row` counts the menus of the page from above, and -1 is the last one."""
    page.wait_until(f"const menu = [...document.querySelectorAll('main .menu')].at({row}); menu?.click(); return menu")
    page.wait_until(
        "const [wanted] = [...document.querySelectorAll(':popover-open button')]"
        f".filter((one) => one.textContent === {json.dumps(action)}); wanted?.click(); return wanted"
    )


def post(page: Browser, path: str, body: object) -> Any:
    headers = {"content-type": "application/json"}
    reply = page.fetch(path, method="POST", headers=headers, body=json.dumps(body))
    assert reply.status == 200, reply
    return json.loads(reply.text)


@contextlib.contextmanager
def api(page: Browser, server: LocalCloud) -> Iterator[httpx.Client]:
    """The API, as the user of the page. Quicker than forms, and than the command of operators."""
    token = json.loads(page.fetch("/api/auth/console").text)["session"]["token"]
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60) as client:
        yield client


def sent(client: httpx.Client, path: str, body: object, *, method: str = "POST") -> Any:
    reply = client.request(method, path, json=body)
    assert reply.is_success, reply.text
    return reply.json()
