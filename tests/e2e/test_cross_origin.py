"""A page of another, trusted origin can sign a user in with the browser's fetch. A page that is not trusted cannot."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import browser, cloud
from .cloud import LocalCloud

pytestmark = pytest.mark.e2e

JSON = {"content-type": "application/json"}


@pytest.fixture
def trusting(request: pytest.FixtureRequest, tmp_path: Path, other_port: int) -> Iterator[LocalCloud]:
    """A Larder that trusts the pages of the other server on localhost."""
    options = {"LARDER_TRUSTED_ORIGINS": f"http://localhost:{other_port}"}
    with cloud.running(request.config.rootpath, tmp_path / "data", **options) as running:
        yield running


def test_a_trusted_page_signs_up_and_reads_errors(trusting: LocalCloud, tmp_path: Path, other_port: int) -> None:
    auth = f"http://localhost:{trusting.port}/api/auth"
    email, password = f"ada-{secrets.token_hex(6)}@acme.example", secrets.token_hex(12)
    with browser.opened(tmp_path / "profile") as page:
        page.open(f"http://localhost:{other_port}")
        new = json.dumps({"name": "Ada", "email": email, "password": password})
        signed_up = page.fetch(f"{auth}/sign-up/email", method="POST", headers=JSON, body=new)
        assert signed_up.status == 200
        session = page.fetch(f"{auth}/get-session")
        assert json.loads(session.text)["user"]["email"] == email

        wrong = json.dumps({"email": email, "password": "not the password"})
        refused = page.fetch(f"{auth}/sign-in/email", method="POST", headers=JSON, body=wrong)
        assert (refused.status, json.loads(refused.text)["code"]) == (401, "INVALID_EMAIL_OR_PASSWORD")
        asked = [request.status for request in trusting.requests_since(0) if request.method == "OPTIONS"]
        # The browser caches preflights by URL: one for each URL that takes JSON.
        assert asked == [204, 204]


def test_an_untrusted_page_cannot_send_or_read(trusting: LocalCloud, tmp_path: Path, other_port: int) -> None:
    auth = f"http://localhost:{trusting.port}/api/auth"
    with browser.opened(tmp_path / "profile") as page:
        # The same server under another name is another origin.
        page.open(f"http://127.0.0.1:{other_port}")
        new = json.dumps({"name": "Mallory", "email": "m@acme.example", "password": "x" * 12})
        sent = page.fetch(f"{auth}/sign-up/email", method="POST", headers=JSON, body=new)
        assert sent.type == "error"
        assert page.fetch(f"{auth}/get-session").type == "error"
    assert [request.status for request in trusting.requests_since(0) if request.path.endswith("sign-up/email")] == [403]
