"""POST /v2/teams/{idOrSlug}/members, and the same path under /v1"""

import json
import re
import sys
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from larder import aws, clock, extensions
from larder.accounts.email_jobs import InviteToTeam
from larder.accounts.service import create_user
from larder.clock import to_ms
from larder.invitations import service as invitations
from larder.invitations.models import LIFETIME, Invitee
from larder.settings import settings
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role
from tests.conftest import SetOption
from tests.faults import answering, error, unreachable
from tests.functions.teams.people import Person, joined, key_of, newcomer, outcome, signed_in
from tests.mailbox import Mailbox, handed_over, link_in
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply

PATH = "/v2/teams/acme/members"
BOB = {"email": "bob@acme.example", "role": "DEVELOPER"}


@pytest.fixture
def ada(cloud: Cloud, mailbox: Mailbox) -> Person:
    return signed_in(cloud.user)


def invite(person: Person, body: Any = BOB) -> Reply:
    return person.send("POST", PATH, json_body=body)


def token_in(mailbox: Mailbox) -> str:
    """Deliver all mail and return the token in the newest message."""
    return mailbox.link().removeprefix("/join?token=")


def accept(person: Person, token: str) -> tuple[int, str]:
    return outcome(person.send("POST", "/v1/teams/join", json_body={"token": token}))


def open_ones(cloud: Cloud) -> list[tuple[str, Role]]:
    return [
        (invitation.email, invitation.role)
        for invitation in invitations.open_invitations(cloud.team.id, now=clock.now())
    ]


def test_the_reply_has_the_invitation_id_in_place_of_a_user_id(cloud: Cloud, ada: Person) -> None:
    before = to_ms(clock.now())
    reply = invite(ada)
    (made,) = invitations.open_invitations(cloud.team.id, now=clock.now())
    expected = {
        "uid": made.id,
        "username": "bob",
        "email": "bob@acme.example",
        "role": "DEVELOPER",
        "confirmed": False,
        "createdAt": to_ms(made.created_at),
        "expiresAt": to_ms(made.created_at + timedelta(days=7)),
    }
    assert (reply.status, reply.json) == (200, {**expected, "invitations": [expected]})
    assert re.fullmatch("inv_[A-Za-z0-9]{24}", made.id)
    assert before <= to_ms(made.created_at)
    assert made.invited_by == ada.user.id


def test_the_v1_path_does_the_same(cloud: Cloud, ada: Person) -> None:
    body = {**BOB, "projects": [], "uid": "ignored"}
    assert ada.send("POST", f"/v1/teams/{cloud.team.id}/members", json_body=body).status == 200
    assert open_ones(cloud) == [("bob@acme.example", Role.DEVELOPER)]


def test_a_list_returns_the_first_invitation_and_all_of_them(cloud: Cloud, ada: Person, mailbox: Mailbox) -> None:
    answer = invite(ada, [BOB, {"email": "eve@acme.example"}]).json
    assert answer["email"] == "bob@acme.example"
    assert [(invitation["email"], invitation["role"]) for invitation in answer["invitations"]] == [
        ("bob@acme.example", "DEVELOPER"), ("eve@acme.example", "VIEWER"),
    ]  # fmt: skip
    assert {message.to for message in mailbox.deliver()} == {"bob@acme.example", "eve@acme.example"}


def test_the_mail_links_to_the_join_page(cloud: Cloud, ada: Person, mailbox: Mailbox) -> None:
    invite(ada)
    (message,) = mailbox.deliver()
    assert (message.to, message.subject) == ("bob@acme.example", "Larder: Join the team acme")
    assert re.fullmatch(r"/join\?token=[A-Za-z0-9]{40}", link_in(message))
    assert "https://cache.example.com/join?token=" in message.text
    assert "seven days" in message.text
    assert cloud.team.name not in message.text


def test_only_the_hash_of_the_token_is_stored(ada: Person, mailbox: Mailbox) -> None:
    invite(ada)
    (job,) = mailbox.payloads
    token = token_in(mailbox)
    assert token not in json.dumps(job)
    stored = json.dumps(aws.dynamodb().scan(TableName=settings().teams_table)["Items"])
    assert token not in stored
    assert "invitation#" in stored


