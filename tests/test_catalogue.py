"""The catalogue of requests: every request succeeds if what it names exists."""

from dataclasses import replace

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.teams.teams import create_team
from tests.catalogue import NAMES, Names, entries, operations, valid
from tests.conftest import BeginWith, SetOption
from tests.everything import create_everything
from tests.requests import Sender


@pytest.fixture
def names(begin_with: BeginWith, option: SetOption, mailbox: object, removal_jobs: object) -> Names:
    """Everything that a request can name exists."""
    option("scrypt_cost", 1024)
    option("operator_emails", "ada@example.com")
    option("trusted_origins", NAMES.trusted_origin)
    return begin_with(_make_everything)


def _make_everything() -> Names:
    now, password = clock.now(), NAMES.password
    ada = create_user("ada@example.com", "Ada", password=password, email_verified=True, now=now)
    acme = create_team("Acme", "acme", owner_user_id=ada.id, now=now)
    return create_everything(ada, acme, password=password)


@pytest.mark.parametrize("operation", operations())
def test_every_request_succeeds(operation: str, names: Names) -> None:
    if operation == "POST /api/auth/sign-up/email":
        names = replace(names, email="eve@example.com")
    if operation == "POST /v1/teams/{idOrSlug}/members/teams/join":
        names = replace(names, team="other-x")
    request = valid(operation, names)
    if operation.startswith(("PUT /v8/", "OPTIONS /v8/artifacts/{")):
        request = valid(operation, names, hash="new")
    token = {"key": names.key, "session": names.session, None: None}[request.by]
    reply = request(Sender(token, slug="acme" if request.for_team else None))
    assert reply.status < 400, f"{reply}: change the entry in tests/catalogue.py"


def test_every_entry_has_a_route() -> None:
    assert entries() - set(operations()) == set()
