"""POST /v2/teams/{idOrSlug}/members, and as /v1"""

import json
import re
import sys
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from larder import aws, clock, extensions
from larder.accounts.email_jobs import EmailKind
from larder.accounts.service import create_user
from larder.clock import to_ms
from larder.invitations import service as invitations
from larder.invitations.models import LIFETIME, Invitee
from larder.settings import settings
from larder.teams.models import Block, Role
from larder.teams.service import add_member, change_state, remove_member
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
    """Delivers; the token of the newest mail."""
    return mailbox.link().removeprefix("/join?token=")


def accept(person: Person, token: str) -> tuple[int, str]:
    return outcome(person.send("POST", "/v1/teams/join", json_body={"token": token}))


def open_ones(cloud: Cloud) -> list[tuple[str, Role]]:
    return [
        (one.email, one.role)
        for one in invitations.open_invitations(cloud.team.id, now=clock.now())
    ]


def test_the_answer_names_the_invitation_in_place_of_a_user(cloud: Cloud, ada: Person) -> None:
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


def test_the_first_version_of_the_path_does_the_same(cloud: Cloud, ada: Person) -> None:
    body = {**BOB, "projects": [], "uid": "ignored"}
    assert ada.send("POST", f"/v1/teams/{cloud.team.id}/members", json_body=body).status == 200
    assert open_ones(cloud) == [("bob@acme.example", Role.DEVELOPER)]


def test_a_list_is_answered_by_the_first_and_all(
    cloud: Cloud, ada: Person, mailbox: Mailbox
) -> None:
    answer = invite(ada, [BOB, {"email": "eve@acme.example"}]).json
    assert answer["email"] == "bob@acme.example"
    assert [(one["email"], one["role"]) for one in answer["invitations"]] == [
        ("bob@acme.example", "DEVELOPER"), ("eve@acme.example", "VIEWER"),
    ]  # fmt: skip
    assert {message.to for message in mailbox.deliver()} == {"bob@acme.example", "eve@acme.example"}


def test_mail_leads_to_the_page_that_joins(cloud: Cloud, ada: Person, mailbox: Mailbox) -> None:
    invite(ada)
    (message,) = mailbox.deliver()
    assert (message.to, message.subject) == ("bob@acme.example", "Larder: Join the team acme")
    assert re.fullmatch(r"/join\?token=[A-Za-z0-9]{40}", link_in(message))
    assert "https://cache.example.com/join?token=" in message.text
    assert "seven days" in message.text
    assert cloud.team.name not in message.text


def test_the_token_is_stored_as_a_hash_alone(ada: Person, mailbox: Mailbox) -> None:
    invite(ada)
    (job,) = mailbox.payloads
    token = token_in(mailbox)
    assert token not in json.dumps(job)
    stored = json.dumps(aws.dynamodb().scan(TableName=settings().teams_table)["Items"])
    assert token not in stored
    assert "invitation#" in stored


class TestWhoHasAnAccountIsNotTold:
    def test_a_known_and_an_unknown_address_are_answered_alike(
        self, ada: Person, mailbox: Mailbox
    ) -> None:
        create_user("known@b.example", "Known", now=clock.now())
        # The instance has seen the session before either.
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

    def test_a_member_is_invited_like_anybody(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox
    ) -> None:
        """Their role stays when they accept: it is changed by another request."""
        bob = joined(cloud, Role.MEMBER)
        assert invite(ada, {**BOB, "role": "ADMIN"}).status == 200
        assert accept(bob, token_in(mailbox)) == (200, "")
        team = bob.send("GET", "/v2/teams/acme").json
        assert team["membership"]["role"] == "MEMBER"
        assert open_ones(cloud) == []

    def test_the_job_is_the_same_for_both(self, ada: Person, mailbox: Mailbox) -> None:
        create_user("known@b.example", "Known", now=clock.now())
        invite(ada, [{"email": "known@b.example"}, {"email": "other@b.example"}])
        known, other = mailbox.jobs
        assert known.kind == other.kind == EmailKind.TEAM_INVITATION
        assert known.user_id is other.user_id is None


class TestWhatIsInvitedAs:
    @pytest.mark.parametrize("role", list(Role))
    def test_an_owner_invites_as_anything(self, cloud: Cloud, ada: Person, role: Role) -> None:
        assert invite(ada, {**BOB, "role": role.value}).json["role"] == role.value

    @pytest.mark.parametrize("role", list(Role))
    def test_an_admin_invites_as_anything_but_an_owner(
        self, cloud: Cloud, ada: Person, role: Role
    ) -> None:
        admin = joined(cloud, Role.ADMIN, "eve")
        reply = invite(admin, {**BOB, "role": role.value})
        if role is Role.OWNER:
            assert outcome(reply) == (403, "missing_role")
            assert "owner" in reply.message
            assert open_ones(cloud) == []
        else:
            assert reply.status == 200

    def test_an_admin_does_not_replace_the_invitation_of_an_owner(
        self, cloud: Cloud, ada: Person
    ) -> None:
        invite(ada, {**BOB, "role": "OWNER"})
        admin = joined(cloud, Role.ADMIN, "eve")
        assert outcome(invite(admin)) == (403, "missing_role")
        assert open_ones(cloud) == [("bob@acme.example", Role.OWNER)]

    def test_a_list_with_one_that_may_not_be_invites_nobody(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox
    ) -> None:
        admin = joined(cloud, Role.ADMIN, "eve")
        body = [BOB, {"email": "zoe@acme.example", "role": "OWNER"}]
        assert outcome(invite(admin, body)) == (403, "missing_role")
        assert open_ones(cloud) == []
        assert mailbox.jobs == []


