"""Every view of the console with hostile names and in each state: accessibility, layout, and the content policy."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium.webdriver.common.keys import Keys

from larder.artifacts.repository.table import owner_of
from larder.teams.models import ROLE_WORDS
from tools import vendor_console

from . import browser, console, seed
from .accessibility import problems
from .browser import Browser
from .cloud import LocalCloud
from .console import Person

pytestmark = pytest.mark.e2e

# The page of the account then lists the ways to sign in.
SERVER_OPTIONS = {"PROVIDER": "1"}
ARTIFACTS = int(os.environ.get("CONSOLE_ARTIFACTS", "300"))
MARKUP = "<img src=x onerror=pwned=1>"
LONG = "W" * 48
EMOJI = "\U0001f9ea" * 30
VIEWS = {
    "": "Overview",
    "/artifacts": "Artifacts",
    "/runs": "Runs",
    "/keys": "Keys",
    "/members": "Members",
    "/protection": "Protection",
    "/activity": "Activity",
    "/settings": "Settings",
}
OTHERS = {
    "/console/account": "Your account",
    "/console/new-team": "Create a team",
    "/console/me": "Get started",
    "/console/nowhere": "Page not found",
}
WIDTHS = (1280, 390, 320)
LOOKS = [(width, dark) for width in WIDTHS for dark in (False, True)]
EVERY_LOOK = os.environ.get("CONSOLE_LOOKS") == "all"
"""Whether axe checks every view in every look. Otherwise it does so with some views, which have all kinds of parts."""
IN_EVERY_LOOK = {"", "/keys", "/artifacts"}
DIALOGS = {
    "/artifacts": ["Details", "Delete", "Delete by time", "Delete all"],
    "/keys": ["Create a key", "Rotate", "Delete"],
    "/protection": ["Protect the team", "Add a rule", "Change", "Delete", "Test a job"],
    "/settings": ["Delete the team"],
}
"""The buttons of each view that open a dialog. Some are in the menu of a row."""
PRESS = """
const wanted = [...document.querySelectorAll("main button")].find((one) => one.textContent.trim() === %s);
wanted?.closest("[popover]")?.previousElementSibling.click();
wanted?.focus();
wanted?.click();
return wanted !== undefined;
"""
DIALOG = "document.querySelector('dialog[open]')"
MENU = "⋯"
OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
REPLIES = """
const real = window.fetch;
window.fetch = (path, init) =>
    String(path).startsWith("/v1/usage")
        ? new Promise((reply, fail) => (%d ? reply(new Response(%s, {status: %d})) : fail(new TypeError())))
        : real(path, init);
"""


@pytest.fixture(scope="module")
def pictures(request: pytest.FixtureRequest) -> Path:
    """A folder for pictures of the states, for people to look at: `.pytest_cache/d/console-states`."""
    return request.config.cache.mkdir("console-states")


@pytest.fixture(scope="module")
def page(server: LocalCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser in which a user with a hostile name is signed in."""
    with browser.opened(tmp_path_factory.mktemp("browser") / "profile") as opened:
        console.sign_up(opened, server, Person(f"{MARKUP} {EMOJI}"))
        yield opened


@pytest.fixture(scope="module")
def api(server: LocalCloud, page: Browser) -> Iterator[httpx.Client]:
    with console.api(page, server) as client:
        yield client


@pytest.fixture(scope="module")
def team(api: httpx.Client) -> str:
    """A team whose members, keys and builds have hostile names."""
    slug = "w" * 48
    made = console.sent(api, "/v1/teams", {"name": LONG, "slug": slug})
    for name in (MARKUP, EMOJI, "w" * 32):
        key = console.sent(api, "/api/auth/api-key/create", {"name": name[:32], "teamId": made["id"]})
        headers = {"authorization": f"Bearer {key['key']}", "x-artifact-client-ci": MARKUP}
        event = {"sessionId": str(uuid.uuid4()), "source": "REMOTE", "hash": "abc", "event": "HIT", "duration": 5}
        assert api.put(f"/v8/artifacts/{'a' * 64}", content=b"x", headers=headers).status_code == 202
        assert api.post("/v8/artifacts/events", json=[event], headers=headers).status_code == 200
        api.post("/v1/runs", json=hostile_run(), headers=headers).raise_for_status()
    rule = {"provider": "github", "repository": f"acme/{LONG}", "name": MARKUP, "protect": False}
    console.sent(api, f"/v1/teams/{slug}/rules", rule)
    console.sent(api, f"/v2/teams/{slug}/members", {"email": f"{'x' * 60}@acme.example", "role": "VIEWER"})
    return slug


CUT_CHOICES = """
const pen = document.createElement("canvas").getContext("2d");
const cut = [];
for (const select of document.querySelectorAll("[role=search] :is([name=scope], [name=hours], [name=order])")) {
    const style = getComputedStyle(select);
    pen.font = style.font;
    // Next to its text, a select has an arrow.
    const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 20;
    for (const { text, value } of select.options)
        if (!/^[cku].{20}/.test(value) && pen.measureText(text).width > room) cut.push(text);
}
return cut;
"""
"""The choices of the search that are wider than their fields, except for names."""

