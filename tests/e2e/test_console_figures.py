"""Activity, storage, searches and deletions in the console, as an owner of a team uses them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from . import browser, console
from .browser import Browser
from .cloud import LocalCloud
from .console import Person

pytestmark = pytest.mark.e2e


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Browser]:
    """A browser whose log must have no errors at the end of the test."""
    with browser.opened(tmp_path / "profile") as opened:
        yield opened
        assert opened.errors() == []


def store(server: LocalCloud, key: str, team: str, *hashes: str) -> None:
    headers = {"authorization": f"Bearer {key}", "x-artifact-client-ci": "GITHUB_ACTIONS"}
    with httpx.Client(
        base_url=server.url, headers=headers, params={"slug": team}, trust_env=False
    ) as client:
        for hash in hashes:
            assert client.put(f"/v8/artifacts/{hash}", content=b"output").status_code == 202


def test_an_owner_searches_deletes_and_sees_who_did_what(server: LocalCloud, page: Browser) -> None:
    ada, team = Person(), f"web-{secrets.token_hex(4)}"
    page.look(width=1280)
    console.sign_up(page, server, ada)
    server.larder("teams", "create", "--name", "Web", "--slug", team, "--owner", ada.email)
    keys = [
        server.larder("keys", "create", "--user", ada.email, "--team", team, "--name", name)
        for name in ("nightly", "laptop")
    ]
    store(server, keys[0]["key"], team, "aa11", "aa22", "bb33")
    store(server, keys[1]["key"], team, "cc44")

    page.open(f"{server.url}/console/t/{team}")
    page.wait_for_heading("Overview")
    page.wait_for_text("Stored per day (UTC)")
    page.wait_for_text("24 B, 4 artifacts")
    page.wait_for_text("What takes the space")

    page.press("Artifacts")
    page.wait_for_heading("Artifacts")
    page.wait_for_text("cc44")
    page.type("Hash begins with", "aa")
    page.choose("Written by", "nightly")
    page.choose("Stored", "Last day")
    page.press("Search")
    page.wait_until("return document.querySelectorAll('tbody tr').length === 2")
    page.type("Hash begins with", "zz")
    page.press("Search")
    page.wait_for_text("No such artifacts")

    page.press("Delete by time")
    page.type(f"Type {team} to confirm", team)
    page.press("Delete the artifacts")
    page.wait_for_text("Deleted what was stored from")
    page.wait_for_text("4 artifacts, 24 B")
    page.press("Delete all")
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

    server.larder("teams", "set", team, "--caching", "paused")
    page.press("Overview")
    page.wait_for_text("Caching is paused.")
    page.wait_for_text("by the operator.")
