"""A user in a browser, and a turbo client that waits for a token."""

import pytest

from tests.requests import Browser, Cloud, browser_of

CLIENT = "http://127.0.0.1:9789"
STATE = "JlWTpaNIJSVbBSyMpDVuzWvdNaWoUjqg"
PATH = "/turbo-login"


@pytest.fixture
def browser(cloud: Cloud) -> Browser:
    """A browser where Ada, the owner of the team `acme`, is signed in."""
    return browser_of(cloud.user)