STOPS = """
const reachable = [...document.querySelectorAll(
    "a[href], button, select, input, textarea, summary, pre, svg[tabindex='0']"
)].filter((one) => one.tabIndex === 0 && one.checkVisibility({visibilityProperty: true}))
    .filter((one) => one.type !== "radio" || one.checked);
window.reached = new Set();
window.unseen = [];
addEventListener("focusin", ({target}) => {
    window.reached.add(target);
    const {outlineStyle, outlineWidth} = getComputedStyle(target);
    if (outlineStyle === "none" || outlineWidth === "0px") window.unseen.push(target.outerHTML.slice(0, 200));
});
window.missed = () => reachable.filter((one) => !window.reached.has(one)).map((one) => one.outerHTML.slice(0, 200));
return reachable.length;
"""

RUN_LINK = "document.querySelector('td a[href*=\"/run?id=\"]')"


def hostile_run() -> dict[str, Any]:
    now = round(time.time() * 1000)
    times = {"startTime": now - 5_000, "endTime": now, "exitCode": 1}
    task = {"task": LONG, "hash": "abc", "cache": {"status": "MISS"}, "execution": times}
    packages = (MARKUP, f"@{LONG}/{EMOJI}", "\u202etxt.exe")
    return {
        "id": "hostile",
        "execution": times,
        "scm": {"branch": MARKUP},
        "tasks": [{**task, "package": package} for package in packages],
    }


def chosen_looks(number: int) -> list[tuple[int, bool]]:
    """The looks in which something is checked: one of them, by its number, and with `make proofs` all."""
    return LOOKS if EVERY_LOOK else [LOOKS[number % len(LOOKS)]]


def problems_in(page: Browser, looks: Iterable[tuple[int, bool]]) -> list[Any]:
    """What axe-core finds in the page as it is, in each of the looks."""
    found: list[Any] = []
    for width, dark in looks:
        page.look(width=width, dark=dark)
        found.extend([width, dark, *problem] for problem in problems(page))
        if page.run(OVERFLOW) > 0:
            found.append([width, "is wider than the screen"])
    return found


def test_every_view_is_accessible_and_fits_every_screen(server: LocalCloud, page: Browser, team: str, axe: str) -> None:
    """`make proofs` checks every view in every look."""
    addresses = {f"/console/t/{team}{path}": (path, title) for path, title in VIEWS.items()}
    addresses |= {path: (path, title) for path, title in OTHERS.items()}
    found: list[Any] = []
    for number, (address, (path, title)) in enumerate(addresses.items()):
        page.look(width=WIDTHS[0])
        page.open(f"{server.url}{address}")
        page.wait_for_heading(title)
        page.wait_until("return document.querySelector('.loading') === null")
        for width in WIDTHS:
            page.look(width=width)
            if page.run(OVERFLOW) > 0:
                found.append([path, width, "is wider than the screen"])
        page.run(axe)
        checked = LOOKS if path in IN_EVERY_LOOK else chosen_looks(number)
        found.extend([path, *one] for one in problems_in(page, checked))
    assert found == []
    assert page.run("return window.pwned") is None
    assert page.errors() == []


def problems_of_dialog(page: Browser, button: str, looks: Sequence[tuple[int, bool]]) -> list[Any]:
    """What axe-core finds in the dialog that a button of the view opens. Escape must return the focus to the button."""
    width, dark = looks[0]
    page.look(width=width, dark=dark)
    page.wait_until(PRESS % json.dumps(button))
    page.wait_until(f"return {DIALOG} !== null")
    found = problems_in(page, looks)
    page.keys(Keys.ESCAPE)
    page.wait_until(f"return {DIALOG} === null")
    assert page.run("return document.activeElement.textContent.trim()") in (button, MENU)
    return found


@pytest.mark.thorough
def test_every_dialog_is_accessible_and_returns_the_focus(
    server: LocalCloud, page: Browser, team: str, axe: str
) -> None:
    numbers = itertools.count()
    for path, buttons in DIALOGS.items():
        page.look(width=WIDTHS[0])
        page.open(f"{server.url}/console/t/{team}{path}")
        page.wait_for_heading(VIEWS[path])
        page.wait_until("return document.querySelector('.loading') === null")
        page.run(axe)
        for button in buttons:
            assert problems_of_dialog(page, button, chosen_looks(next(numbers))) == [], (path, button)
    page.open(f"{server.url}/console/account")
    page.wait_for_heading("Your account")
    page.run(axe)
    assert problems_of_dialog(page, "Delete your account", chosen_looks(next(numbers))) == []
    assert page.errors() == []


