"""How many times the requests about teams wait for AWS: the same in a team of one and in a large one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.api_keys.models import NewKey
from larder.api_keys.service import create_key
from larder.invitations import service as invitations
from larder.invitations.models import Invitation, Invitee
from larder.teams import management
from larder.teams.models import Role, TeamChange
from larder.teams.service import add_member, create_team
from tests.functions.teams.people import Person, newcomer
from tests.mailbox import Mailbox
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

# request -> the body, and round trips with a key that names the team by its slug; joining with a session
TRIPS: dict[str, tuple[object, int]] = {
    "POST /v1/teams": ({"slug": "new"}, 4),
    "GET /v2/teams/acme": (None, 3),
    "PATCH /v2/teams/acme": ({"slug": "new"}, 5),
    "DELETE /v1/teams/acme": (None, 5),
    "GET /v3/teams/acme/members": (None, 7),
    "POST /v2/teams/acme/members": ({"email": "new@b.example"}, 6),
    "PATCH /v1/teams/acme/members/{member}": ({"role": "VIEWER"}, 5),
    "DELETE /v1/teams/acme/members/{member}": (None, 5),
    "DELETE /v1/teams/acme/members/{invitation}": (None, 6),
    "POST /v1/teams/join": ({"token": "{token}"}, 6),
}

MEMBERS, INVITATIONS, FORMER_SLUGS = 45, 20, 5
"""Of a crowded team; members fill more than two pages."""


@pytest.fixture
def bob(cloud: Cloud) -> Person:
    return newcomer()


@pytest.fixture
def invitation(cloud: Cloud, bob: Person) -> Invitation:
    email = bob.user.email
    invitee = Invitee(email=email, address=email, role=Role.MEMBER)
    (made,) = invitations.invite(cloud.team.id, [invitee], by=None, now=clock.now())
    return made


def crowd(cloud: Cloud) -> None:
    now = clock.now()
    for number in range(MEMBERS):
        joined_at = now + timedelta(milliseconds=number)
        add_member(cloud.team.id, f"member{number}", Role.MEMBER, now=joined_at)
    template = Invitee(email="", address="", role=Role.VIEWER)
    for number in range(INVITATIONS):
        address = f"b{number}@b.example"
        invitee = replace(template, email=address, address=address)
        invitations.invite(cloud.team.id, [invitee], by=None, now=now)
    for number in range(FORMER_SLUGS):
        change = TeamChange(slug=f"acme-{number}")
        management.change_team(cloud.team.id, change, by=None, now=now)
        create_team("Team", f"team-{number}", owner_user_id=cloud.user.id, now=now)
    management.change_team(cloud.team.id, TeamChange(slug="acme"), by=None, now=now)


@pytest.mark.parametrize("crowded", [False, True], ids=["alone", "crowded"])
@pytest.mark.parametrize("request_line", TRIPS)
def test_round_trips_and_no_scan(
    request_line: str,
    crowded: bool,
    cloud: Cloud,
    mailbox: Mailbox,
    bob: Person,
    invitation: Invitation,
) -> None:
    now = clock.now()
    other = create_user("other@elsewhere.example", "Other", now=now)
    add_member(cloud.team.id, other.id, Role.MEMBER, now=now)
    if crowded:
        crowd(cloud)
    holds = {"teams": ("read", "write")}
    key = create_key(NewKey(user_id=cloud.user.id, permissions=holds), now=now)[1]
    token = invitations.issue_token(invitation)
    body, expected = TRIPS[request_line]
    if body == {"token": "{token}"}:
        body = {"token": token}
    send = bob.send if request_line.endswith("join") else Sender(key)
    method, _, path = request_line.partition(" ")
    path = path.replace("{member}", other.id).replace("{invitation}", invitation.id)
    with counted() as calls:
        reply = send(method, path, json_body=body)
    assert reply.status == 200
    assert calls.sequential == expected, calls.steps
    assert "Scan" not in str(calls.steps)