class TestExistingAccountsAreNotRevealed:
    def test_known_and_unknown_addresses_get_the_same_reply(self, ada: Person, mailbox: Mailbox) -> None:
        create_user("known@b.example", "Known", now=clock.now())
        # The instance has cached the session before both requests.
        assert ada.send("GET", "/v2/user").status == 200
        answers = []
        for name in ("known", "other"):
            with counted() as calls:
                reply = invite(ada, {"email": f"{name}@b.example"})
            answer = reply.json
            for varies in ("uid", "createdAt", "expiresAt"):
                answer.pop(varies)
                answer["invitations"][0].pop(varies)
            text = json.dumps([reply.status, reply.headers, answer]).replace(name, "")
            answers.append((text, calls.steps))
        assert answers[0] == answers[1]

    def test_a_member_can_be_invited_like_anyone(self, cloud: Cloud, ada: Person, mailbox: Mailbox) -> None:
        """The role stays when the member accepts. A role is changed by another endpoint."""
        bob = joined(cloud, Role.MEMBER)
        assert invite(ada, {**BOB, "role": "ADMIN"}).status == 200
        assert accept(bob, token_in(mailbox)) == (200, "")
        team = bob.send("GET", "/v2/teams/acme").json
        assert team["membership"]["role"] == "MEMBER"
        assert open_ones(cloud) == []

    def test_the_job_is_the_same_for_known_and_unknown_addresses(self, ada: Person, mailbox: Mailbox) -> None:
        create_user("known@b.example", "Known", now=clock.now())
        invite(ada, [{"email": "known@b.example"}, {"email": "other@b.example"}])
        known, other = mailbox.jobs
        assert isinstance(known, InviteToTeam)
        assert isinstance(other, InviteToTeam)
        assert replace(other, email=known.email, invitation_id=known.invitation_id) == known


class TestInvitedRoles:
    @pytest.mark.parametrize("role", list(Role))
    def test_an_owner_can_invite_with_any_role(self, cloud: Cloud, ada: Person, role: Role) -> None:
        assert invite(ada, {**BOB, "role": role.value}).json["role"] == role.value

    @pytest.mark.parametrize("role", list(Role))
    def test_an_admin_can_invite_with_any_role_except_owner(self, cloud: Cloud, ada: Person, role: Role) -> None:
        admin = joined(cloud, Role.ADMIN, "eve")
        reply = invite(admin, {**BOB, "role": role.value})
        if role is Role.OWNER:
            assert outcome(reply) == (403, "missing_role")
            assert "owner" in reply.message
            assert open_ones(cloud) == []
        else:
            assert reply.status == 200

    def test_an_admin_cannot_replace_the_invitation_of_an_owner(self, cloud: Cloud, ada: Person) -> None:
        invite(ada, {**BOB, "role": "OWNER"})
        admin = joined(cloud, Role.ADMIN, "eve")
        assert outcome(invite(admin)) == (403, "missing_role")
        assert open_ones(cloud) == [("bob@acme.example", Role.OWNER)]

    def test_one_forbidden_role_in_a_list_refuses_the_whole_list(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox
    ) -> None:
        admin = joined(cloud, Role.ADMIN, "eve")
        body = [BOB, {"email": "zoe@acme.example", "role": "OWNER"}]
        assert outcome(invite(admin, body)) == (403, "missing_role")
        assert open_ones(cloud) == []
        assert mailbox.jobs == []


class TestInvitedAgain:
    def test_a_later_invitation_replaces_the_earlier_one(self, cloud: Cloud, ada: Person, mailbox: Mailbox) -> None:
        bob = newcomer()
        invite(ada)
        first = token_in(mailbox)
        invite(ada, {"email": "BOB@acme.example", "role": "VIEWER"})
        second = token_in(mailbox)
        assert open_ones(cloud) == [("bob@acme.example", Role.VIEWER)]
        assert accept(bob, first) == (404, "invitation_not_found")
        assert accept(bob, second) == (200, "")
        assert bob.send("GET", "/v2/teams/acme").json["membership"]["role"] == "VIEWER"

    def test_of_two_links_from_a_repeated_job_only_one_works(self, ada: Person, mailbox: Mailbox) -> None:
        bob = newcomer()
        invite(ada)
        mailbox.payloads.append(mailbox.payloads[0])
        tokens = [link_in(message).partition("=")[2] for message in mailbox.deliver()]
        assert len(set(tokens)) == 2
        assert accept(bob, tokens[0]) == (200, "")
        assert accept(bob, tokens[1]) == (404, "invitation_not_found")


