"""Every view of the console with hostile names and in each state: accessibility, layout, and the content policy."""

from __future__ import annotations

import json
import os
import secrets
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from selenium.webdriver.common.keys import Keys

from tools import vendor_console

from . import browser, console, node, seed
from .browser import Browser
from .cloud import LocalCloud
from .console import Person

pytestmark = pytest.mark.e2e

ARTIFACTS = int(os.environ.get("CONSOLE_ARTIFACTS", "300"))
MARKUP = "<img src=x onerror=pwned=1>"
LONG = "W" * 48
EMOJI = "\U0001f9ea" * 30
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
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
LOOKS = [(width, dark) for width in (1280, 390, 320) for dark in (False, True)]
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
def pictures(request: pytest.FixtureRequest) -> Path:
    """A folder for pictures of the states, for people to look at: `.pytest_cache/d/console-states`."""
    return request.config.cache.mkdir("console-states")


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
            client.post("/v1/runs", json=hostile_run()).raise_for_status()
    server.larder(
        *("trust", "add", slug, "--github", f"acme/{LONG}", "--name", MARKUP, "--no-protect")
    )
    return slug


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
        for width, dark in LOOKS:
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
    for path in ("", "/artifacts", "/keys", "/members", "/runs", "/protection"):
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
    server: LocalCloud,
    page: Browser,
    team: str,
    pictures: Path,
    status: int,
    reply: dict[str, Any],
    text: str,
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
    name = "-".join([str(status), *sorted(set(reply) - {"message", "blockReason"})])
    (pictures / f"{name}.png").write_bytes(page.picture())
    assert page.errors() == []


def test_forced_colors_and_less_motion(
    server: LocalCloud, page: Browser, team: str, axe: str
) -> None:
    page.look(width=1280, forced_colors="active", prefers_reduced_motion="reduce")
    page.open(f"{server.url}/console/t/{team}")
    page.wait_until("return document.querySelector('.chart rect') !== null")
    page.run(axe)
    assert page.run_async(CHECK, TAGS) == []
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
    path === "/api/auth/get-session" ? Promise.resolve(new Response("null")) : real(path, init);