class TestInvitedAgain:
    def test_the_later_one_takes_the_place_of_the_earlier(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox
    ) -> None:
        bob = newcomer()
        invite(ada)
        first = token_in(mailbox)
        invite(ada, {"email": "BOB@acme.example", "role": "VIEWER"})
        second = token_in(mailbox)
        assert open_ones(cloud) == [("bob@acme.example", Role.VIEWER)]
        assert accept(bob, first) == (404, "invitation_not_found")
        assert accept(bob, second) == (200, "")
        assert bob.send("GET", "/v2/teams/acme").json["membership"]["role"] == "VIEWER"

    def test_a_mail_that_comes_twice_holds_two_links_of_which_one_works(
        self, ada: Person, mailbox: Mailbox
    ) -> None:
        bob = newcomer()
        invite(ada)
        mailbox.payloads.append(mailbox.payloads[0])
        tokens = [link_in(message).partition("=")[2] for message in mailbox.deliver()]
        assert len(set(tokens)) == 2
        assert accept(bob, tokens[0]) == (200, "")
        assert accept(bob, tokens[1]) == (404, "invitation_not_found")


class TestHowManyAreOpen:
    def test_as_many_as_the_option_says(self, cloud: Cloud, ada: Person, option: SetOption) -> None:
        option("max_open_invitations", 2)
        answers = [outcome(invite(ada, {"email": f"b{n}@b.example"})) for n in range(3)]
        assert answers == [(200, ""), (200, ""), (409, "invitation_limit_reached")]
        assert len(open_ones(cloud)) == 2

    def test_a_list_that_passes_it_invites_nobody(
        self, cloud: Cloud, ada: Person, option: SetOption
    ) -> None:
        option("max_open_invitations", 2)
        body = [{"email": f"b{n}@b.example"} for n in range(3)]
        assert outcome(invite(ada, body)) == (409, "invitation_limit_reached")
        assert open_ones(cloud) == []

    def test_one_that_takes_the_place_of_another_adds_none(
        self, cloud: Cloud, ada: Person, option: SetOption
    ) -> None:
        option("max_open_invitations", 1)
        assert [invite(ada).status for _ in range(3)] == [200, 200, 200]

    def test_those_that_are_over_used_or_withdrawn_make_room(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox, option: SetOption
    ) -> None:
        option("max_open_invitations", 1)
        old = Invitee(email="old@b.example", address="old@b.example", role=Role.VIEWER)
        invitations.invite(cloud.team.id, [old], by=None, now=clock.now() - LIFETIME)
        assert invite(ada).status == 200
        assert accept(newcomer(), token_in(mailbox)) == (200, "")
        uid = invite(ada, {"email": "eve@b.example"}).json["uid"]
        assert outcome(invite(ada, {"email": "zoe@b.example"}))[0] == 409
        assert ada.send("DELETE", f"/v1/teams/acme/members/{uid}").status == 200
        assert invite(ada, {"email": "zoe@b.example"}).status == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "email"),
        ("bob@acme.example", "body"),
        (5, "body"),
        ([], "body"),
        ([BOB] * 11, "body"),
        ([BOB, {"email": "b@b.example", "role": 5}], "1.role"),
        ([BOB, "x"], "1"),
        ([BOB, {"email": "bob"}], "1.email"),
        ([{**BOB, "role": "BILLING"}], "0.role"),
        ([BOB, {**BOB, "email": "BOB@ACME.example"}], "email"),
        ({"role": "MEMBER"}, "email"),
        ({"email": None}, "email"),
        ({"email": ""}, "email"),
        ({"email": "bob"}, "email"),
        ({"email": "bob@"}, "email"),
        ({"email": "b@b.example, c@c.example"}, "email"),
        ({"email": "b@b.example\r\nBcc: c@c.example"}, "email"),
        ({"email": "a" * 300 + "@b.example"}, "email"),
        ({"email": "\ud800@b.example"}, "email"),
        ({"email": ["b@b.example"]}, "email"),
        ({**BOB, "role": "member"}, "role"),
        ({**BOB, "role": "BILLING"}, "role"),
        ({**BOB, "role": ""}, "role"),
        ({**BOB, "role": None}, "role"),
        ({**BOB, "role": ["OWNER"]}, "role"),
    ],
)
def test_400_names_the_field_that_breaks_a_rule(
    cloud: Cloud, ada: Person, body: Any, field: str
) -> None:
    reply = ada.send("POST", PATH, json_body=body)
    assert outcome(reply) == (400, "bad_request")
    assert reply.message.startswith(f"{field}: ")
    assert open_ones(cloud) == []


