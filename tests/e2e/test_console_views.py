"""Every view of the console with hostile names and in each state: accessibility, layout, and the content policy."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from selenium.webdriver.common.keys import Keys

from tools import vendor_console

from . import browser, console, node
from .browser import Browser
from .cloud import LocalCloud
from .console import Person

pytestmark = pytest.mark.e2e

MARKUP = "<img src=x onerror=pwned=1>"
LONG = "W" * 48
EMOJI = "\U0001f9ea" * 30
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
VIEWS = {
    "": "Overview",
    "/artifacts": "Artifacts",
    "/keys": "Keys",
    "/members": "Members",
    "/activity": "Activity",
    "/settings": "Settings",
}
OTHERS = {
    "/console/account": "Your account",
    "/console/new-team": "Create a team",
    "/console/me": "Get started",
    "/console/nowhere": "Page not found",
}
CHECK = """
const [rules, done] = arguments;
axe.run(document, {runOnly: {type: "tag", values: rules}, resultTypes: ["violations"]}).then(
    ({violations}) => done(violations.map(({id, nodes}) => [id, nodes[0].html, nodes[0].failureSummary])),
    (error) => done([["axe", String(error), ""]]),
);
"""
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
REPLIES = """
const real = window.fetch;
window.fetch = (path, init) =>
    String(path).startsWith("/v1/usage")
        ? new Promise((reply, fail) => (%d ? reply(new Response(%s, {status: %d})) : fail(new TypeError())))
        : real(path, init);
"""


@pytest.fixture(scope="module")
def axe(request: pytest.FixtureRequest) -> str:
    """The script of axe-core."""
    root = request.config.rootpath
    folder = node.installed(root / "tests/e2e/axe", [], root / ".tools" / "axe")
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


@pytest.fixture(scope="module")
def team(server: LocalCloud) -> str:
    """A team whose members, keys and builds have hostile names."""
    slug = "w" * 48
    server.larder("users", "create", "--email", "owner@acme.example", "--name", MARKUP)
    server.larder(
        "teams", "create", "--name", LONG, "--slug", slug, "--owner", "owner@acme.example"
    )
    for name in (MARKUP, EMOJI, "w" * 32):
        made = server.larder(
            "keys", "create", "--user", "owner@acme.example", "--team", slug, "--name", name[:32]
        )
        headers = {"authorization": f"Bearer {made['key']}", "x-artifact-client-ci": MARKUP}
        with httpx.Client(
            base_url=server.url, headers=headers, params={"slug": slug}, trust_env=False
        ) as client:
            event = {
                "sessionId": str(uuid.uuid4()),
                "source": "REMOTE",
                "hash": "abc",
                "event": "HIT",
                "duration": 5,
            }
            assert client.put(f"/v8/artifacts/{'a' * 64}", content=b"x").status_code == 202
            assert client.post("/v8/artifacts/events", json=[event]).status_code == 200
    return slug


@pytest.fixture(scope="module")
def page(
    server: LocalCloud, team: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    """A browser in which an owner of the team is signed in."""
    ada = Person(f"{MARKUP} {EMOJI}")
    with browser.opened(tmp_path_factory.mktemp("browser") / "profile") as opened:
        console.sign_up(opened, server, ada)
        server.larder("teams", "add-member", team, ada.email, "--role", "OWNER")
        server.larder("teams", "invite", team, f"{'x' * 60}@acme.example", "--role", "VIEWER")
        yield opened


def test_every_view_is_accessible_and_fits_every_screen(
    server: LocalCloud, page: Browser, team: str, axe: str
) -> None:
    addresses = {f"/console/t/{team}{path}": title for path, title in VIEWS.items()} | OTHERS
    found: list[Any] = []

    def check(path: str) -> None:
        page.run(axe)
        for width, dark in ((1280, False), (1280, True), (390, True), (320, False)):
            page.look(width=width, dark=dark)
            found.extend([path, width, dark, *one] for one in page.run_async(CHECK, TAGS))
            if page.run(OVERFLOW) > 0:
                found.append([path, width, "is wider than the screen"])

    for path, title in addresses.items():
        page.look(width=1280)
        page.open(f"{server.url}{path}")
        page.wait_for_heading(title)
        page.wait_until("return document.querySelector('.loading') === null")
        check(path)
    page.look(width=1280)
    page.open(f"{server.url}/console/t/{team}/keys")
    page.press("Create a key")
    page.wait_until("return document.querySelector('dialog[open]') !== null")
    check("the dialog of a new key")
    page.keys(Keys.ESCAPE)
    assert page.run("return document.activeElement.textContent") == "Create a key"
    page.press("Members")
    page.wait_for_heading("Members")
    # Screen readers read the heading of the new view.
    assert page.run("return document.activeElement.tagName") == "H1"
    assert found == []
    assert page.run("return window.pwned") is None
    assert page.errors() == []


def test_hostile_names_are_text(server: LocalCloud, page: Browser, team: str) -> None:
    page.look(width=1280)
    for path in ("", "/artifacts", "/keys", "/members"):
        page.open(f"{server.url}/console/t/{team}{path}")
        page.wait_for_heading(VIEWS[path])
        page.wait_for_text("IMG SRC" if path == "" else MARKUP)
    assert page.run("return document.querySelectorAll('img').length") == 0
    assert page.run("return window.pwned") is None
    assert page.errors() == []


@pytest.mark.parametrize(
    ("status", "reply", "text"),
    [
        (0, {}, "Could not reach the server."),
        (503, {"message": "The service is busy."}, "The service is busy."),
        (429, {}, "Too many attempts"),
        (402, {"message": "The account is blocked."}, "The account is blocked."),
        (200, {"status": "paused"}, "Caching is paused."),
        (200, {"status": "over_limit"}, "The quota is full."),
        (200, {"block": "soft_block", "blockReason": MARKUP}, f"blocked this cache: {MARKUP}"),
    ],
)
def test_each_state_has_words(
    server: LocalCloud, page: Browser, team: str, status: int, reply: dict[str, Any], text: str
) -> None:
    figures = dict.fromkeys(
        (
            "events",
            "hits",
            "localHits",
            "remoteHits",
            "remoteMisses",
            "timeSavedMs",
            "untimedHits",
            "uploads",
            "uploadedBytes",
        ),
        0,
    )
    usage = {
        "status": "enabled",
        "block": None,
        "blockReason": None,
        "storedBytes": 0,
        "artifacts": 1,
        "quotaBytes": 100,
        "total": figures,
        "ci": [],
        "days": [
            {"day": f"2026-11-{day:02}", **figures, "storedBytes": day, "artifacts": 1}
            for day in range(1, 31)
        ],
    }
    body = json.dumps(usage | reply if status == 200 else reply)
    with page.before_each_page(REPLIES % (status, json.dumps(body), status)):
        page.open(f"{server.url}/console/t/{team}")
        page.wait_for_text(text)
    assert page.errors() == []


def test_the_libraries_are_bundled_as_make_does(request: pytest.FixtureRequest) -> None:
    packages = vendor_console.install(request.config.rootpath / ".tools" / "console-test")
    assert vendor_console.bundle(packages) == vendor_console.TARGET.read_text()
