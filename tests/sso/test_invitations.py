"""Accept an invitation after a sign-in with a provider."""

from __future__ import annotations

from typing import Any

import pytest

from larder import clock
from larder.accounts.service import create_user, find_user_by_email
from larder.accounts.sessions import start_session
from larder.invitations import service as invitations
from larder.invitations.models import Invitee
from larder.teams.members import role_of
from larder.teams.models import Role, Team
from larder.teams.teams import create_team
from tests.conftest import SetOption
from tests.mailbox import Mailbox
from tests.requests import Sender
from tests.sso.conftest import Journey, error_of

INVITED = "ada@acme.example"


@pytest.fixture
def team(aws_in_memory: None) -> Team:
    owner = create_user("owner@home.example", "Owner", email_verified=True, now=clock.now())
    return create_team("Web", "web", owner_user_id=owner.id, now=clock.now())


@pytest.fixture
def token(team: Team) -> str:
    """The token of the invitation of Ada."""
    invitee = Invitee(email=INVITED, address=INVITED, role=Role.DEVELOPER)
    (made,) = invitations.create_invitations(team.id, [invitee], by=None, now=clock.now())
    return invitations.issue_token(made)


def join(email: str, token: str) -> tuple[int, str]:
    """The status and, for a refusal, the code."""
    user = find_user_by_email(email)
    assert user is not None
    _, session = start_session(user, now=clock.now())
    reply = Sender(session)("POST", "/v1/teams/join", json_body={"token": token})
    return reply.status, "" if reply.status == 200 else reply.code


def test_17_an_address_that_counts_needs_no_mail(journey: Journey, team: Team, token: str, mailbox: Mailbox) -> None:
    assert error_of(journey.sign_in()) is None
    assert mailbox.payloads == []
    assert join(INVITED, token) == (200, "")
    user = find_user_by_email(INVITED)
    assert user is not None
    assert role_of(team.id, user.id) is Role.DEVELOPER


def test_17_another_address_than_the_invited_one_is_refused(journey: Journey, token: str) -> None:
    assert error_of(journey.sign_in(email="bob@acme.example")) is None
    assert join("bob@acme.example", token) == (403, "invitation_for_another_address")


def test_17_an_invited_address_that_does_not_count_has_to_be_proven(
    journey: Journey, token: str, mailbox: Mailbox, option: SetOption
) -> None:
    option("sign_up_policy", "invited")
    assert error_of(journey.sign_in(email_verified=False)) is None
    assert [job["kind"] for job in mailbox.payloads] == ["verify_email"]
    assert join(INVITED, token) == (403, "email_not_proven")
    other: dict[str, Any] = {"sub": "eve", "email": "eve@acme.example", "email_verified": False}
    assert error_of(journey.sign_in(**other)) == "signup_disabled"