@pytest.mark.parametrize("block", list(Block))
def test_402_in_a_team_that_is_blocked(
    cloud: Cloud, ada: Person, mailbox: Mailbox, block: Block
) -> None:
    change_state(cloud.team.id, block=block)
    assert invite(ada).status == 402
    assert mailbox.jobs == []


class TestTheHttpLimits:
    @pytest.fixture(autouse=True)
    def counted_requests(self, option: SetOption) -> None:
        option("http_rate_limit_enabled", "true")
        option("max_open_invitations", 500)

    def test_one_address_gets_three_mails_an_hour_of_a_team(
        self, ada: Person, mailbox: Mailbox
    ) -> None:
        same = ["bob@acme.example", "Bob@acme.example", "bob@ACME.example", "BOB@acme.example"]
        answers = [outcome(invite(ada, {"email": email})) for email in same]
        assert answers == [(200, "")] * 3 + [(429, "too_many_requests")]
        assert len(mailbox.jobs) == 3

    def test_one_user_sends_sixty_an_hour(self, cloud: Cloud, ada: Person) -> None:
        for number in range(6):
            body = [{"email": f"b{number}-{inner}@b.example"} for inner in range(10)]
            assert invite(ada, body).status == 200
        reply = invite(ada)
        assert outcome(reply) == (429, "too_many_requests")
        assert 0 < int(reply.headers["retry-after"]) <= 3600
        assert invite(joined(cloud, Role.ADMIN, "eve")).status == 200

    def test_no_address_stands_in_the_table_that_counts(self, ada: Person) -> None:
        invite(ada)
        items = aws.dynamodb().scan(TableName=settings().rate_limits_table)["Items"]
        assert len(items) == 2
        assert "bob" not in json.dumps(items)


class TestWhoInvited:
    @pytest.mark.parametrize("change", ["leaves", "manages no members any more"])
    def test_an_invitation_ends_with_the_right_to_make_it(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox, change: str
    ) -> None:
        admin, bob = joined(cloud, Role.ADMIN, "eve"), newcomer()
        invite(admin)
        token = token_in(mailbox)
        if change == "leaves":
            remove_member(cloud.team.id, admin.user.id)
        else:
            add_member(cloud.team.id, admin.user.id, Role.MEMBER, now=clock.now())
        assert accept(bob, token) == (404, "invitation_not_found")
        add_member(cloud.team.id, admin.user.id, Role.ADMIN, now=clock.now())
        assert accept(bob, token) == (200, "")

    def test_one_as_an_owner_ends_when_who_made_it_is_an_owner_no_more(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox
    ) -> None:
        owner, bob = joined(cloud, Role.OWNER, "eve"), newcomer()
        invite(owner, {**BOB, "role": "OWNER"})
        token = token_in(mailbox)
        add_member(cloud.team.id, owner.user.id, Role.ADMIN, now=clock.now())
        assert accept(bob, token) == (404, "invitation_not_found")


class TestWhenSomethingFails:
    def test_mail_that_could_not_be_handed_over_is_asked_for_again(self, cloud: Cloud) -> None:
        ada = signed_in(cloud.user)
        with answering("lambda", "Invoke", error("TooManyRequestsException", 429)):
            assert invite(ada).status == 503
        with handed_over() as payloads:
            assert invite(ada).status == 200
        assert len(open_ones(cloud)) == 1
        assert accept(newcomer(), token_in(Mailbox(payloads))) == (200, "")

    def test_a_store_that_does_not_answer_invites_nobody(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox
    ) -> None:
        with unreachable("dynamodb", "TransactWriteItems"):
            assert invite(ada).status == 503
        assert open_ones(cloud) == []
        assert mailbox.jobs == []

    def test_no_mail_for_an_invitation_that_was_withdrawn_meanwhile(
        self, cloud: Cloud, ada: Person, mailbox: Mailbox
    ) -> None:
        uid = invite(ada).json["uid"]
        ada.send("DELETE", f"/v1/teams/acme/members/{uid}")
        assert mailbox.deliver() == []

    def test_no_mail_for_a_team_that_was_deleted_meanwhile(
        self, ada: Person, mailbox: Mailbox
    ) -> None:
        invite(ada)
        ada.send("DELETE", "/v1/teams/acme")
        assert mailbox.deliver() == []


class TestTheIntegratorsOwnFunction:
    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch, option: SetOption) -> list[Any]:
        calls: list[Any] = []
        module = ModuleType("integrator")
        module.deliver = lambda data, request: calls.append((data, request))  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "integrator", module)
        extensions.forget_functions()
        option("send_team_invitation", "integrator:deliver")
        return calls

    def test_it_gets_the_link_and_what_it_is_for(
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


def test_a_key_with_the_permission_invites_in_its_users_name(
    cloud: Cloud, ada: Person, mailbox: Mailbox
) -> None:
    by_key = Person(ada.user, key_of(ada, {"teams": ("write",)}, team_id=cloud.team.id))
    assert invite(by_key).status == 200
    (made,) = invitations.open_invitations(cloud.team.id, now=clock.now())
    assert made.invited_by == ada.user.id
