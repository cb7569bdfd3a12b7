"""How many times the requests about teams wait for AWS: the same in a team of one and in a large one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.invitations import service as invitations
from larder.invitations.models import Invitation, Invitee
from larder.teams import teams
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.teams import TeamChange, create_team
from tests.addresses import prove_address
from tests.catalogue import valid
from tests.functions.teams.people import Person, newcomer, signed_in
from tests.mailbox import Mailbox
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

# operation -> round trips with a key that names the team by its slug; joining with a session
TRIPS = {
    "POST /v1/teams": 4,
    "GET /v2/teams/{idOrSlug}": 4,
    "PATCH /v2/teams/{idOrSlug}": 5,
    "DELETE /v1/teams/{idOrSlug}": 5,
    "GET /v3/teams/{idOrSlug}/members": 8,
    "POST /v2/teams/{idOrSlug}/members": 6,
    # Both look for what the member made or knows, of which owners get an email.
    "PATCH /v1/teams/{idOrSlug}/members/{uid}": 7,
    "DELETE /v1/teams/{idOrSlug}/members/{uid}": 11,
    "DELETE /v1/teams/{idOrSlug}/members/{uid}, an invitation": 6,
    "POST /v1/teams/join": 6,
}

MEMBERS, INVITATIONS, FORMER_SLUGS = 45, 20, 5
"""The members of a large team fill more than two pages."""


@pytest.fixture
def bob(cloud: Cloud) -> Person:
    return newcomer()


@pytest.fixture
def invitation(cloud: Cloud, bob: Person) -> Invitation:
    email = bob.user.email
    invitee = Invitee(email=email, address=email, role=Role.MEMBER)
    (made,) = invitations.create_invitations(cloud.team.id, [invitee], by=None, now=clock.now())
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
        invitations.create_invitations(cloud.team.id, [invitee], by=None, now=now)
    for number in range(FORMER_SLUGS):
        change = TeamChange(slug=f"acme-{number}")
        teams.change_team(cloud.team.id, change, by=None, now=now)
        create_team("Team", f"team-{number}", owner_user_id=cloud.user.id, now=now)
    teams.change_team(cloud.team.id, TeamChange(slug="acme"), by=None, now=now)


@pytest.mark.parametrize("crowded", [False, True], ids=["alone", "crowded"])
@pytest.mark.parametrize("name", TRIPS)
def test_round_trips_and_no_scan(
    name: str, crowded: bool, cloud: Cloud, mailbox: Mailbox, bob: Person, invitation: Invitation
) -> None:
    now = clock.now()
    prove_address(cloud.user)
    other = create_user("other@elsewhere.example", "Other", now=now)
    add_member(cloud.team.id, other.id, Role.MEMBER, now=now)
    if crowded:
        crowd(cloud)
    holds = {"teams": ("read", "write")}
    key = create_key(NewKey(user_id=cloud.user.id, permissions=holds), now=now)[1]
    send = bob.send if name.endswith("join") else Sender(key)
    if name.startswith("PATCH /v1/teams"):
        # A key makes nobody an admin.
        send = signed_in(cloud.user).send
    request = valid(
        name.partition(",")[0],
        member=invitation.id if name.endswith("an invitation") else other.id,
        invitation_token=invitations.issue_token(invitation),
    )
    with counted() as calls:
        reply = request(send)
    assert reply.status == 200
    assert calls.sequential == TRIPS[name], calls.steps
    assert "Scan" not in str(calls.steps)
