"""The catalogue of requests: every request succeeds if what it names exists."""

from dataclasses import replace

import pytest

from tests.catalogue import Names, entries, operations, valid
from tests.conftest import SetOption
from tests.moto_sockets import watching
from tests.requests import Sender

CALLERS = "192.0.2.0/24"
"""The network of tests/requests.py."""


@pytest.mark.parametrize("operation", operations())
def test_every_request_succeeds_and_from_outside_of_the_networks_calls_nothing(
    operation: str, names: Names, option: SetOption
) -> None:
    if operation == "POST /api/auth/sign-up/email":
        names = replace(names, email="eve@example.com")
    if operation == "POST /v1/teams/{idOrSlug}/members/teams/join":
        names = replace(names, team="other-x")
    request = valid(operation, names)
    if operation.startswith(("PUT /v8/", "OPTIONS /v8/artifacts/{")):
        request = valid(operation, names, hash="new")
    send = Sender(request.token(names), slug="acme" if request.for_team else None)
    option("allowed_networks", "203.0.113.0/24,2001:db8::/32")
    with watching(_no_call):
        refused = request(send)
    assert refused.status == 403
    assert b"network_not_allowed" in refused.body.lower() or request.method == "HEAD"
    option("allowed_networks", f"203.0.113.0/24,{CALLERS}")
    reply = request(send)
    assert reply.status < 400, f"{reply}: change the entry in tests/catalogue.py"


def _no_call(operation: str, _arguments: object) -> None:
    pytest.fail(f"it calls {operation}")


def test_every_entry_has_a_route() -> None:
    assert entries() - set(operations()) == set()
