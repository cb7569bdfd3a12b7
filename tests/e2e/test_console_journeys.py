"""The console in a browser, from a new account to a deleted team, as its users go through it."""

from __future__ import annotations

import csv
import io
import json
import re
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from selenium.webdriver.common.keys import Keys

from tests.functions.usage import reports
from tests.functions.usage.reports import BRANCH, LIB, LIB_2, MAIN, UI, UI_2

from . import browser, console, seed, turbo
from .browser import Browser
from .cloud import LocalCloud
from .console import Person
from .monorepo import Package, generate, wipe_outputs_and_local_cache
from .outbox import link_to

pytestmark = pytest.mark.e2e

CI = {"x-artifact-client-ci": "GITHUB_ACTIONS"}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser.opened(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.fixture
def page(chromium: Browser) -> Iterator[Browser]:
    """A browser in which no one is signed in, and whose log must have no errors at the end of the test."""
    chromium.forget_cookies()
    yield chromium
    assert chromium.errors() == []


def store(server: LocalCloud, key: str, team: str, *hashes: str) -> None:
    headers = {"authorization": f"Bearer {key}", "x-artifact-client-ci": "GITHUB_ACTIONS"}
    with httpx.Client(base_url=server.url, headers=headers, params={"slug": team}, trust_env=False) as client:
        for hash in hashes:
            assert client.put(f"/v8/artifacts/{hash}", content=b"output").status_code == 202


def report(server: LocalCloud, key: str, team: str) -> None:
    """Report a hit and a miss, as a build does."""
    event = {"sessionId": str(uuid.uuid4()), "source": "REMOTE", "hash": "08e4547d5347b63f"}
    events = [{**event, "event": "HIT", "duration": 90_000}, {**event, "event": "MISS"}]
    headers = {"authorization": f"Bearer {key}", **CI}
    url = f"{server.url}/v8/artifacts/events"
    sent = httpx.post(url, json=events, headers=headers, params={"slug": team}, trust_env=False)
    assert sent.status_code == 200


def build(server: LocalCloud, key: str, team: str) -> int:
    """Store an artifact and report a hit, as a build does. Returns the status of the upload."""
    with httpx.Client(
        base_url=server.url, headers={"authorization": f"Bearer {key}", **CI}, params={"slug": team}, trust_env=False
    ) as client:
        stored = client.put(f"/v8/artifacts/{secrets.token_hex(8)}", content=b"a build's output")
    if stored.status_code == 202:
        report(server, key, team)
    return stored.status_code


def made_key(page: Browser) -> str:
    """The key that the dialog shows. Closes the dialog, which asks whether it was stored."""
    page.wait_for_text("Copy it now.")
    page.keys(Keys.ESCAPE)
    page.keys(Keys.ESCAPE)
    key = str(page.run("return document.querySelector('dialog pre').textContent"))
    page.press("Close")
    page.wait_for_text("Store the key first")
    page.tick("I have stored the key")
    page.press("Close")
    return key


def test_from_the_link_in_the_banner_to_full_turbo(
    request: pytest.FixtureRequest,
    server: LocalCloud,
    page: Browser,
    fresh_monorepo: Callable[..., Path],
    home: Path,
    tmp_path: Path,
) -> None:
    link = re.search(r"http://\S+/_local/sign-in\S*", server.log_text())
    assert link is not None
    page.look(width=1280)
    page.open(link[0])
    page.wait_for_heading("Get started")
    page.press("Create a key")
    page.type("Name", "ci")
    page.press("Create the key")
    key = made_key(page)
    page.wait_for_text("export TURBO_TOKEN=<the key>")
    lines = dict(re.findall(r"export (TURBO_\w+)=(\S+)", page.text())) | {"TURBO_TOKEN": key}
    assert lines["TURBO_TEAM"] == server.team

    generate(tmp_path / "template", [Package("one", 1_000)], home=home)
    monorepo = fresh_monorepo(turbo.NEWEST, seed="console", template=tmp_path / "template")
    command = turbo.installed(turbo.NEWEST, request.config.rootpath / ".tools" / "turbo")
    client = turbo.Client(command, turbo.NEWEST, lines, home)
    assert not turbo.build(client, monorepo).full_turbo
    wipe_outputs_and_local_cache(monorepo)
    assert turbo.build(client, monorepo).full_turbo
    # The page loads what has happened by itself.
    page.wait_for_heading("Overview")
    page.wait_for_text("50%")


@pytest.mark.thorough
def test_an_owner_makes_a_public_read_key(server: LocalCloud, page: Browser) -> None:
    ada, team = Person("Ada"), f"open-{secrets.token_hex(4)}"
    console.sign_up(page, server, ada)
    server.larder("teams", "create", "--name", "Open", "--slug", team, "--owner", ada.email)
    page.open(f"{server.url}/console/t/{team}/keys")
    page.wait_for_heading("Keys")
    page.press("Create a key")
    page.type("Name", "forks")
    page.tick("Public read key")
    page.wait_for_text("can read the outputs and logs of your builds")
    page.type("Artifacts a day", "2")
    page.type("Gigabytes a day", "0.5")
    page.press("Create the key")
    key = made_key(page)
    assert build(server, key, team) == 403
    found = server.larder("keys", "list", "--team", team)
    assert [(one["owner"], one["daily_requests"], one["daily_bytes"]) for one in found] == [("team", 2, 5 * 10**8)]
    with httpx.Client(
        base_url=server.url, headers={"authorization": f"Bearer {key}"}, params={"slug": team}, trust_env=False
    ) as client:
        assert [client.head("/v8/artifacts/absent").status_code for _ in range(3)] == [404, 404, 403]
    page.open(f"{server.url}/console/t/{team}/keys")
    page.wait_for_text("paused until the next day (UTC)")
    page.press("forks")
    page.wait_for_text("2 of 2 artifacts, 0 B of 500 MB")
    console.act(page, "Rotate")
    page.press("Rotate the key")
    assert made_key(page) != key
    found = server.larder("keys", "list", "--team", team)
    assert [(one["daily_requests"], one["daily_bytes"]) for one in found] == [(2, 5 * 10**8)] * 2


@pytest.mark.thorough
def test_an_invited_person_signs_up_and_opens_the_link_in_the_mail(server: LocalCloud, page: Browser) -> None:
    page.open(f"{server.url}/_local/sign-in?token=used")
    page.wait_for_text("This link was used. It works once.")

    carol = Person("Carol")
    server.larder("teams", "invite", server.team, carol.email, "--role", "DEVELOPER")
    page.open(link_to(server, carol.email, "/join?"))
    page.wait_for_heading("Create an account")
    page.type("Your name", carol.name)
    page.type("Email address", carol.email)
    page.type("Password", carol.password)
    page.press("Create account")
    page.wait_for_heading("Check your email")
    assert carol.email in page.text()
    page.open(link_to(server, carol.email, "verify-email"))
    page.wait_for_heading("Join the team?")
    page.press("Join the team")
    page.wait_for_heading("Welcome to the team")
    page.press("Open the console")
    page.wait_until(f"return location.pathname === '/console/t/{server.team}'")


def test_a_team_from_its_first_key_to_its_end(server: LocalCloud, page: Browser, tmp_path: Path) -> None:
    ada, team = Person(), f"web-{secrets.token_hex(4)}"
    page.look(width=1280)
    page.open(f"{server.url}/console/new-team")
    # The address after the sign-in is the one that was asked for.
    page.wait_for_heading("Sign in")
    assert page.run("return location.search") == "?next=%2Fconsole%2Fnew-team"
    console.sign_up(page, server, ada)
    page.open(f"{server.url}/sign-in?next=%2Fconsole%2Fnew-team")
    page.wait_for_heading("Create a team")
    page.type("Name", "Web Platform")
    assert page.run("return document.querySelector('[name=slug]').value") == "web-platform"
    page.type("Slug", team)
    page.press("Create the team")
    page.wait_for_heading("Get started")
    assert f"turbo link --yes --scope {team}" in page.text()

    page.press("Create a key")
    page.type("Name", "ci")
    page.press("Create the key")
    first = made_key(page)
    page.wait_for_text("export TURBO_TOKEN=<the key>")
    # It was shown once.
    assert first not in page.run("return document.documentElement.textContent")
    assert build(server, first, team) == 202
    # The page loads what has happened by itself.
    page.wait_for_heading("Overview")
    page.wait_for_text("50%")
    page.wait_for_text("GitHub Actions")
    page.run("document.evaluate('//button[. = \"Show as table\"]', document).iterateNext().click()")
    page.wait_for_text("From a cache")

    page.press("Artifacts")
    page.wait_for_heading("Artifacts")
    page.wait_for_text("16 B")
    page.press("Keys")
    page.wait_for_heading("Keys")
    console.act(page, "Rotate")
    page.choose("The old key works for", "1 hour")
    page.press("Rotate the key")
    second = made_key(page)
    assert second != first
    assert build(server, second, team) == build(server, first, team) == 202
    page.wait_for_text("replaced, ends in 60 minutes")
    actions = "row.querySelectorAll('[popover] button').length"
    assert page.run(f"return [...document.querySelectorAll('tbody tr')].map((row) => {actions})") == [2, 3]
    console.act(page, "Turn off", row=-1)
    page.wait_for_text("The key is off.")
    assert build(server, second, team) == 401
    console.act(page, "Delete")
    page.wait_for_text("Delete the key?")
    page.press("Delete the key")
    page.wait_for_text("The key is deleted.")
    assert build(server, first, team) == 401

    grace = Person("Grace")
    page.press("Members")
    page.wait_for_heading("Members")
    page.type("Email address", grace.email)
    page.choose("Role", "Viewer")
    page.press("Send the invitation")
    page.wait_for_text("Open invitations")
    with browser.opened(tmp_path / "other") as other:
        console.sign_up(other, server, grace)
        other.open(link_to(server, grace.email, "/join?"))
        other.press("Join the team")
        other.wait_for_heading("Welcome to the team")
        other.open(f"{server.url}/console")
        other.wait_for_heading("Overview")
        # A viewer sees neither artifacts nor how to invite.
        assert "Artifacts" not in other.run("return document.querySelector('nav').innerText")
        other.open(f"{server.url}/console/t/{team}/artifacts")
        other.wait_for_text("Your role, Viewer, does not show this.")
        page.press("Keys")
        page.press("Members")
        page.wait_for_text("Grace")
        page.run("""
            const role = document.querySelector('[aria-label="Role of Grace"]');
            role.value = "ADMIN";
            role.dispatchEvent(new Event("change", { bubbles: true }));
        """)
        page.wait_for_text("Grace is now Admin.")
        other.open(f"{server.url}/console/t/{team}/artifacts")
        other.wait_for_heading("Artifacts")
        page.run("document.querySelector('[aria-label=\"Remove Grace\"]').click()")
        page.press("Remove the member")
        page.wait_for_text("The member is removed.")
        other.open(f"{server.url}/console/t/{team}")
        other.wait_for_heading("Page not found")
        assert other.errors() == []

    page.press("Activity")
    page.wait_for_heading("Activity")
    page.wait_for_text("Deleted the key ci")
    page.wait_for_text(f"Invited {grace.email} as Viewer")
    did = page.run("return [...document.querySelectorAll('tbody tr td:nth-child(2)')].map((one) => one.innerText)")
    assert [one for one in did if "the key ci" in one] == [
        f"{what} the key ci" for what in ("Deleted", "Changed", "Rotated", "Created")
    ]

    page.press("Settings")
    page.wait_for_heading("Settings")
    page.press("Delete the team")
    page.type(f"Type {team} to confirm", "another")
    page.run("document.querySelector('dialog [type=submit]').click()")
    page.wait_for_text(f"Type {team} to confirm.")
    page.type(f"Type {team} to confirm", team)
    page.run("document.querySelector('dialog [type=submit]').click()")
    # Without a team, the console opens the user's own cache.
    page.wait_for_heading("Get started")
    assert page.run("return location.pathname") == "/console/me"


@pytest.mark.thorough
def test_the_key_of_a_member_becomes_the_teams_before_they_leave(
    server: LocalCloud, page: Browser, tmp_path: Path
) -> None:
    ada, grace, team = Person(), Person("Grace"), f"web-{secrets.token_hex(4)}"
    page.look(width=1280)
    console.sign_up(page, server, ada)
    with console.api(page, server) as api:
        console.sent(api, "/v1/teams", {"name": "Web", "slug": team})
    with browser.opened(tmp_path / "other") as other:
        console.sign_up(other, server, grace)
        server.larder("teams", "add-member", team, grace.email, "--role", "ADMIN")
        with console.api(other, server) as api:
            team_id = api.get(f"/v2/teams/{team}").json()["id"]
            personal = console.sent(
                api, "/api/auth/api-key/create", {"name": "nightly", "teamId": team_id, "metadata": {"repo": "web"}}
            )["key"]
            known = console.sent(
                api, "/api/auth/api-key/create", {"name": "release", "configId": "team", "organizationId": team}
            )

    page.open(f"{server.url}/console/t/{team}/members")
    page.wait_for_heading("Members")
    page.wait_for_text("Grace")
    page.run("document.querySelector('[aria-label=\"Remove Grace\"]').click()")
    page.wait_for_text("Does CI use one of them?")
    page.run("document.querySelector('dialog li button').click()")
    page.wait_for_text("You get a new key with the same name and permissions as nightly.")
    page.run("document.querySelector('dialog [type=submit]').click()")
    of_team = made_key(page)
    page.wait_for_text("Remove the member?")
    assert build(server, personal, team) == build(server, of_team, team) == 202
    page.press("Remove the member")
    page.wait_for_text("The member is removed.")
    assert build(server, personal, team) == 401
    assert build(server, of_team, team) == build(server, known["key"], team) == 202

    page.press("Keys")
    page.wait_for_heading("Keys")
    page.wait_for_text("and knows this key. Rotate it")
    rows = page.run("return [...document.querySelectorAll('tbody tr')].map((row) => row.innerText)")
    release, nightly = rows
    assert "Grace left on" in release
    assert "Known to Ada" in nightly
    with console.api(page, server) as api:
        listed = api.get("/api/auth/api-key/list", params={"organizationId": team}).json()
    assert [(key["name"], key["metadata"]) for key in listed] == [("release", None), ("nightly", {"repo": "web"})]
    console.act(page, "Rotate")
    page.press("Rotate the key")
    rotated = made_key(page)
    assert build(server, rotated, team) == build(server, known["key"], team) == 202
    page.wait_for_text("replaced, ends in")
    assert page.errors() == []

    # The view of protection is on the page with all scripts.
    page.press("Protection")
    page.wait_for_heading("Protection")
    page.press("Keys")
    page.wait_for_heading("Keys")
    page.run("history.back()")
    page.wait_for_heading("Protection")
    page.run("history.back()")
    page.wait_for_heading("Keys")


@pytest.mark.thorough
def test_an_account_its_sessions_and_its_end(server: LocalCloud, page: Browser) -> None:
    ada = Person()
    console.sign_up(page, server, ada)
    page.open(f"{server.url}/console/account")
    page.wait_for_heading("Your account")
    page.type("Name", "Ada Lovelace")
    page.run("document.activeElement.form.requestSubmit()")
    page.wait_for_text("Ada Lovelace")
    page.wait_for_text("this one")

    # A wrong password is shown at its field, which has the focus.
    changed = secrets.token_hex(12)
    page.type("Current password", "not the password")
    page.type("New password", changed)
    page.press("Change the password")
    page.wait_for_text("password is wrong")
    assert page.run("return document.activeElement.name") == "currentPassword"
    page.type("Current password", ada.password)
    page.press("Change the password")
    page.wait_for_text("The password is changed.")
    # That ended all sessions and began one, with which the page goes on.
    page.press("Sign out everywhere else")
    page.wait_for_text("All other sessions are ended.")

    console.post(page, "/api/auth/sign-out", {})
    page.open(f"{server.url}/console/me/keys")
    page.wait_for_heading("Sign in")
    page.type("Email address", ada.email)
    page.type("Password", changed)
    page.press("Sign in")
    page.wait_for_heading("Keys")
    assert page.run("return location.pathname") == "/console/me/keys"

    page.open(f"{server.url}/console/account")
    page.press("Delete your account")
    page.type("Type your email address to confirm", ada.email)
    page.run("document.querySelector('dialog [name=password]').focus()")
    page.keys(changed, Keys.ENTER)
    page.wait_for_heading("A build cache for Turborepo")
    page.open(f"{server.url}/sign-in?next=https%3A%2F%2Fevil.example")
    page.wait_for_heading("Sign in")


@pytest.mark.thorough
def test_an_owner_searches_deletes_and_sees_who_did_what(server: LocalCloud, page: Browser) -> None:
    ada, team = Person(), f"web-{secrets.token_hex(4)}"
    page.look(width=1280)
    console.sign_up(page, server, ada)
    with console.api(page, server) as api:
        made = console.sent(api, "/v1/teams", {"name": "Web", "slug": team})
        keys = [
            console.sent(api, "/api/auth/api-key/create", {"name": name, "teamId": made["id"]})
            for name in ("nightly", "laptop")
        ]
    store(server, keys[0]["key"], team, "aa11", "aa22", "bb33")
    store(server, keys[1]["key"], team, "cc44")

    page.open(f"{server.url}/console/t/{team}")
    page.wait_for_heading("Overview")
    page.wait_for_text("Stored per day (UTC)")
    page.wait_for_text("24 B, 4 artifacts")
    page.wait_for_text("What takes the space")
    page.wait_for_text("make larder ARGS=sweep")
    report(server, keys[0]["key"], team)
    page.choose("Builds", "By key")
    page.wait_until("return [...document.querySelectorAll('td')].some((one) => one.innerText === 'nightly')")

    page.press("Artifacts")
    page.wait_for_heading("Artifacts")
    page.wait_for_text("cc44")
    page.type("Find", "aa")
    # A choice applies at once, and the address keeps it.
    page.choose("Written by", "nightly")
    page.choose("Stored", "Last day")
    page.wait_until("return document.querySelectorAll('tbody tr').length === 2")
    page.wait_until("return location.search.includes('prefix=aa') && location.search.includes('hours=24')")
    page.type("Find", "zz")
    page.run("document.querySelector('main [type=submit]').click()")
    page.wait_for_text("No such artifacts")

    page.type("Find", "cc")
    page.choose("Written by", "Anyone")
    page.wait_for_text("cc44")
    console.act(page, "Details", row=-1)
    page.press("Delete all from this writer")
    page.type(f"Type {team} to confirm", team)
    page.press("Delete the artifacts")
    page.wait_for_text("Deleted what laptop stored: 1 artifact, 6 B")

    console.act(page, "Delete by time")
    page.press("Count the artifacts")
    page.wait_for_text("3 artifacts, 18 B, stored from")
    page.type(f"Type {team} to confirm", team)
    page.press("Delete the artifacts")
    page.wait_for_text("Deleted what was stored from")
    page.wait_for_text("3 artifacts, 18 B")
    console.act(page, "Delete all")
    page.type(f"Type {team} to confirm", "another")
    page.press("Delete all artifacts")
    page.wait_for_text(f"Type {team} to confirm.")
    page.press("Cancel")

    page.press("Settings")
    page.wait_for_heading("Settings")
    page.press("Activity")
    page.wait_for_heading("Activity")
    page.wait_for_text("Started to delete what was stored from")
    page.wait_for_text("Created the key laptop")
    page.choose("Show", "Keys")
    page.wait_until("return !document.body.innerText.includes('Started to delete')")
    page.choose("Show", "Members")
    page.wait_for_text("Nothing here")

    with console.api(page, server) as api:
        path = f"/v1/artifacts/status?slug={team}"
        console.sent(api, path, {"status": "paused"}, method="PUT")
    page.press("Overview")
    page.wait_for_text("Caching is paused.")
    page.wait_for_text("by Ada.")


def test_a_run_leads_to_its_tasks_their_artifacts_and_what_else_their_writer_stored(
    server: LocalCloud, page: Browser
) -> None:
    ada, team = Person(), f"web-{secrets.token_hex(4)}"
    page.look(width=1280)
    console.sign_up(page, server, ada)
    with console.api(page, server) as api:
        made = console.sent(api, "/v1/teams", {"name": "Web", "slug": team})
        new = {"name": "nightly", "teamId": made["id"]}
        key = console.sent(api, "/api/auth/api-key/create", new)["key"]
    hash, other = "08e4547d5347b63f", "5347b63f08e4547d"
    store(server, key, team, hash, other)
    now = round(time.time() * 1000)
    times = {"startTime": now - 5_000, "endTime": now, "exitCode": 0}
    task = {"package": "web", "task": "build", "hash": hash, "execution": times}
    run = {
        "id": "run1",
        "execution": times,
        "scm": {"branch": "main"},
        "tasks": [
            {**task, "cache": {"status": "MISS"}},
            {**task, "task": "lint", "hash": other, "cache": {"status": "HIT"}},
        ],
    }
    headers = {"authorization": f"Bearer {key}", **CI}
    url = f"{server.url}/v1/runs"
    sent = httpx.post(url, json=run, headers=headers, params={"slug": team}, trust_env=False)
    assert sent.status_code == 200

    page.open(f"{server.url}/console/t/{team}/runs")
    page.wait_for_heading("Runs")
    page.wait_for_text("web#build")
    page.run("document.querySelector('[aria-label=Runs] td a').click()")
    page.wait_for_heading("Run")
    page.wait_for_text("web#lint")
    assert "Local hit" in page.text()
    page.run(f"""[...document.querySelectorAll("td a")].find((one) => one.innerText === "{hash}").click()""")
    page.wait_for_heading("Artifacts")
    rows = "[...document.querySelectorAll('tbody tr')].map((row) => row.innerText)"
    page.wait_until(f"return {rows}.length === 1")
    assert hash in page.run(f"return {rows}[0]")
    # The reported run says which task the artifact is of.
    page.wait_for_text("web#build")
    page.press("nightly")
    page.wait_until(f"return {rows}.length === 2")
    # The list of keys, which has its name, may arrive after the artifacts.
    page.wait_until("return document.querySelector('[name=writer]').selectedOptions[0].text === 'nightly'")
    # Back through all of them.
    page.run("history.go(-2)")
    page.wait_for_heading("Run")
    page.wait_for_text("web#lint")
    page.run("document.querySelector('.head a').click()")
    page.wait_for_heading("Runs")
    page.open(f"{server.url}/console/t/{team}/run?id=gone&startedAt={now}")
    page.wait_for_text("No such run")
    assert page.errors() == []


HAS_ROWS = "document.querySelectorAll('main tbody tr').length > 0"
HAS_TASKS = "return document.querySelector('[aria-label=Artifacts] a[href*=\"/task?\"]') !== null"
FLAT = "document.body.innerText.replace(/\\s+/g, ' ')"

DETAILS = "⋯"
"""The menu of the first artifact, and its details: two clicks."""

QUESTIONS = {
    "Why did my build miss?": (
        ["Runs", "Update dependencies"],
        ["Why tasks missed", "variable: NEXT_PUBLIC_BUILD_TIME changed"],
    ),
    "What made CI slow since Tuesday?": (
        ["Runs"],
        ["Runs per day (UTC)", "Since commit", "variable NEXT_PUBLIC_BUILD_TIME"],
    ),
    "Which repository costs the storage?": ([], ["What takes the space", "acme/web"]),
    "Who wrote this artifact, and from which run?": (
        ["Artifacts", DETAILS],
        ["Written by nightly", "Built in the run", "Restored last in the run"],
    ),
    "Is it poisoned?": (["Artifacts", DETAILS], ["Poisoned?", "No later upload of this hash had other bytes."]),
    "Is this key used?": (["Keys", "nightly"], ["Last used", "Last 7 days"]),
    "What did this pull request cost?": (
        ["Runs", "checkout-v2"],
        ["PR 118", "Build time", "$", "of tasks that no cache had"],
    ),
    "What should I fix first?": ([], ["What to fix", "variable: NEXT_PUBLIC_BUILD_TIME changed"]),
}
"""What to click, from the overview, and what the last view then says."""


@pytest.fixture
def team_with_runs(server: LocalCloud, page: Browser) -> str:
    """A protected team whose reported runs were compared, and whose storage was checked. Returns its slug."""
    ada, team = Person(), f"asked-{secrets.token_hex(4)}"
    console.sign_up(page, server, ada)
    with console.api(page, server) as api:
        made = console.sent(api, "/v1/teams", {"name": "Web", "slug": team})
        console.sent(api, f"/v2/teams/{team}", {"buildHourCents": 48}, method="PATCH")
    server.larder("teams", "protect", team, "--keep-stored")
    new = ("--user", ada.email, "--team", team, "--name", "nightly", "--trusted")
    key = server.larder("keys", "create", *new)
    rule, token = server.larder("trust", "add", team, "--github", "acme/web"), secrets.token_hex(16)
    seed.job(server, made["id"], rule["id"], token, "refs/heads/main")
    reported = list(seed.summaries(20, hours=70))
    seed.runs(server, key["key"], team, reported)
    seed.explanations(server, made["id"], reported)
    newest, *hashes = seed.hashes_of(reported)
    store(server, key["key"], team, newest)
    seed.artifacts(server, made["id"], 20, [(key["id"], key["user_id"]), (token, rule["id"])], hashes)
    seed.usage(server, made["id"], 7, keys=((key["id"], key["user_id"]),))
    server.larder("sweep")
    return team


def test_eight_questions_are_answered_in_at_most_three_clicks(
    server: LocalCloud, page: Browser, team_with_runs: str
) -> None:
    page.look(width=1280)
    for clicks, answers in QUESTIONS.values():
        assert len(clicks) + clicks.count(DETAILS) <= 3
        page.open(f"{server.url}/console/t/{team_with_runs}")
        page.wait_for_heading("Overview")
        for click in clicks:
            if click == DETAILS:
                # The first menu is that of all artifacts. The names of tasks come after the list.
                page.wait_until(HAS_TASKS)
                console.act(page, "Details", row=1)
            else:
                page.wait_for_text(click)
                page.follow(click)
        for answer in answers:
            page.wait_until(f"return {FLAT}.includes({json.dumps(answer)})")
    assert page.errors() == []


def test_one_field_finds_artifacts_by_task_commit_and_writer(
    server: LocalCloud, page: Browser, team_with_runs: str
) -> None:
    page.look(width=1280)
    page.open(f"{server.url}/console/t/{team_with_runs}/artifacts")
    page.wait_for_heading("Artifacts")
    page.wait_until(HAS_TASKS)
    page.type("Find", "docs#build", Keys.ENTER)
    page.wait_until(
        "return [...document.querySelectorAll('main tbody tr')].every((row) => row.innerText.includes('docs#build'))"
    )
    page.type("Find", "no#task", Keys.ENTER)
    page.wait_for_text("No such artifacts")
    with console.api(page, server) as api:
        newest = api.get("/v1/runs", params={"slug": team_with_runs}).json()["runs"][0]
        path = f"/v1/runs/{newest['id']}"
        ran = api.get(path, params={"slug": team_with_runs, "startedAt": newest["startedAt"]}).json()["ran"]
    page.type("Find", newest["sha"][:10], Keys.ENTER)
    page.wait_until(
        f"return {HAS_ROWS} && [...document.querySelectorAll('main tbody tr')].every((row) => "
        f"{json.dumps([task['hash'] for task in ran])}.includes(row.innerText.split(/\\s/)[0]))"
    )
    page.type("Find", "Nightly", Keys.ENTER)
    page.wait_until(
        f"return {HAS_ROWS} && "
        "![...document.querySelectorAll('main tbody tr')].some((row) => row.innerText.includes('CI job'))"
    )
    page.choose("Order", "Largest")
    page.wait_for_text("The largest of all artifacts, as checked")
    assert page.errors() == []


KEEP_FILES = """
window.kept = [];
const make = URL.createObjectURL;
URL.createObjectURL = (file) => (file.text().then((text) => window.kept.push(text)), make.call(URL, file));
"""
"""So that a test reads what the browser stores."""


def test_figures_are_exported_as_csv(server: LocalCloud, page: Browser, team_with_runs: str) -> None:
    page.look(width=1280)
    files = {}
    for view in ("overview", "runs", "activity"):
        page.open(f"{server.url}/console/t/{team_with_runs}/{view.replace('overview', '')}")
        page.wait_for_heading(view.capitalize())
        page.run(KEEP_FILES)
        page.press("Export as CSV")
        page.wait_until("return window.kept.length === 1")
        files[view] = [*csv.DictReader(io.StringIO(page.run("return window.kept[0]")))]
    with console.api(page, server) as api:
        usage = api.get("/v1/usage", params={"slug": team_with_runs}).json()
    assert [(day["day"], int(day["remoteHits"])) for day in files["overview"]] == [
        (day["day"], day["remoteHits"]) for day in usage["days"]
    ]
    assert [run["id"] for run in files["runs"]] == [f"run{number:06}" for number in reversed(range(20))]
    assert "protection_set" in [entry["action"] for entry in files["activity"]]


def test_an_overview_says_what_to_fix(server: LocalCloud, page: Browser, team_with_runs: str) -> None:
    page.look(width=1280)
    page.open(f"{server.url}/console/t/{team_with_runs}")
    page.wait_for_text("What to fix")
    page.wait_for_text("variable: NEXT_PUBLIC_BUILD_TIME changed")
    found = page.run("return [...document.querySelectorAll('.findings li')].map((one) => one.innerText)")
    # A change of the source is no finding. The most expensive one is first.
    assert ["NEXT_PUBLIC_BUILD_TIME" in found[0], "checkout#test" in found[1], len(found)] == [True, True, 2]
    assert "evicted, because the quota was full" in found[1]
    page.follow("checkout#test")
    page.wait_for_heading("checkout#test")
    page.wait_for_text("built again: evicted, because the quota was full")
    assert page.errors() == []


def test_a_team_lets_its_runs_be_compared(server: LocalCloud, page: Browser) -> None:
    team = f"inputs-{secrets.token_hex(4)}"
    page.look(width=1280)
    console.sign_up(page, server, Person())
    with console.api(page, server) as api:
        made = console.sent(api, "/v1/teams", {"name": "Web", "slug": team})
        new = {"name": "nightly", "teamId": made["id"]}
        key = console.sent(api, "/api/auth/api-key/create", new)["key"]
    page.open(f"{server.url}/console/t/{team}/settings")
    page.wait_for_text("Explain misses")
    page.tick("On, with a code of each value")
    page.wait_for_text("The change applies to the next report.")

    headers = {"authorization": f"Bearer {key}", **CI}
    with httpx.Client(base_url=server.url, headers=headers, params={"slug": team}, trust_env=False) as client:
        for minutes, tasks, sha in ((3, (LIB, UI), MAIN), (1, (LIB_2, UI_2), BRANCH)):
            ended = round(time.time() * 1000) - minutes * 60_000
            times = {"startTime": ended - 1_000, "endTime": ended, "exitCode": 0}
            body = reports.report(*tasks, sha=sha, ancestors=(MAIN,), execution=times)
            assert client.post("/v1/runs", json=body).status_code == 200
    # On the first day, the hours say more than the day.
    report(server, key, team)
    page.press("Overview")
    page.wait_for_text("Tasks per hour, of reported runs")
    page.wait_for_text("tasks, 0% from a cache, 0 s saved")
    page.press("Runs")
    page.wait_for_heading("Runs")
    page.wait_for_text("packages/lib/src/a.js (2)")
    page.run("document.querySelector('[aria-label=Runs] td a').click()")
    page.wait_for_heading("Run")
    page.wait_for_text("the nearest commit: 2 tasks have another hash, of 2.")
    page.wait_for_text("file: packages/lib/src/a.js changed")
    page.choose("Compare with", "The newest run of main")
    page.wait_for_text("the run that you chose")
    # The baseline leads to its own page, which was not compared.
    page.run("document.querySelector('.card p a time').click()")
    page.wait_for_text("There was no earlier run to compare with.")

    with httpx.Client(base_url=server.url, headers=headers, params={"slug": team}, trust_env=False) as client:
        body = reports.report(LIB, UI, sha=MAIN, usedCache=False)
        assert client.post("/v1/runs", json=body).json()["missing"] == "cache_unused"
    page.press("Overview")
    page.wait_for_text("1 run did not use the cache")
    page.press("Runs")
    page.wait_for_heading("Runs")
    page.wait_for_text("Did not use the cache")
    page.run("document.querySelector('[aria-label=Runs] td a').click()")
    page.wait_for_text("nothing of it is a miss")
    assert page.errors() == []