def test_hostile_names_are_text(server: LocalCloud, page: Browser, team: str, axe: str) -> None:
    page.look(width=1280)
    for path in ("", "/artifacts", "/keys", "/members", "/runs", "/protection"):
        page.open(f"{server.url}/console/t/{team}{path}")
        page.wait_for_heading(VIEWS[path])
        page.wait_for_text("IMG SRC" if path == "" else MARKUP)
    page.open(f"{server.url}/console/t/{team}/runs")
    page.wait_for_heading("Runs")
    page.wait_until(f"return {RUN_LINK} !== null")
    page.run(f"{RUN_LINK}.click()")
    page.wait_for_heading("Run")
    page.wait_for_text(f"{MARKUP}#{LONG[:20]}")
    page.run(axe)
    assert problems_in(page, chosen_looks(0)) == []
    assert page.run("return document.querySelectorAll('img').length") == 0
    assert page.run("return window.pwned") is None
    assert page.errors() == []


PAGES = {
    "a run": ("/runs", "/run?", "Why tasks missed"),
    "a task": ("/runs", "/task?", "Its hashes"),
    "a key": ("/keys", "/key?", "Newest artifacts"),
    "a rule": ("/protection", "/rule?", "Newest artifacts"),
}
"""The view with a link to each page, what the link has in its address, and a text of the page."""


@pytest.mark.parametrize(
    "name", [name if name == "a rule" else pytest.param(name, marks=pytest.mark.thorough) for name in PAGES]
)
def test_the_page_of_one_thing_is_accessible(
    server: LocalCloud, page: Browser, team: str, axe: str, pictures: Path, name: str
) -> None:
    view, address, text = PAGES[name]
    link = f"document.querySelector('td a[href*=\"{address}\"]')"
    page.look(width=1280)
    page.open(f"{server.url}/console/t/{team}{view}")
    page.wait_until(f"return {link} !== null")
    page.run(f"{link}.click()")
    page.wait_for_text(text)
    page.wait_until("return document.querySelector('.loading') === null")
    # Screen readers read the heading of the new page.
    assert page.run("return document.activeElement.tagName") == "H1"
    page.open(page.url)
    page.wait_for_text(text)
    page.wait_until("return document.querySelector('.loading') === null")
    page.tab(page.run(STOPS) + 2)
    assert page.run("return window.missed()") == []
    assert page.run("return window.unseen") == []
    # Some versions of Chromium end at the link that skips to the content, which then covers other things.
    page.run("document.activeElement.blur()")
    page.run(axe)
    assert problems_in(page, LOOKS) == []
    (pictures / f"{name.replace(' ', '-')}.png").write_bytes(page.picture())
    assert page.run("return window.pwned") is None
    assert page.errors() == []


def test_a_menu_is_accessible_and_gives_the_focus_back(server: LocalCloud, page: Browser, team: str, axe: str) -> None:
    page.look(width=390)
    page.open(f"{server.url}/console/t/{team}/keys")
    page.wait_for_heading("Keys")
    page.wait_until("return document.querySelector('td .menu') !== null")
    page.run("document.querySelector('td .menu').focus()")
    page.keys(Keys.ENTER)
    page.wait_until("return document.activeElement.closest(':popover-open') !== null")
    page.run(axe)
    assert problems_in(page, chosen_looks(2)) == []
    inside = (
        "const box = document.querySelector(':popover-open').getBoundingClientRect();"
        "return box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight"
    )
    assert page.run(inside)
    page.keys(Keys.ESCAPE)
    assert page.run("return document.activeElement.classList.contains('menu')")
    assert page.run("return document.querySelector(':popover-open')") is None
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
    server: LocalCloud,
    page: Browser,
    team: str,
    pictures: Path,
    axe: str,
    status: int,
    reply: dict[str, Any],
    text: str,
) -> None:
    figures = dict.fromkeys(
        (
            "events", "hits", "localHits", "remoteHits", "remoteMisses", "timeSavedMs", "untimedHits", "uploads",
            "uploadedBytes",
        ),
        0,
    )  # fmt: skip
    usage = {
        "status": "enabled",
        "block": None,
        "blockReason": None,
        "storedBytes": 0,
        "artifacts": 1,
        "quotaBytes": 100,
        "total": figures,
        "ci": [],
        "days": [{"day": f"2026-11-{day:02}", **figures, "storedBytes": day, "artifacts": 1} for day in range(1, 31)],
    }
    body = json.dumps(usage | reply if status == 200 else reply)
    with page.before_each_page(REPLIES % (status, json.dumps(body), status)):
        page.open(f"{server.url}/console/t/{team}")
        page.wait_for_text(text)
    name = "-".join([str(status), *sorted(set(reply) - {"message", "blockReason"})])
    (pictures / f"{name}.png").write_bytes(page.picture())
    page.run(axe)
    assert problems_in(page, chosen_looks(status)) == []
    assert page.errors() == []


