"""The catalogue of requests: every request succeeds if what it names exists."""

from dataclasses import replace

import pytest

from tests.catalogue import Names, entries, operations, valid
from tests.requests import Sender


@pytest.mark.parametrize("operation", operations())
def test_every_request_succeeds(operation: str, names: Names) -> None:
    if operation == "POST /api/auth/sign-up/email":
        names = replace(names, email="eve@example.com")
    if operation == "POST /v1/teams/{idOrSlug}/members/teams/join":
        names = replace(names, team="other-x")
    request = valid(operation, names)
    if operation.startswith(("PUT /v8/", "OPTIONS /v8/artifacts/{")):
        request = valid(operation, names, hash="new")
    reply = request(Sender(request.token(names), slug="acme" if request.for_team else None))
    assert reply.status < 400, f"{reply}: change the entry in tests/catalogue.py"


def test_every_entry_has_a_route() -> None:
    assert entries() - set(operations()) == set()
