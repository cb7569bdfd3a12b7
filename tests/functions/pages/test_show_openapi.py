"""GET /openapi.json"""

import json

import pytest

from tests.requests import Sender
from tools.openapi.files import document


def test_the_document_needs_no_credentials(environment: pytest.MonkeyPatch) -> None:
    reply = Sender(None)("GET", "/openapi.json")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json == json.loads(json.dumps(document()))


def test_the_document_can_be_cached(environment: pytest.MonkeyPatch) -> None:
    assert Sender(None)("GET", "/openapi.json").headers["cache-control"] == "public, max-age=300"
