"""OpenID providers of the registries, each a server of its own with the same people and one client."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.e2e import node
from tests.e2e.browser import Browser
from tests.e2e.cloud import LocalCloud, free_port

HERE = Path(__file__).parent
CLIENT_ID = "larder"
CLIENT_SECRET = "a-secret-of-the-tests-that-is-long-enough"
PEOPLE = {"Ada": ["admins"], "Bob": ["eng"], "Cy": []}
"""Everyone's groups. Their addresses are their names at the domain of the company."""
PASSWORD = "correct horse battery"
START_SECONDS = 30
END_SECONDS = 10


@dataclass(frozen=True)
class Server:
    """A running provider of the company with this domain.

    `sign_in` fills its pages in a browser that is there, with the name of a person. `options` are what `larder sso add`
    needs for this kind of provider.
    """

    issuer: str
    domain: str
    sign_in: Callable[[Browser, str], None]
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A kind of provider. `start` gets the folder of tools and what the server should have."""

    start: Callable[[Path, dict[str, Any]], list[str]]
    sign_in: Callable[[Browser, str], None]
    options: tuple[str, ...] = ()


@contextlib.contextmanager
def running(kind: str, tools: Path, callback: str, domain: str, log: Path) -> Iterator[Server]:
    """A context with a provider of this kind, whose client has the address `callback`."""
    port = free_port()
    issuer = f"http://127.0.0.1:{port}"
    made = KINDS[kind]
    wanted = {
        "port": port,
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "redirect_uri": callback,
        "domain": domain,
        "people": PEOPLE,
        "password": PASSWORD,
    }
    with log.open("w") as output:
        process = subprocess.Popen(
            made.start(tools, wanted),
            env={"PATH": os.environ["PATH"], "NO_PROXY": "*"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        _wait_until_up(process, issuer, log)
        yield Server(issuer, domain, made.sign_in, made.options)
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def added(kind: str, cloud: LocalCloud, tools: Path, folder: Path) -> Iterator[Server]:
    """A context with a provider of this kind, which the operator has added under its name.

    `tools` has what is installed, and `folder` gets the log of the provider.
    """
    provider_id = kind.lower()
    callback = f"{cloud.url}/api/auth/callback/{provider_id}"
    domain = f"{provider_id}.example"
    with running(kind, tools, callback, domain, folder / "provider.log") as company:
        secret = folder / "client-secret"
        secret.write_text(CLIENT_SECRET)
        options = ["--name", kind, "--issuer", company.issuer, "--client-id", CLIENT_ID]
        options += ["--client-secret-file", str(secret), "--domain", domain, *company.options]
        cloud.larder("sso", "add", provider_id, *options)
        yield company
        cloud.larder("sso", "remove", provider_id, "--yes")


def _wait_until_up(process: subprocess.Popen[bytes], issuer: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    address = f"{issuer}/.well-known/openid-configuration"
    while True:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(address, trust_env=False, timeout=5).status_code == 200:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the provider did not start:\n{log.read_text()}")
        time.sleep(0.1)


def _oidc_provider(tools: Path, wanted: dict[str, Any]) -> list[str]:
    script = HERE / "oidc_provider.mjs"
    folder = node.installed(HERE, (script,), tools / "oidc-provider", "--ignore-scripts")
    return ["node", str(folder / script.name), json.dumps(wanted)]


def _canaille(tools: Path, wanted: dict[str, Any]) -> list[str]:
    return [_installed(tools, "python"), str(HERE / "canaille_server.py"), json.dumps(wanted)]


def _mock(tools: Path, wanted: dict[str, Any]) -> list[str]:
    people = [
        {
            "sub": f"id-of-{name}",
            "name": name,
            "email": f"{name.lower()}@{wanted['domain']}",
            "email_verified": True,
            "groups": groups,
        }
        for name, groups in PEOPLE.items()
    ]
    claims = [f"--user-claims={json.dumps(person)}" for person in people]
    return [_installed(tools, "oidc-provider-mock"), f"--port={wanted['port']}", *claims]


def _installed(tools: Path, command: str) -> str:
    path = tools / "oidc" / "bin" / command
    assert path.exists(), "The providers of PyPI are not installed: run `make .tools/oidc/.ready`"
    return str(path)


def _sign_in_at_oidc_provider(page: Browser, name: str) -> None:
    _type(page, "login", name)
    _type(page, "password", PASSWORD, Keys.ENTER)


def _sign_in_at_canaille(page: Browser, name: str) -> None:
    _type(page, "login", name.lower(), Keys.ENTER)
    page.wait_until("return document.querySelector('[name=password]')")
    _type(page, "password", PASSWORD, Keys.ENTER)


def _sign_in_at_the_mock(page: Browser, name: str) -> None:
    page.driver.find_element(By.CSS_SELECTOR, f"button[value=id-of-{name}]").click()


def _type(page: Browser, field: str, *text: str) -> None:
    shown = page.driver.find_element(By.NAME, field)
    shown.clear()
    shown.send_keys(*text)


KINDS = {
    "oidc-provider": Kind(_oidc_provider, _sign_in_at_oidc_provider),
    # It sends no `email_verified`, because its administrators give all addresses.
    "Canaille": Kind(_canaille, _sign_in_at_canaille, ("--verified-by", "domain")),
    "oidc-provider-mock": Kind(_mock, _sign_in_at_the_mock),
}
OF_TESTS = [kind if kind == "oidc-provider" else pytest.param(kind, marks=pytest.mark.thorough) for kind in KINDS]