"""
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


def test_the_tab_key_reaches_everything_and_shows_the_focus(
    server: LocalCloud, page: Browser, team: str
) -> None:
    page.look(width=1280)
    for path, title in (
        {f"/console/t/{team}{path}": one for path, one in VIEWS.items()} | OTHERS
    ).items():
        page.open(f"{server.url}{path}")
        page.wait_for_heading(title)
        page.wait_until("return document.querySelector('.loading') === null")
        page.tab(page.run(STOPS) + 2)
        assert page.run("return window.missed()") == [], path
        assert page.run("return window.unseen") == [], path


def test_a_team_is_run_by_keyboard_alone(
    server: LocalCloud, page: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    slug = f"keyboard-{secrets.token_hex(4)}"
    page.look(width=1280)
    page.open(f"{server.url}/console/new-team")
    page.wait_for_heading("Create a team")
    page.tab()
    assert page.run("return document.activeElement.textContent") == "Skip to the content"
    page.tab_to("Name")
    page.keys("Keyboard")
    page.tab_to("Slug")
    page.keys(Keys.CONTROL + "a")
    page.keys(slug, Keys.ENTER)
    page.wait_for_heading("Get started")

    page.tab_to("Keys")
    page.keys(Keys.ENTER)
    page.wait_for_heading("Keys")
    page.tab_to("Create a key")
    page.keys(Keys.ENTER)
    page.wait_until("return document.activeElement.name === 'name'")
    page.keys("ci", Keys.ENTER)
    page.wait_for_text("Copy it now.")
    page.tab_to("I have stored the key")
    page.keys(Keys.SPACE)
    page.tab_to("Close")
    page.keys(Keys.ENTER)
    page.wait_until("return document.querySelector('dialog') === null")
    page.tab_to("Delete ci")
    page.keys(Keys.ENTER)
    page.wait_for_text("Delete the key?")
    page.tab_to("Delete the key")
    page.keys(Keys.ENTER)
    page.wait_for_text("No keys yet")

    page.tab_to("Protection")
    page.keys(Keys.ENTER)
    page.wait_for_heading("Protection")
    page.wait_for_text("Not protected")
    page.tab_to("Add a rule")
    page.keys(Keys.ENTER)
    page.tab_to("Repository")
    page.keys("acme/web", Keys.ENTER)
    page.wait_for_text("the team is protected")
    assert "\n  - uses: ./.github/larder/github\n    with: {api: " in page.text()
    page.tab_to("Close")
    page.keys(Keys.ENTER)
    page.wait_for_text("Only trusted jobs and keys write what everyone reads.")
    page.tab_to("Turn protection off")
    page.keys(Keys.ENTER)
    page.tab_to(f"Type {slug} to confirm")
    page.keys(slug, Keys.ENTER)
    page.wait_for_text("Not protected")

    page.tab_to("Settings")
    page.keys(Keys.ENTER)
    page.wait_for_heading("Settings")
    page.tab_to("Delete the team")
    page.keys(Keys.ENTER)
    page.tab_to(f"Type {slug} to confirm")
    page.keys(slug, Keys.ENTER)
    page.wait_until(f"return !location.pathname.includes('{slug}')")
    assert page.errors() == []


def test_rules_caches_and_contested_artifacts(server: LocalCloud, page: Browser) -> None:
    slug = f"trust-{secrets.token_hex(4)}"
    made = server.larder(
        "teams", "create", "--name", "Trust", "--slug", slug, "--owner", "owner@acme.example"
    )
    session = json.loads(page.fetch("/api/auth/get-session").text)
    user = session["user"]
    server.larder("teams", "add-member", slug, user["email"], "--role", "ADMIN")
    server.larder("trust", "add", slug, "--github", "acme/web", "--no-protect")
    seed.artifacts(server, made["id"], 3, [("a" * 32, user["id"])])
    table = server.table("LARDER_ARTIFACTS_TABLE")
    first = next(
        one
        for one in server.items("LARDER_ARTIFACTS_TABLE")
        if one["owner"] == made["id"] and "upload_id" in one
    )
    table.put_item(
        Item=first
        | {"contested_at": first["created_at"], "contested_by": "b" * 32, "contested_sha256": "c"}
    )
    own_cache = f"{first['hash']}.u{user['id']}"
    now = round(time.time() * 1000)
    table.put_item(Item=first | {"hash": own_cache, "size_bytes": 5_000, "created_at": now})

    page.look(width=1280)
    page.open(f"{server.url}/console/t/{slug}/protection")
    page.wait_for_text("Not protected")
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

    page.press("Change")
    page.type("Trusted branches", "main, release/1")
    page.choose("The rule is", "Off")
    page.choose("Other jobs, such as pull requests, get", "No token")
    page.run("document.querySelector('dialog summary').click()")
    page.type("Claims of trusted jobs", "environment=production")
    page.run("document.querySelector('dialog [type=submit]').click()")
    page.wait_for_text("Saved. The tokens that it has given are ended.")
    page.wait_for_text("main, release/1")
    (rule,) = server.larder("trust", "list", slug)
    assert (rule["state"], rule["others"]) == ("disabled", "refuse")
    assert rule["refs"] == ["refs/heads/main", "refs/heads/release/1"]
    assert rule["claims"] == {"environment": ["production"]}
    page.press("Delete")
    page.press("Delete the rule")
    page.wait_for_text("No rules yet")

    page.press("Check the artifacts")
    page.wait_for_text("4 artifacts checked.")
    assert first["hash"] in page.text()
    page.run(f"document.querySelector('[aria-label=\"Delete the cache u{user['id']}\"]').click()")
    page.press("Delete the cache")
    page.wait_for_text("3 artifacts checked.")

    # An admin can protect the team, and only owners can change it after that.
    page.press("Protect the team")
    page.run("document.querySelector('dialog [type=submit]').click()")
    page.wait_for_text("Only owners can turn protection off.")
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


def test_a_year_of_data_is_drawn_within_a_second(server: LocalCloud, page: Browser) -> None:
    slug = f"year-{secrets.token_hex(4)}"
    made = server.larder(
        "teams", "create", "--name", "Year", "--slug", slug, "--owner", "owner@acme.example"
    )
    session = json.loads(page.fetch("/api/auth/get-session").text)
    server.larder("teams", "add-member", slug, session["user"]["email"], "--role", "OWNER")
    seed.usage(server, made["id"], 365)
    seed.artifacts(server, made["id"], ARTIFACTS, [("a" * 32, "b" * 32)])
    page.look(width=1280)
    with page.before_each_page(DRAWN):
        page.open(f"{server.url}/console/t/{slug}")
        page.wait_until("return window.drawing.at > 0")
        assert page.run("return window.drawing.at - window.drawing.replied") < 1_000
        # The document has style and script. All other requests ask for data.
        others = "performance.getEntriesByType('resource').filter((one) => one.initiatorType !== 'fetch')"
        assert page.run(f"return {others}.map((one) => one.name)") == []
        (size,) = page.run(
            "return performance.getEntriesByType('navigation').map((one) => one.transferSize)"
        )
        assert size <= 45_000
    page.open(f"{server.url}/console/t/{slug}/artifacts")
    page.wait_for_heading("Artifacts")
    page.wait_until("return document.querySelector('td') !== null")
    for _ in range(5):
        before = json.dumps(page.run("return document.querySelector('td').textContent"))
        page.press("More")
        page.wait_until(
            f"return (document.querySelector('td')?.textContent ?? {before}) !== {before}"
        )


def test_the_lists_page_through_everything_without_slowing(
    server: LocalCloud, page: Browser
) -> None:
    """`make console-proof` has 100,000 artifacts, and compares the time of the first pages and the last ones."""
    slug = f"list-{secrets.token_hex(4)}"
    made = server.larder(
        "teams", "create", "--name", "List", "--slug", slug, "--owner", "owner@acme.example"
    )
    key = server.larder(
        *("keys", "create", "--user", "owner@acme.example", "--team", slug),
        *("--permissions", "artifacts=manage"),
    )
    seed.artifacts(server, made["id"], ARTIFACTS, [("a" * 32, "b" * 32)])
    seconds, found, cursor = list[float](), set[str](), ""
    with httpx.Client(
        base_url=server.url,
        headers={"authorization": f"Bearer {key['key']}"},
        trust_env=False,
        timeout=60,
    ) as client:
        while True:
            began = time.monotonic()
            reply = client.get(f"/v1/artifacts?slug={slug}&limit=100{cursor}").json()
            seconds.append(time.monotonic() - began)
            found |= {one["hash"] for one in reply["artifacts"]}
            if reply["pagination"]["next"] is None:
                break
            cursor = f"&cursor={reply['pagination']['next']}"
    assert len(found) == ARTIFACTS
    if len(seconds) >= 500:
        first, last = (sorted(some)[len(some) // 2] for some in (seconds[5:105], seconds[-100:]))
        print(f"a page of {len(found)}: {first * 1000:.1f} ms first, {last * 1000:.1f} ms last")
        assert last < 1.5 * first + 0.01


def test_an_ended_session_and_an_empty_cache(
    server: LocalCloud, page: Browser, pictures: Path
) -> None:
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