@pytest.mark.thorough
def test_forced_colors_and_less_motion(server: LocalCloud, page: Browser, team: str, axe: str) -> None:
    page.look(width=1280, forced_colors="active", prefers_reduced_motion="reduce")
    page.open(f"{server.url}/console/t/{team}")
    page.wait_until("return document.querySelector('.chart rect') !== null")
    page.run(axe)
    assert problems(page) == []
    # The parts of a bar differ, and the current view is marked.
    kinds = "['local', 'remote', 'built']"
    colors = f"{kinds}.map((kind) => getComputedStyle(document.querySelector(`.legend .${{kind}}`)).backgroundColor)"
    assert page.run(f"return new Set({colors}).size") == 3
    assert page.run(
        "const one = (name) => getComputedStyle(document.querySelector(name)).borderBottomColor;"
        "return one('.tabs [aria-current]') !== one('.tabs a:not([aria-current])')"
    )
    moving = "document.getAnimations().filter((one) => one.effect.getTiming().duration > 0).length"
    assert page.run(f"return {moving}") == 0
    smooth = "[...document.querySelectorAll('*')].map((one) => getComputedStyle(one))"
    smooth += ".filter((style) => parseFloat(style.transitionDuration) > 0 || style.scrollBehavior === 'smooth')"
    assert page.run(f"return {smooth}.length") == 0


NO_SESSION = """
const real = window.fetch;
window.fetch = (path, init) =>
    /\\/(console|get-session)$/.test(path) ? Promise.resolve(new Response("null")) : real(path, init);
"""


@pytest.mark.thorough
def test_the_tab_key_reaches_everything_and_shows_the_focus(server: LocalCloud, page: Browser, team: str) -> None:
    page.look(width=1280)
    for path, title in ({f"/console/t/{team}{path}": one for path, one in VIEWS.items()} | OTHERS).items():
        page.open(f"{server.url}{path}")
        page.wait_for_heading(title)
        page.wait_until("return document.querySelector('.loading') === null")
        page.tab(page.run(STOPS) + 2)
        assert page.run("return window.missed()") == [], path
        assert page.run("return window.unseen") == [], path


def test_a_refused_form_is_accessible(server: LocalCloud, page: Browser, axe: str) -> None:
    page.look(width=390)
    page.open(f"{server.url}/console/new-team")
    page.wait_for_heading("Create a team")
    page.type("Name", "A team")
    page.type("Slug", "not a slug", Keys.ENTER)
    page.wait_until("return document.activeElement.getAttribute('aria-invalid') === 'true'")
    assert page.run("return document.activeElement.name") == "slug"
    page.run(axe)
    assert problems_in(page, chosen_looks(1)) == []


@pytest.mark.thorough
def test_a_team_is_run_by_keyboard_alone(server: LocalCloud, page: Browser, api: httpx.Client) -> None:
    slug = f"keyboard-{secrets.token_hex(4)}"
    page.look(width=1280)
    page.open(f"{server.url}/console/new-team")
    page.wait_for_heading("Create a team")
    page.tab()
    assert page.run("return document.activeElement.textContent") == "Skip to the content"

    def enter(name: str, *typed: str) -> None:
        page.tab_to(name)
        page.keys(*typed, Keys.ENTER)

    def show(view: str) -> None:
        enter(view)
        page.wait_for_heading(view)
        # Screen readers read the heading of the new view.
        assert page.run("return document.activeElement.tagName") == "H1"

    page.tab_to("Name")
    page.keys("Keyboard")
    enter("Slug", Keys.CONTROL + "a" + Keys.NULL, slug)
    page.wait_for_heading("Get started")

    show("Keys")
    enter("Create a key")
    page.wait_until("return document.activeElement.name === 'name'")
    page.keys("ci", Keys.ENTER)
    page.wait_for_text("Copy it now.")
    page.tab_to("I have stored the key")
    page.keys(Keys.SPACE)
    enter("Close")
    page.wait_until("return document.querySelector('dialog') === null")
    enter("Actions: ci")
    enter("Delete")
    page.wait_for_text("Delete the key?")
    enter("Delete the key")
    page.wait_for_text("No keys yet")

    show("Members")
    enter("Email address", "grace@acme.example")
    page.wait_for_text("Open invitations")
    enter("Withdraw the invitation of grace@acme.example")
    page.wait_until("return !document.body.innerText.includes('Open invitations')")

    for hash in ("aa11", "bb22"):
        stored = api.put(f"/v8/artifacts/{hash}", params={"slug": slug}, content=b"x")
        assert stored.status_code == 202, stored.text
    show("Artifacts")
    enter("Find", "aa")
    page.wait_until("return document.querySelectorAll('tbody tr').length === 1")
    enter("Actions: aa11")
    # The first action has the focus.
    page.keys(Keys.ENTER)
    page.wait_for_text("Uncommitted changes")
    page.keys(Keys.ESCAPE)
    assert page.run("return document.activeElement.getAttribute('aria-label')") == "Actions: aa11"
    page.keys(Keys.ENTER)
    enter("Delete")
    page.wait_for_text("Delete the artifact?")
    enter("Delete the artifact")
    page.wait_for_text("No such artifacts")

    show("Protection")
    page.wait_for_text("Not protected")
    enter("Add a rule")
    enter("Repository", "acme/web")
    page.wait_for_text("the team is protected")
    assert "larder.pyz run" in page.text()
    enter("Close")
    page.wait_for_text("Only trusted jobs and keys write what everyone reads.")
    enter("Turn protection off")
    enter(f"Type {slug} to confirm", slug)
    page.wait_for_text("Not protected")

    show("Settings")
    enter("Delete the team")
    enter(f"Type {slug} to confirm", slug)
    page.wait_until(f"return !location.pathname.includes('{slug}')")

    page.open(f"{server.url}/console/account")
    page.wait_for_heading("Your account")
    page.wait_for_text("this one")
    enter("Name", Keys.CONTROL + "a" + Keys.NULL, MARKUP)
    page.wait_for_text("Saved.")
    enter("Sign out everywhere else")
    page.wait_for_text("All other sessions are ended.")
    assert page.errors() == []


