"""`turbo login`, `link`, builds and `logout`, with real clients and a real browser.

turbo opens the browser itself. BROWSER names a script that records the address, and the browser under test opens it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.oidc import servers

from . import turbo
from .browser import Browser
from .cloud import LocalCloud
from .example_company import choose
from .monorepo import Package, generate, wipe_outputs_and_local_cache

pytestmark = pytest.mark.e2e

IS_DEPLOYED = os.environ.get("CLOUD") == "deployed"
SERVER_OPTIONS = {} if IS_DEPLOYED else {"PROVIDER": "1"}
VERSIONS = (turbo.NEWEST, pytest.param("2.8.21", marks=pytest.mark.thorough))
PACKAGES = frozenset({"one", "two"})
TURBO_SECONDS = 60
LISTENS_AT = "127.0.0.1:9789"
"""Every turbo waits for its token at this port, so only one login at a time is possible on this computer."""


@pytest.fixture
def ada() -> Person:
    return Person(f"ada-{secrets.token_hex(6)}@acme.example", secrets.token_hex(12))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    root = tmp_path_factory.mktemp("template") / "monorepo"
    generate(root, [Package("one", 1_000), Package("two", 300_000, ("one",))], home=home)
    return root


@pytest.fixture
def laptop(
    request: pytest.FixtureRequest,
    server: LocalCloud,
    fresh_monorepo: Callable[..., Path],
    template: Path,
    tmp_path: Path,
) -> Callable[..., Laptop]:
    """Creates a computer with a turbo of some version and no login."""

    def make(version: str, site: str | None = None) -> Laptop:
        own = tmp_path / f"laptop-{version}"
        own.mkdir()
        command = turbo.installed(version, request.config.rootpath / ".tools" / "turbo")
        return Laptop(
            command=command,
            version=version,
            site=site or server.url,
            folder=own,
            monorepo=fresh_monorepo(version, seed=f"login {version}", template=template),
        )

    return make


@dataclass(frozen=True)
class Person:
    email: str
    password: str


@dataclass(frozen=True)
class Laptop:
    """A monorepo, and a turbo that only knows the address of its cache."""

    command: Path
    version: str
    site: str
    folder: Path
    monorepo: Path

    @property
    def client(self) -> turbo.Client:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        return turbo.Client(self.command, self.version, {"TURBO_API": self.site}, home)

    @property
    def stored_token(self) -> str | None:
        """The data of a login that turbo keeps."""
        kept = self.folder / "home" / ".config" / "turborepo" / "config.json"
        token: str | None = json.loads(kept.read_text()).get("token") if kept.exists() else None
        return token

    def asks(self, *arguments: str) -> str:
        return turbo.command(self.client, self.monorepo, *arguments)

    @contextlib.contextmanager
    def logging_in(self, *arguments: str) -> Iterator[Login]:
        """A context with a running `turbo login`."""
        opened, script = self.folder / "opened", self.folder / "browser"
        opened.unlink(missing_ok=True)
        script.write_text(f'#!/bin/sh\nprintf %s "$1" > "{opened}.part" && mv "{opened}.part" "{opened}"\n')
        script.chmod(0o755)
        with self._alone(), (self.folder / "login.log").open("wb") as log:
            login = Login(self._start(arguments, script, log), opened, self.folder / "login.log")
            try:
                login.wait_for_page()
                yield login
            finally:
                # npm installs a script that starts the real command.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(login.process.pid, signal.SIGKILL)
                login.process.wait()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.command.parents[3] / "login.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _start(self, arguments: tuple[str, ...], script: Path, log: BinaryIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(self.command), "login", "--api", self.site, "--login", self.site, *arguments],
            cwd=self.monorepo,
            env={"PATH": os.environ["PATH"], "HOME": str(self.client.home), "BROWSER": str(script), **turbo.QUIET},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@dataclass(frozen=True)
class Login:
    process: subprocess.Popen[bytes]
    opened: Path
    log: Path

    def wait_for_page(self) -> None:
        deadline = time.monotonic() + TURBO_SECONDS
        while not self.opened.exists():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)

    @property
    def url(self) -> str:
        """The page that turbo opened."""
        return self.opened.read_text()

    @property
    def said(self) -> str:
        return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", self.log.read_text(errors="replace"))

    def succeeds(self, person: Person) -> None:
        assert self.process.wait(TURBO_SECONDS) == 0, self.said
        assert f"Turborepo CLI authorized for {person.email}" in self.said


def sign_up(page: Browser, person: Person) -> None:
    page.press("Create one")
    page.type("Your name", "Ada")
    page.type("Email address", person.email)
    page.type("Password", person.password)
    page.press("Create account")


def sign_in(page: Browser, email: str, password: str) -> None:
    page.wait_for_heading("Sign in")
    page.type("Email address", email)
    page.type("Password", password)
    page.press("Sign in")


def keys_of(page: Browser) -> list[dict[str, Any]]:
    """The keys of the user who is signed in at the page."""
    reply = page.fetch("/api/auth/api-key/list")
    assert reply.status == 200
    listed: list[dict[str, Any]] = json.loads(reply.text)
    return listed


def make_team(server: LocalCloud, owner: Person) -> str:
    """The slug of a new team that the operator creates."""
    slug = f"team-{secrets.token_hex(4)}"
    server.larder("teams", "create", "--name", "Acme", "--slug", slug, "--owner", owner.email, "--unverified")
    return slug


def make_user(server: LocalCloud, person: Person) -> None:
    body = {"name": "Ada", "email": person.email, "password": person.password}
    made = httpx.post(f"{server.url}/api/auth/sign-up/email", json=body, trust_env=False)
    assert made.status_code == 200, made.text


def status_of(server: LocalCloud, token: str) -> int:
    """The cache's reply to a request with this token."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{server.url}/v2/user", headers=headers, trust_env=False).status_code


