"""The provider of the local cloud, which runs with `PROVIDER=1`."""

from __future__ import annotations

from .browser import Browser

ADA, BOB = "employee-1", "employee-2"
"""Its own ids of two people, as its page has them in links."""


def choose(page: Browser, name: str) -> None:
    """Choose a person on its page, and wait until the browser leaves it."""
    page.wait_for_heading("Example Company")
    page.follow(name)