@pytest.mark.thorough
def test_rules_caches_and_contested_artifacts(server: LocalCloud, page: Browser, api: httpx.Client, axe: str) -> None:
    slug = f"trust-{secrets.token_hex(4)}"
    owner = "owner@acme.example"
    server.larder("users", "create", "--email", owner, "--name", "Owner")
    made = server.larder("teams", "create", "--name", "Trust", "--slug", slug, "--owner", owner)
    user = json.loads(page.fetch("/api/auth/console").text)["user"]
    server.larder("teams", "add-member", slug, user["email"], "--role", "ADMIN")
    rule = {"provider": "github", "repository": "acme/web", "protect": False}
    rule["pinned"] = {"repository_id": "1", "repository_owner_id": "2"}
    console.sent(api, f"/v1/teams/{slug}/rules", rule)
    seed.artifacts(server, made["id"], 3, [("a" * 32, user["id"])])
    table = server.table("LARDER_ARTIFACTS_TABLE")
    first = next(
        item
        for item in server.items("LARDER_ARTIFACTS_TABLE")
        if owner_of(item["owner"]) == made["id"] and "upload_id" in item
    )
    table.put_item(
        Item=first | {"contested_at": first["created_at"], "contested_by": "b" * 32, "contested_sha256": "c"}
    )
    own_cache = f"{first['hash']}.u{user['id']}"
    now = round(time.time() * 1000)
    table.put_item(Item=first | {"hash": own_cache, "size_bytes": 5_000, "created_at": now})
    table.put_item(
        Item={
            "owner": made["id"],
            "hash": f"#scope#u{user['id']}",
            "user_id": user["id"],
            "last_upload_at": now,
            "size_bytes": 5_000,
            "artifacts": 1,
            "counted_at": now,
        }
    )

    page.look(width=1280)
    second = console.sent(api, f"/v1/teams/{slug}/rules", {**rule, "lifetimeSeconds": 600})
    page.open(f"{server.url}/console/t/{slug}/protection")
    page.wait_for_text("More than one rule accepts the same jobs: web, web.")
    assert api.delete(f"/v1/teams/{slug}/rules/{second['id']}").status_code == 200
    page.open(f"{server.url}/console/t/{slug}/protection")
    page.wait_for_text("Not protected")
    page.wait_for_text("Test a job")
    assert "More than one rule" not in page.text()
    page.press("Test a job")
    claims = {"iss": "https://token.actions.githubusercontent.com", "aud": server.url}
    claims |= {"repository": "acme/web", "repository_id": "1", "repository_owner_id": "2"}
    claims |= {"ref": "refs/heads/feature", "event_name": "push"}
    page.type("Claims of its id token, as JSON", "no JSON", Keys.TAB)
    page.press("Test")
    page.wait_for_text("Paste a JSON object.")
    page.type("Claims of its id token, as JSON", json.dumps(claims))
    page.press("Test")
    page.wait_for_text("ref is refs/heads/feature, not refs/heads/main")
    page.keys(Keys.ESCAPE)

    page.press("Add a rule")
    page.type("Repository", "acme/web")
    page.press("Add the rule")
    page.wait_for_text("does the same for the same jobs. Change or delete that rule instead.")
    page.keys(Keys.ESCAPE)

    console.act(page, "Change")
    page.wait_for_text("repository_id=1, repository_owner_id=2")
    page.type("Trusted branches", "main, release/1")
    page.choose("The rule is", "Off")
    page.choose("Other jobs, such as pull requests, get", "No token")
    page.run("document.querySelector('dialog summary').click()")
    page.type("Claims of trusted jobs", "environment=production")
    page.run("document.querySelector('dialog [type=submit]').click()")
    page.wait_for_text("Saved. The tokens that it has given are ended.")
    page.wait_for_text("main, release/1")
    (rule,) = api.get(f"/v1/teams/{slug}/rules").json()["rules"]
    assert (rule["enabled"], rule["others"]) == (False, "refuse")
    assert rule["trusted"]["refs"] == ["refs/heads/main", "refs/heads/release/1"]
    assert rule["trusted"]["claims"] == {"environment": ["production"]}
    console.act(page, "Delete")
    page.press("Delete the rule")
    page.wait_for_text("No rules yet")

    page.press("Check the artifacts")
    page.wait_for_text("3 artifacts checked.")
    assert first["hash"] in page.text()
    page.press("Artifacts")
    page.wait_for_heading("Artifacts")
    page.choose("Cache", "All")
    page.run("document.querySelector('main [type=submit]').click()")
    page.wait_until("return document.querySelectorAll('tbody tr').length === 4")
    page.wait_for_text("5 kB")
    page.choose("Cache", f"User {user['email']}")
    page.run("document.querySelector('main [type=submit]').click()")
    page.wait_until("return document.querySelectorAll('tbody tr').length === 1")
    page.press("Protection")
    page.wait_for_text(f"User {user['email']}")
    page.run(f"document.querySelector('[aria-label=\"Delete the cache u{user['id']}\"]').click()")
    page.press("Delete the cache")
    page.wait_for_text("The cache is being deleted.")
    page.press("Members")
    page.wait_for_text("Leave")
    page.run(axe)
    assert problems_of_dialog(page, "Leave", LOOKS[:1]) == []
    page.press("Protection")
    page.wait_for_text("Not protected")

    # An admin can protect the team, and only owners can change it after that.
    page.press("Protect the team")
    page.run("document.querySelector('dialog [type=submit]').click()")
    page.wait_for_text("Only owners can turn protection off.")
    page.press("Overview")
    page.wait_for_text("with what is hidden since protection")
    page.run("document.querySelector('.figures a').click()")
    page.wait_for_heading("Artifacts")
    page.wait_until("return document.querySelectorAll('tbody tr .warn').length === 3")
    assert page.run("return document.querySelector('[name=scope]').value") == "hidden"
    assert page.errors() == []