def logged(server: LocalCloud) -> str:
    """All logs of the local cloud."""
    logs = (server.data / "logs").rglob("*")
    return server.log_text() + "".join(log.read_text(errors="replace") for log in logs if log.is_file())


def build_twice(laptop: Laptop, team: str) -> tuple[turbo.Run, turbo.Run]:
    """Link the monorepo to the team and build it twice, without local data of the first build the second time."""
    runs = []
    for _ in range(2):
        wipe_outputs_and_local_cache(laptop.monorepo)
        assert "Success!" in laptop.asks("link", "--yes", "--scope", team)
        runs.append(turbo.build(laptop.client, laptop.monorepo))
    return runs[0], runs[1]


@pytest.mark.parametrize(
    ("version", "name"), [(turbo.NEWEST, "localhost"), pytest.param("2.8.21", "127.0.0.1", marks=pytest.mark.thorough)]
)
def test_a_login_gives_access_to_the_cache_until_logout(
    server: LocalCloud, page: Browser, ada: Person, laptop: Callable[..., Laptop], version: str, name: str
) -> None:
    mine = laptop(version, f"http://{name}:{server.port}")
    with mine.logging_in() as login:
        asked = parse_qs(urlsplit(login.url).query)
        assert asked["redirect_uri"] == [f"http://{LISTENS_AT}"]
        # Older clients send no state, and get none.
        assert ("state" in asked) is (version == turbo.NEWEST)
        page.open(login.url)
        page.wait_for_heading("Sign in")
        sign_up(page, ada)
        page.wait_for_heading("Let turbo use your cache?")
        team = make_team(server, ada)
        page.open(login.url)
        page.wait_for_heading("Let turbo use your cache?")
        for shown in (ada.email, "read and write build artifacts", "90 days from now"):
            assert shown in page.text()
        page.run("document.querySelector('summary').click()")
        assert LISTENS_AT in page.text()
        assert keys_of(page) == []
        page.type("Name of the key", "Ada's laptop")

        page.press("Send the key to turbo")

        login.succeeds(ada)
        page.wait_for_heading("turbo is signed in")
        assert page.url == f"{mine.site}/turborepo/success"
    token = mine.stored_token
    assert token is not None
    assert not token.startswith("vca_")
    (key,) = keys_of(page)
    assert (key["name"], key["teamId"]) == ("Ada's laptop", None)
    # A prefix, as [prod] gives it, is shown before the first six letters.
    assert token.startswith(key["start"])
    assert key["permissions"] == {"artifacts": ["read", "write"]}
    made, ends = (datetime.fromisoformat(key[at]) for at in ("createdAt", "expiresAt"))
    assert ends - made == timedelta(days=90)
    (listed,) = server.larder("keys", "list", "--user", ada.email)
    assert (listed["id"], listed["name"]) == (key["id"], "Ada's laptop")
    assert token not in logged(server)
    page.driver.back()
    assert token not in page.url

    cold, warm = build_twice(mine, team)

    assert (cold.cached, cold.total) == (0, len(PACKAGES))
    assert warm.full_turbo
    assert warm.remote_hits == PACKAGES

    mine.asks("logout", "--invalidate")

    assert mine.stored_token is None
    assert status_of(server, token) == 401
    page.open(f"{mine.site}/turborepo/success")
    assert keys_of(page) == []