class TestInvitationLimitPerTeam:
    def test_a_team_can_have_as_many_invitations_as_the_option_says(
        self, cloud: Cloud, ada: Person, option: SetOption
    ) -> None:
        option("max_open_invitations", 2)
        answers = [outcome(invite(ada, {"email": f"b{n}@b.example"})) for n in range(3)]
        assert answers == [(200, ""), (200, ""), (409, "invitation_limit_reached")]
        assert len(open_ones(cloud)) == 2

    def test_a_list_over_the_limit_invites_no_one(self, cloud: Cloud, ada: Person, option: SetOption) -> None:
        option("max_open_invitations", 2)
        body = [{"email": f"b{n}@b.example"} for n in range(3)]
        assert outcome(invite(ada, body)) == (409, "invitation_limit_reached")
        assert open_ones(cloud) == []

    def test_a_replaced_invitation_counts_once(self, cloud: Cloud, ada: Person, option: SetOption) -> None:
        option("max_open_invitations", 1)
        assert [invite(ada).status for _ in range(3)] == [200, 200, 200]

    def test_expired_accepted_and_withdrawn_invitations_do_not_count(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox, option: SetOption
    ) -> None:
        option("max_open_invitations", 1)
        old = Invitee(email="old@b.example", address="old@b.example", role=Role.VIEWER)
        invitations.create_invitations(cloud.team.id, [old], by=None, now=clock.now() - LIFETIME)
        assert invite(ada).status == 200
        assert accept(newcomer(), token_in(mailbox)) == (200, "")
        uid = invite(ada, {"email": "eve@b.example"}).json["uid"]
        assert outcome(invite(ada, {"email": "zoe@b.example"}))[0] == 409
        assert ada.send("DELETE", f"/v1/teams/acme/members/{uid}").status == 200
        assert invite(ada, {"email": "zoe@b.example"}).status == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([BOB, {"email": "bob"}], "1.email"),
        ([{**BOB, "role": "BILLING"}], "0.role"),
        ([BOB, {**BOB, "email": "BOB@ACME.example"}], "email"),
        ({"email": ""}, "email"),
        ({"email": "bob"}, "email"),
        ({"email": "bob@"}, "email"),
        ({"email": "b@b.example, c@c.example"}, "email"),
        ({"email": "b@b.example\r\nBcc: c@c.example"}, "email"),
        ({"email": "a" * 300 + "@b.example"}, "email"),
        ({"email": "\ud800@b.example"}, "email"),
        ({**BOB, "role": "member"}, "role"),
        ({**BOB, "role": "BILLING"}, "role"),
        ({**BOB, "role": ""}, "role"),
    ],
)
def test_400_names_the_field_that_breaks_a_rule(cloud: Cloud, ada: Person, body: Any, field: str) -> None:
    reply = ada.send("POST", PATH, json_body=body)
    assert outcome(reply) == (400, "bad_request")
    assert reply.message.startswith(f"{field}: ")
    assert open_ones(cloud) == []


class TestRateLimits:
    @pytest.fixture(autouse=True)
    def counted_requests(self, option: SetOption) -> None:
        option("http_rate_limit_enabled", "true")
        option("max_open_invitations", 500)

    def test_an_address_gets_at_most_three_mails_an_hour_from_a_team(self, ada: Person, mailbox: Mailbox) -> None:
        same = ["bob@acme.example", "Bob@acme.example", "bob@ACME.example", "BOB@acme.example"]
        answers = [outcome(invite(ada, {"email": email})) for email in same]
        assert answers == [(200, "")] * 3 + [(429, "too_many_requests")]
        assert len(mailbox.jobs) == 3

    def test_a_user_can_send_at_most_sixty_an_hour(self, cloud: Cloud, ada: Person) -> None:
        for number in range(6):
            body = [{"email": f"b{number}-{inner}@b.example"} for inner in range(10)]
            assert invite(ada, body).status == 200
        reply = invite(ada)
        assert outcome(reply) == (429, "too_many_requests")
        assert 0 < int(reply.headers["retry-after"]) <= 3600
        assert invite(joined(cloud, Role.ADMIN, "eve")).status == 200

    def test_the_rate_limit_table_contains_no_address(self, ada: Person) -> None:
        invite(ada)
        items = aws.dynamodb().scan(TableName=settings().rate_limits_table)["Items"]
        assert len(items) == 2
        assert "bob" not in json.dumps(items)