@pytest.mark.thorough
def test_names_stand_in_place_of_ids(server: LocalCloud, page: Browser, api: httpx.Client) -> None:
    slug = f"names-{secrets.token_hex(4)}"
    made = console.sent(api, "/v1/teams", {"name": "Names", "slug": slug})
    rules = f"/v1/teams/{slug}/rules"
    rule = {"provider": "github", "repository": "acme/web", "name": "main-of-web", "protect": False}
    id = console.sent(api, rules, rule)["id"]
    seed.artifacts(server, made["id"], 1, [("a" * 32, id)])
    table = server.table("LARDER_ARTIFACTS_TABLE")
    (first,) = (
        item
        for item in server.items("LARDER_ARTIFACTS_TABLE")
        if owner_of(item["owner"]) == made["id"] and "upload_id" in item
    )
    now = round(time.time() * 1000)
    first |= {"created_at": now, "uploaded_at": now, "duration_ms": 77_400, "ci": "GITHUB_ACTIONS"}
    table.put_item(Item=first)
    scope = "c" + "a" * 26
    table.put_item(Item=first | {"hash": f"{first['hash']}.{scope}", "writer": "b" * 32})
    for key, ref in (("a" * 32, "refs/heads/main"), ("b" * 32, "refs/pull/7/merge")):
        seed.job(server, made["id"], id, key, ref)
    table.put_item(
        Item={
            "owner": made["id"],
            "hash": f"#scope#{scope}",
            "name": "acme/web pull_request refs/pull/7/merge",
            "user_id": id,
            "last_upload_at": now,
        }
    )

    page.look(width=1280)
    page.open(f"{server.url}/console/t/{slug}/artifacts")
    page.wait_for_text("main-of-web")
    page.wait_for_text("1 min 17 s")
    # The search is one line, with all its fields.
    tops = "[...document.querySelectorAll('form[role=search] :is(input, select, [type=submit])')]"
    tops += ".map((one) => Math.round(one.getBoundingClientRect().top))"
    page.wait_until(f"return {tops}.length === 8")
    assert page.run(f"return Math.max(...{tops}) - Math.min(...{tops})") < 10
    assert page.run(CUT_CHOICES) == []
    page.wait_for_text("main-of-web on main")
    page.choose("Written by", "main-of-web")
    page.choose("Cache", "CI job acme/web PR\u00a07")
    page.run("document.querySelector('main [type=submit]').click()")
    page.wait_until("return document.querySelectorAll('td').length === 9")
    page.wait_for_text("acme/web PR 7")
    console.act(page, "Details", row=1)
    page.wait_until(f"return {DIALOG}?.innerText.includes('main-of-web on PR\u00a07')")
    assert "https://ci.acme.example/refs/pull/7/merge" in page.run(f"return {DIALOG}.querySelector('a[rel]').href")
    kept = page.run("return location.search")
    assert "scope=" in kept
    # The writer leads to all that it has stored, which the filter then shows.
    page.run(f"{DIALOG}.querySelector('a[href^=\"/console\"]').click()")
    page.wait_until(
        "return document.querySelector('[name=writer]').selectedOptions[0].text"
        ".startsWith('main-of-web on PR\u00a07, ')"
    )
    page.wait_until("return document.querySelectorAll('tbody tr').length === 1")
    assert page.run("return document.querySelector('[name=scope]').value") == "all"
    page.run("history.back()")
    # The address has kept the filter from before.
    page.wait_until(f"return location.search === {json.dumps(kept)}")
    page.wait_until("return document.querySelectorAll('td').length === 9")
    page.wait_for_text("acme/web PR 7")

    # Pages of no team keep the tabs of the last one.
    for path, heading in (("account", "Your account"), ("new-team", "Create a team")):
        page.run(
            f"const link = document.createElement('a'); link.href = '/console/{path}';"
            "document.body.append(link); link.click(); link.remove();"
        )
        page.wait_for_heading(heading)
        assert page.run("return document.querySelector('[aria-label=Cache]').value") == (f"/console/t/{slug}")
        assert "Protection" in page.run("return document.querySelector('nav').innerText")
        assert page.run("return document.querySelector('nav [aria-current]')") is None

    # Adding a rule says so, and rules that differ only in the issuer look different.
    page.press("Protection")
    page.wait_for_heading("Protection")
    page.press("Add a rule")
    page.choose("CI", "GitLab CI")
    page.type("Repository", "acme/web")
    page.press("Add the rule")
    page.wait_for_text("The rule is added")
    page.press("Close")
    table = server.table("LARDER_TEAMS_TABLE")
    (stored,) = (item for item in server.items("LARDER_TEAMS_TABLE") if item["sk"].endswith(id))
    other = id[:-4] + "0000"
    table.put_item(Item=stored | {"sk": stored["sk"].replace(id, other), "issuer": "https://github.acme.example"})
    page.press("Overview")
    page.press("Protection")
    page.wait_for_text("https://github.acme.example")
    assert "https://token.actions" not in page.text()
    assert page.errors() == []


