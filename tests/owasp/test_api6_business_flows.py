"""API6: Unrestricted access to sensitive business flows. Actions worth automating are rate limited."""

from __future__ import annotations

from typing import Any

import pytest

from tests.addresses import prove_address
from tests.conftest import SetOption
from tests.owasp.conftest import Person
from tests.requests import Reply, Sender

FLOWS: dict[str, tuple[int, Any]] = {
    "sign-ups": (
        3,
        lambda send, n: send(
            "POST",
            "/api/auth/sign-up/email",
            json_body={"name": "A", "email": f"{n}@a.example", "password": "a good one"},
        ),
    ),
    "resets of a password": (
        3,
        lambda send, n: send("POST", "/api/auth/request-password-reset", json_body={"email": f"{n}@a.example"}),
    ),
    "links to verify an address": (
        3,
        lambda send, n: send("POST", "/api/auth/send-verification-email", json_body={"email": "ada@ada.example"}),
    ),
    "codes of a login": (10, lambda send, n: send("GET", f"/registration/verify?token={n}")),
    "tokens of an invitation": (20, lambda send, n: send("POST", "/v1/teams/invitation", json_body={"token": f"{n}"})),
    "teams": (10, lambda send, n: send("POST", "/v1/teams", json_body={"slug": f"new-{n}"})),
    "invitations to one address": (
        3,
        lambda send, n: send("POST", "/v2/teams/team-of-ada/members", json_body={"email": "eve@eve.example"}),
    ),
}


@pytest.mark.parametrize("flow", FLOWS)
def test_each_flow_has_a_rate_limit(flow: str, ada: Person, option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    option("max_teams_per_user", 0)
    prove_address(ada.user)
    most, ask = FLOWS[flow]
    send = ada.by_session if flow in ("teams", "invitations to one address") else Sender(None)
    # Send twice the limit plus one, because a window can end in between.
    replies: list[Reply] = [ask(send, number) for number in range(2 * most + 1)]
    refused = [reply for reply in replies if reply.status == 429]
    assert refused
    assert all(int(reply.headers["retry-after"]) >= 1 for reply in refused)


def test_no_reply_reveals_who_has_an_account(ada: Person) -> None:
    def reply_to(path: str, email: str) -> tuple[int, bytes]:
        reply = Sender(None)("POST", f"/api/auth/{path}", json_body={"email": email})
        return reply.status, reply.body

    for path in ("request-password-reset", "send-verification-email"):
        assert reply_to(path, ada.user.email) == reply_to(path, "nobody@nowhere.example")