class TestInviter:
    @pytest.mark.parametrize("change", ["leaves", "loses the role"])
    def test_an_invitation_ends_when_the_inviter_can_no_longer_invite(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox, change: str
    ) -> None:
        admin, bob = joined(cloud, Role.ADMIN, "eve"), newcomer()
        invite(admin)
        token = token_in(mailbox)
        if change == "leaves":
            remove_member(cloud.team.id, admin.user.id, by=None)
        else:
            add_member(cloud.team.id, admin.user.id, Role.MEMBER, now=clock.now())
        assert accept(bob, token) == (404, "invitation_not_found")
        add_member(cloud.team.id, admin.user.id, Role.ADMIN, now=clock.now())
        assert accept(bob, token) == (200, "")

    def test_an_invitation_as_owner_ends_when_the_inviter_is_no_longer_an_owner(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox
    ) -> None:
        owner, bob = joined(cloud, Role.OWNER, "eve"), newcomer()
        invite(owner, {**BOB, "role": "OWNER"})
        token = token_in(mailbox)
        add_member(cloud.team.id, owner.user.id, Role.ADMIN, now=clock.now())
        assert accept(bob, token) == (404, "invitation_not_found")


class TestFailures:
    def test_a_failed_handover_of_the_mail_is_retried(self, cloud: Cloud) -> None:
        ada = signed_in(cloud.user)
        with answering("lambda", "Invoke", error("TooManyRequestsException", 429)):
            assert invite(ada).status == 503
        with handed_over() as payloads:
            assert invite(ada).status == 200
        assert len(open_ones(cloud)) == 1
        assert accept(newcomer(), token_in(Mailbox(payloads))) == (200, "")

    def test_an_unavailable_table_invites_no_one(self, cloud: Cloud, ada: Person, mailbox: Mailbox) -> None:
        with unreachable("dynamodb", "TransactWriteItems"):
            assert invite(ada).status == 503
        assert open_ones(cloud) == []
        assert mailbox.jobs == []

    def test_no_mail_for_an_invitation_that_was_withdrawn_in_the_meantime(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox
    ) -> None:
        uid = invite(ada).json["uid"]
        ada.send("DELETE", f"/v1/teams/acme/members/{uid}")
        assert mailbox.deliver() == []

    def test_no_mail_for_a_team_that_was_deleted_in_the_meantime(self, ada: Person, mailbox: Mailbox) -> None:
        invite(ada)
        ada.send("DELETE", "/v1/teams/acme")
        assert mailbox.deliver() == []


class TestFunctionOfTheIntegrator:
    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch, option: SetOption) -> list[Any]:
        calls: list[Any] = []
        module = ModuleType("integrator")
        module.send_team_invitation = lambda data, request: calls.append((data, request))  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "integrator", module)
        extensions.clear_hooks()
        option("extensions", "integrator")
        return calls

    def test_it_gets_the_link_the_team_and_the_role(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox, calls: list[Any]
    ) -> None:
        invite(ada)
        assert mailbox.deliver() == []
        ((data, request),) = calls
        assert data == {
            "email": "bob@acme.example",
            "url": f"https://cache.example.com/join?token={data['token']}",
            "token": data["token"],
            "team": {"id": cloud.team.id, "slug": "acme", "name": "Acme"},
            "role": "DEVELOPER",
        }
        assert request["path"] == PATH
        assert accept(newcomer(), data["token"]) == (200, "")


def test_a_key_with_the_permission_invites_for_its_user(cloud: Cloud, ada: Person, mailbox: Mailbox) -> None:
    by_key = Person(ada.user, key_of(ada, {"teams": ("write",)}, team_id=cloud.team.id))
    assert invite(by_key).status == 200
    (made,) = invitations.open_invitations(cloud.team.id, now=clock.now())
    assert made.invited_by == ada.user.id
