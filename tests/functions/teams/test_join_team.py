"""POST /v1/teams/join, and the path that the hosted service's client calls"""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.accounts.team_invitations import InvitationWanted, send_invitations
from larder.addresses import canonical
from larder.clock import to_ms
from larder.invitations import service as invitations
from larder.invitations.models import LIFETIME, Invitation, Invitee
from larder.tables import TEAMS
from larder.teams.members import role_of
from larder.teams.models import Role
from tests.conftest import SetOption
from tests.faults import unreachable
from tests.functions.accounts.conftest import MAIL_CONTEXT, PASSWORD
from tests.functions.teams.people import Person, joined, key_of, newcomer, outcome, signed_in
from tests.mailbox import Mailbox
from tests.requests import Browser, Cloud, Reply, Sender

PATH = "/v1/teams/join"


def invited(
    cloud: Cloud, email: str = "bob@acme.example", role: Role = Role.DEVELOPER, *, age: timedelta = timedelta(0)
) -> tuple[Invitation, str]:
    """An invitation from the operator, and its token."""
    invitee = Invitee(email=email, address=canonical(email), role=role)
    (made,) = invitations.create_invitations(cloud.team.id, [invitee], by=None, now=clock.now() - age)
    return made, invitations.issue_token(made)


def join(person: Person, token: str) -> Reply:
    return person.send("POST", PATH, json_body={"token": token})


@pytest.mark.parametrize("role", list(Role))
def test_an_invited_user_becomes_a_member_with_the_role(cloud: Cloud, role: Role) -> None:
    bob = newcomer()
    _, token = invited(cloud, role=role)
    before = clock.now()
    reply = join(bob, token)
    assert (reply.status, reply.json) == (
        200,
        {"teamId": cloud.team.id, "slug": "acme", "name": "Acme", "role": role.value, "from": "mail"},
    )
    team = bob.send("GET", "/v2/teams/acme").json
    assert team["membership"]["role"] == role.value
    assert to_ms(before) <= team["membership"]["createdAt"] <= to_ms(clock.now())
    cache = Sender(bob.send.token, slug="acme")
    assert cache("GET", "/v8/artifacts/status").json == {"status": "enabled"}


def test_the_path_of_the_hosted_services_client_does_the_same(cloud: Cloud) -> None:
    _, token = invited(cloud)
    path = f"/v1/teams/{cloud.team.id}/members/teams/join"
    reply = newcomer().send("POST", path, json_body={"inviteCode": token})
    assert reply.json["teamId"] == cloud.team.id


def test_a_token_works_once(cloud: Cloud) -> None:
    bob = newcomer()
    _, token = invited(cloud)
    assert join(bob, token).status == 200
    assert outcome(join(bob, token)) == (404, "invitation_not_found")
    bob.send("DELETE", f"/v1/teams/acme/members/{bob.user.id}")
    assert outcome(join(bob, token)) == (404, "invitation_not_found")
    assert role_of(cloud.team.id, bob.user.id) is None


@pytest.mark.parametrize(
    ("invited_as", "signed_up_as"),
    [
        ("Bob@Acme.example", "bob@acme.example"),
        ("bob@m\u00fcnchen.example", "bob@xn--mnchen-3ya.example"),
        ("\uff42ob@acme.example", "bob@acme.example"),
    ],
)
def test_the_spelling_of_the_address_does_not_matter(cloud: Cloud, invited_as: str, signed_up_as: str) -> None:
    bob = signed_in(create_user(signed_up_as, "Bob", email_verified=True, now=clock.now()))
    _, token = invited(cloud, invited_as)
    assert join(bob, token).status == 200


def test_403_for_another_user_with_the_link(cloud: Cloud) -> None:
    mallory, bob = newcomer("mallory"), newcomer()
    _, token = invited(cloud)
    reply = join(mallory, token)
    assert outcome(reply) == (403, "invitation_for_another_address")
    assert "bob" not in reply.message
    assert role_of(cloud.team.id, mallory.user.id) is None
    assert join(bob, token).status == 200


