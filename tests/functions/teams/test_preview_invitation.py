"""POST /v1/teams/invitation"""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.addresses import canonical
from larder.clock import to_ms
from larder.invitations import service as invitations
from larder.invitations.models import LIFETIME, Invitee
from larder.sso.models import Mode
from larder.sso.service import add_provider
from larder.teams import teams
from larder.teams.members import remove_member
from larder.teams.models import Member, Role
from tests.functions.teams.people import joined, newcomer, outcome
from tests.functions.teams.test_join_team import invited, join
from tests.requests import Cloud, Reply, Sender
from tests.sso.providers import SECRET, acme

PATH = "/v1/teams/invitation"
NOT_FOUND = (404, "invitation_not_found")


def preview(token: str) -> Reply:
    return Sender(None)("POST", PATH, json_body={"token": token})


def test_anyone_with_the_token_sees_team_and_role_without_an_account(cloud: Cloud) -> None:
    invitation, token = invited(cloud, role=Role.VIEWER)
    reply = preview(token)
    assert reply.json == {
        "slug": "acme",
        "role": "VIEWER",
        "invitedBy": None,
        "expiresAt": to_ms(invitation.created_at + LIFETIME),
        "provider": None,
    }
    assert "bob" not in reply.body.decode()


@pytest.mark.parametrize(
    ("settings", "required"),
    [
        ({}, False),
        ({"mode": Mode.REQUIRED}, True),
        ({"mode": Mode.REQUIRED, "exceptions": ("bob@acme.example",)}, False),
        ({"hidden": True}, False),
    ],
)
def test_it_names_the_provider_of_the_invited_address(cloud: Cloud, settings: dict[str, Any], required: bool) -> None:
    add_provider(acme(**settings), SECRET)
    _, token = invited(cloud)
    assert preview(token).json["provider"] == {"id": "acme", "name": "Acme", "required": required}


def test_it_names_no_provider_of_another_domain(cloud: Cloud) -> None:
    add_provider(acme(domains=("other.example",)), SECRET)
    _, token = invited(cloud)
    assert preview(token).json["provider"] is None


def test_a_preview_does_not_use_the_invitation_up(cloud: Cloud) -> None:
    bob = newcomer()
    _, token = invited(cloud)
    assert preview(token) == preview(token)
    assert join(bob, token).status == 200
    assert outcome(preview(token)) == NOT_FOUND


def test_it_names_the_member_who_invites_as_long_as_they_can(cloud: Cloud) -> None:
    admin = joined(cloud, Role.ADMIN, "grace")
    by = Member(user_id=admin.user.id, role=Role.ADMIN, joined_at=clock.now())
    invitee = Invitee(email="bob@acme.example", address=canonical("bob@acme.example"), role=Role.MEMBER)
    (made,) = invitations.create_invitations(cloud.team.id, [invitee], by=by, now=clock.now())
    token = invitations.issue_token(made)
    assert preview(token).json["invitedBy"] == "grace@acme.example"
    remove_member(cloud.team.id, admin.user.id, by=None)
    assert outcome(preview(token)) == NOT_FOUND


def test_404_for_an_expired_invitation_and_a_deleted_team(cloud: Cloud) -> None:
    _, expired = invited(cloud, age=LIFETIME + timedelta(seconds=1))
    _, open_still = invited(cloud)
    assert outcome(preview(expired)) == NOT_FOUND
    teams.delete_team(cloud.team.id, by=None, now=clock.now())
    assert outcome(preview(open_still)) == NOT_FOUND


@pytest.mark.parametrize("token", ["", "A" * 39, "A" * 40, "../" * 10, "\U0001f9ea"])
def test_404_for_another_token(cloud: Cloud, token: str) -> None:
    assert outcome(preview(token)) == NOT_FOUND