DRAWN = """
const real = window.fetch;
window.drawing = {};
window.fetch = async (...sent) => {
    const reply = await real(...sent);
    if (!window.drawing.at) window.drawing.replied = performance.now();
    return reply;
};
(function look() {
    if (document.querySelectorAll(".chart rect").length && !document.querySelector(".loading"))
        window.drawing.at ??= performance.now();
    else requestAnimationFrame(look);
})();
"""


@pytest.fixture(scope="module")
def large_team(server: LocalCloud, api: httpx.Client) -> str:
    """A team with a year of usage and many artifacts: 300, or as `make console-proof` sets it."""
    slug = f"year-{secrets.token_hex(4)}"
    made = console.sent(api, "/v1/teams", {"name": "Year", "slug": slug})
    seed.usage(server, made["id"], 365)
    seed.artifacts(server, made["id"], ARTIFACTS, [("a" * 32, "b" * 32)])
    return slug


def test_a_year_of_data_is_drawn_within_a_second(server: LocalCloud, page: Browser, large_team: str) -> None:
    page.look(width=1280)
    with page.before_each_page(DRAWN):
        page.open(f"{server.url}/console/t/{large_team}")
        page.wait_until("return window.drawing.at > 0")
        drawn_ms = page.run("return window.drawing.at - window.drawing.replied")
        # The document has style and script, and one request for data comes before the figures.
        requests = "performance.getEntriesByType('resource').map((one) => [one.initiatorType, one.name])"
        sent_for = [name.removeprefix(server.url) for _, name in page.run(f"return {requests}")]
        assert {kind for kind, _ in page.run(f"return {requests}")} == {"fetch"}
        assert sent_for[0] == "/api/auth/console"
        assert sent_for[1].startswith("/v1/usage?")
        (size,) = page.run("return performance.getEntriesByType('navigation').map((one) => one.transferSize)")
    print(f"overview of {ARTIFACTS} artifacts: drawn {drawn_ms:.0f} ms after the last reply")
    print(f"first view: {size} bytes")
    assert drawn_ms < 1_000
    assert size <= 45_000
    page.open(f"{server.url}/console/t/{large_team}/artifacts")
    page.wait_for_heading("Artifacts")
    page.wait_until("return document.querySelector('td') !== null")
    for _ in range(5):
        before = json.dumps(page.run("return document.querySelector('td').textContent"))
        page.press("More")
        page.wait_until(f"return (document.querySelector('td')?.textContent ?? {before}) !== {before}")


SHIFTS = """
const real = window.fetch;
let sent = 0;
window.fetch = async (...asked) => {
    const late = 60 * ++sent;
    const reply = await real(...asked);
    await new Promise((done) => setTimeout(done, late));
    return reply;
};
// The console shows a view after some seconds, whatever has not loaded by then. Here, it never does that.
const now = Date.now();
Date.now = () => now;
window.shifts = [];
new PerformanceObserver((list) => {
    for (const one of list.getEntries())
        if (!one.hadRecentInput)
            window.shifts.push([one.value, one.sources.map(({node}) => node?.outerHTML?.slice(0, 80))]);
}).observe({type: "layout-shift", buffered: true});
"""
"""Counts what moves while a page loads. Each reply comes later than the one before, so that every step is drawn."""
MOST_SHIFT = 0.05
INVITED_AS = "document.querySelector('select[name=role]')"