def test_403_for_a_stranger_who_signed_up_with_the_invited_address(cloud: Cloud, mailbox: Mailbox) -> None:
    """They have the link, perhaps from a forwarded mail, but cannot read mail at the address."""
    _, token = invited(cloud)
    stranger = signed_in(create_user("bob@acme.example", "Bob", password=PASSWORD, now=clock.now()))
    assert outcome(join(stranger, token)) == (403, "email_not_proven")
    body = {"email": "bob@acme.example"}
    assert Browser().post("/send-verification-email", body).status == 200
    scanner = Browser()
    assert scanner.get(mailbox.link().removeprefix("/api/auth")).status == 302
    assert outcome(join(stranger, token)) == (403, "email_not_proven")
    assert role_of(cloud.team.id, stranger.user.id) is None


def test_an_invited_newcomer_signs_up_proves_the_address_and_joins(
    cloud: Cloud, mailbox: Mailbox, option: SetOption
) -> None:
    """The whole way, at a deployment as it comes: mail, sign-up, link, join."""
    option("sign_up_policy", "invited")
    option("send_verification_on_sign_up", "true")
    wanted = InvitationWanted(email="new@elsewhere.example", role=Role.DEVELOPER)
    send_invitations(cloud.team.id, [wanted], MAIL_CONTEXT, by=None, now=clock.now())
    page = mailbox.link()
    token = page.removeprefix("/join?token=")
    browser = Browser()
    new = {"email": wanted.email, "name": "New", "password": PASSWORD, "callbackURL": page}
    signed_up = browser.post("/sign-up/email", new)
    session = Sender(signed_up.json["token"])
    assert outcome(session("POST", PATH, json_body={"token": token})) == (403, "email_not_proven")
    reply = browser.get(mailbox.link().removeprefix("/api/auth"))
    assert (reply.status, reply.headers["location"]) == (302, page)
    assert session("POST", PATH, json_body={"token": token}).json["role"] == "DEVELOPER"


def test_403_for_a_key_with_any_permission(cloud: Cloud) -> None:
    bob = newcomer()
    _, token = invited(cloud)
    everything = {"artifacts": ("read", "write", "manage"), "teams": ("read", "write")}
    by_key = Person(bob.user, key_of(bob, everything))
    assert outcome(join(by_key, token)) == (403, "session_required")
    assert join(bob, token).status == 200


@pytest.mark.parametrize("age", [LIFETIME, LIFETIME + timedelta(days=1)])
def test_404_for_an_expired_invitation(cloud: Cloud, age: timedelta) -> None:
    _, token = invited(cloud, age=age)
    assert outcome(join(newcomer(), token)) == (404, "invitation_not_found")


def test_an_invitation_is_valid_until_its_last_minute(cloud: Cloud) -> None:
    _, token = invited(cloud, age=LIFETIME - timedelta(minutes=1))
    assert join(newcomer(), token).status == 200


@pytest.mark.parametrize("role", list(Role))
def test_a_member_keeps_their_role_and_the_invitation_is_used_up(cloud: Cloud, role: Role) -> None:
    bob = joined(cloud, role)
    _, token = invited(cloud, role=Role.DEVELOPER)
    assert join(bob, token).json["role"] == role.value
    assert role_of(cloud.team.id, bob.user.id) is role
    assert outcome(join(bob, token)) == (404, "invitation_not_found")


def test_a_new_owner_is_counted(cloud: Cloud) -> None:
    bob = newcomer()
    _, token = invited(cloud, role=Role.OWNER)
    join(bob, token)
    item = TEAMS.get(cloud.team.id, "team")
    assert item is not None
    assert item["owners"] == 2
    ada = signed_in(cloud.user)
    assert ada.send("DELETE", f"/v1/teams/acme/members/{ada.user.id}").status == 200


def test_an_unavailable_table_adds_no_one_and_keeps_the_invitation(cloud: Cloud) -> None:
    bob = newcomer()
    _, token = invited(cloud)
    with unreachable("dynamodb", "TransactWriteItems"):
        assert join(bob, token).status == 503
    assert role_of(cloud.team.id, bob.user.id) is None
    assert join(bob, token).status == 200