@pytest.mark.skipif(IS_DEPLOYED, reason="only the local cloud has a provider")
def test_a_login_through_the_company_gives_access_to_the_cache(
    server: LocalCloud, page: Browser, laptop: Callable[..., Laptop]
) -> None:
    ada = Person("ada@company.example", "")
    mine = laptop(turbo.NEWEST)
    with mine.logging_in() as login:
        page.open(login.url)
        page.press("Continue with Example Company")
        choose(page, "Ada")
        page.wait_for_heading("Let turbo use your cache?")
        assert ada.email in page.text()
        # No token without a click on the page of consent.
        assert keys_of(page) == []

        page.press("Send the key to turbo")

        login.succeeds(ada)
    cold, warm = build_twice(mine, make_team(server, ada))
    assert (cold.cached, warm.remote_hits, warm.full_turbo) == (0, PACKAGES, True)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", servers.OF_TESTS)
@pytest.mark.skipif(IS_DEPLOYED, reason="The providers are only on this computer")
def test_a_login_for_a_team_goes_through_the_company_of_the_team(
    request: pytest.FixtureRequest,
    server: LocalCloud,
    page: Browser,
    laptop: Callable[..., Laptop],
    tmp_path: Path,
    kind: str,
) -> None:
    """Of several companies, that of the team comes first. Nobody has to know which one it is."""
    tools = request.config.rootpath / ".tools"
    with servers.added(kind, server, tools, tmp_path) as company:
        ada = Person(f"ada@{company.domain}", "")
        server.larder("users", "create", "--email", ada.email, "--name", "Ada")
        team = make_team(server, ada)
        mapping = ["--team", team, "--role", "DEVELOPER", "--everyone"]
        server.larder("sso", "map", kind.lower(), *mapping)
        mine = laptop(turbo.NEWEST)
        with mine.logging_in("--sso-team", team) as login:
            page.open(login.url)
            page.wait_until("return document.querySelectorAll('[data-providers] button').length > 1")
            first = page.run("return document.querySelector('[data-providers]:not([hidden]) button').innerText")
            assert first == "Continue with the company of the team"
            page.press(first)
            page.wait_until(f"return location.href.startsWith('{company.issuer}')")
            company.sign_in(page, "Ada")
            page.wait_for_heading("Let turbo use your cache?")

            page.press("Send the key to turbo")

            login.succeeds(ada)
        cold, warm = build_twice(mine, team)
    assert (cold.cached, warm.remote_hits, warm.full_turbo) == (0, PACKAGES, True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_login_for_a_team_gets_a_key_for_only_that_team(
    server: LocalCloud, page: Browser, ada: Person, laptop: Callable[..., Laptop], version: str
) -> None:
    make_user(server, ada)
    team, other = make_team(server, ada), make_team(server, ada)
    mine = laptop(version)
    mark = server.log_size()
    with mine.logging_in("--sso-team", team) as login:
        page.open(login.url)
        sign_in(page, ada.email, ada.password)
        page.wait_for_heading("Let turbo use your cache?")
        assert f"only the team Acme ({team})" in page.text()
        assert keys_of(page) == []

        page.press("Send the key to turbo")

        login.succeeds(ada)
    asked = {request.path: request.status for request in server.requests_since(mark)}
    assert (asked["/api/auth/sso"], asked["/registration/verify"]) == (302, 200)
    token = mine.stored_token
    assert token is not None
    page.open(f"{mine.site}/turborepo/success")
    (key,) = keys_of(page)
    assert key["name"] == f"turbo on {socket.gethostname()}"[:32].strip()
    assert key["teamId"].startswith("team_")
    assert key["expiresAt"] is not None
    assert token not in logged(server)

    cold, warm = build_twice(mine, team)
    assert (cold.cached, warm.remote_hits, warm.full_turbo) == (0, PACKAGES, True)
    with pytest.raises(AssertionError):
        mine.asks("link", "--yes", "--scope", other)
    mine.asks("logout", "--invalidate")
    assert status_of(server, token) == 401


@pytest.mark.thorough
def test_a_non_member_gets_no_key_and_can_sign_in_as_another_user(
    server: LocalCloud, page: Browser, ada: Person, laptop: Callable[..., Laptop]
) -> None:
    make_user(server, ada)
    bob = Person(f"bob-{secrets.token_hex(6)}@acme.example", secrets.token_hex(12))
    make_user(server, bob)
    team = make_team(server, ada)
    mine = laptop(turbo.NEWEST)
    with mine.logging_in("--sso-team", team) as login:
        page.open(login.url)
        sign_in(page, bob.email, bob.password)
        page.wait_for_heading("You are not in this team")
        assert keys_of(page) == []

        page.press("Sign in to another account")
        sign_in(page, ada.email, ada.password)
        page.wait_for_heading("Let turbo use your cache?")
        page.press("Send the key to turbo")

        login.succeeds(ada)


@pytest.mark.thorough
def test_a_cancelled_login_creates_no_key_and_can_be_repeated(
    server: LocalCloud, page: Browser, ada: Person, laptop: Callable[..., Laptop]
) -> None:
    make_user(server, ada)
    mine = laptop(turbo.NEWEST)
    with mine.logging_in() as login:
        page.open(login.url)
        sign_in(page, ada.email, "a wrong password")
        page.wait_for_text("The email address or the password is wrong.")
        sign_in(page, ada.email, ada.password)
        page.wait_for_heading("Let turbo use your cache?")
        page.press("Cancel")
        page.wait_for_heading("Login canceled")
        assert keys_of(page) == []
        assert login.process.poll() is None

        page.press("Back")
        page.wait_for_heading("Let turbo use your cache?")
        page.press("Not you? Sign out")
        page.wait_for_heading("Sign in")
        assert page.cookies() == {}
        assert login.process.poll() is None
    assert mine.stored_token is None


def test_a_used_code_is_an_error_in_the_terminal(
    server: LocalCloud, page: Browser, ada: Person, laptop: Callable[..., Laptop]
) -> None:
    make_user(server, ada)
    mine = laptop(turbo.NEWEST)
    with mine.logging_in("--sso-team", make_team(server, ada)) as login:
        state = parse_qs(urlsplit(login.url).query)["state"][0]
        query = {"token": "A" * 32, "state": state}
        httpx.get(f"http://{LISTENS_AT}/", params=query, trust_env=False)
        assert login.process.wait(TURBO_SECONDS) == 1
        assert "failed to validate sso token" in login.said
        assert "401 Unauthorized" in login.said