@pytest.fixture(scope="module")
def seeded_team(server: LocalCloud, page: Browser) -> str:
    """A team with runs that have causes, rules, several keys and artifacts that runs name."""
    slug = f"seeded-{secrets.token_hex(4)}"
    seed.team(server, json.loads(page.fetch("/api/auth/console").text)["user"]["email"], slug)
    return slug


def test_nothing_jumps_while_a_view_loads(server: LocalCloud, page: Browser, seeded_team: str) -> None:
    """The cumulative layout shift. Browsers call a page with up to 0.1 good."""
    jumping = {}
    with page.before_each_page(SHIFTS):
        for width, path in itertools.product((1280, 390), VIEWS):
            page.look(width=width)
            page.open(f"{server.url}/console/t/{seeded_team}{path}")
            page.wait_for_heading(VIEWS[path])
            page.wait_until("return document.querySelector('.loading') === null")
            # What moves late is counted, too.
            time.sleep(0.5)
            shifts = page.run("return window.shifts")
            if sum(value for value, _ in shifts) >= MOST_SHIFT:
                jumping[width, path] = shifts
    assert jumping == {}


NO_STORAGE = """
const real = window.fetch;
window.fetch = (path, init) => (String(path).startsWith("/v1/storage") ? new Promise(() => {}) : real(path, init));
"""


def test_a_slow_reply_does_not_hide_the_others(server: LocalCloud, page: Browser, seeded_team: str) -> None:
    with page.before_each_page(NO_STORAGE):
        page.open(f"{server.url}/console/t/{seeded_team}")
        page.wait_for_heading("Overview")
        page.wait_for_text("Time saved")
        assert page.run("return document.querySelector('main .card .loading') !== null")


def test_roles_are_explained_where_people_choose_them(server: LocalCloud, page: Browser, seeded_team: str) -> None:
    page.look(width=1280)
    page.open(f"{server.url}/console/t/{seeded_team}/members")
    page.wait_for_text("Invite a member")
    for role, words in ROLE_WORDS.items():
        page.run(f"{INVITED_AS}.value = '{role}'; {INVITED_AS}.dispatchEvent(new Event('change', {{bubbles: true}}))")
        page.wait_until(f"return {INVITED_AS}.parentElement.textContent.includes({json.dumps(words)})")
        assert words in page.text().partition("Joined")[2]
    choices = (
        "return [...document.querySelectorAll('select[aria-label=\"Role of %s\"] option')].map((one) => one.value)"
    )
    assert page.run(choices % "Grace Hopper") == [*ROLE_WORDS]
    # One who has the other name of a role keeps it.
    assert page.run(choices % "Alan Turing") == ["OWNER", "ADMIN", "MEMBER", "DEVELOPER", "VIEWER"]


@pytest.mark.parametrize("order", ["hash", "uploaded"])
def test_the_lists_page_through_everything_without_slowing(api: httpx.Client, large_team: str, order: str) -> None:
    """`make console-proof` has 100,000 artifacts, and compares the time of the first pages and the last ones."""
    seconds, found, cursor = list[float](), set[str](), ""
    while True:
        began = time.monotonic()
        query = f"slug={large_team}&order={order}&limit=100{cursor}"
        reply = api.get(f"/v1/artifacts?{query}").json()
        seconds.append(time.monotonic() - began)
        found |= {artifact["hash"] for artifact in reply["artifacts"]}
        if reply["pagination"]["next"] is None:
            break
        cursor = f"&cursor={reply['pagination']['next']}"
    assert len(found) == ARTIFACTS
    if len(seconds) >= 500:
        first, last = (sorted(some)[len(some) // 2] for some in (seconds[5:105], seconds[-100:]))
        print(f"pages by {order}: {first * 1000:.1f} ms first, {last * 1000:.1f} ms last")
        assert last < 1.5 * first + 0.01


def test_an_ended_session_and_an_empty_cache(server: LocalCloud, page: Browser, pictures: Path) -> None:
    page.look(width=1280)
    page.open(f"{server.url}/console/me")
    page.wait_for_heading("Get started")
    (pictures / "empty.png").write_bytes(page.picture())
    with page.before_each_page(NO_SESSION):
        page.open(f"{server.url}/console/me")
        page.wait_for_heading("Sign in")
        assert page.run("return location.search") == "?next=%2Fconsole%2Fme"
        (pictures / "ended-session.png").write_bytes(page.picture())
    assert page.errors() == []


def test_the_libraries_are_bundled_as_make_does(request: pytest.FixtureRequest) -> None:
    packages = vendor_console.install(request.config.rootpath / ".tools" / "console-test")
    assert vendor_console.bundle(packages) == vendor_console.TARGET.read_text()
