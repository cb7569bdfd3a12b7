"""The first trusted key of a team, or its first rule, protects the team in the same transaction."""

from datetime import timedelta

import pytest
import time_machine

from larder import aws, clock
from larder.accounts.email_jobs import MailContext, RequestDescription, TeamProtected, send_later
from larder.accounts.service import create_user
from larder.audit.service import read_entries
from larder.tables import commit
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.protection import first_trust, read_protection
from larder.trust.rules import list_rules
from tests.conftest import SetOption
from tests.functions.teams.people import Person, joined, outcome
from tests.hooks import hooked
from tests.mailbox import Mailbox
from tests.requests import Cloud, Reply, Sender
from tests.trust.scene import POISON, protect, put, read, session, trusted_key

CREATE = "/api/auth/api-key/create"
RULES = "/v1/teams/acme/rules"
RULE = {"provider": "github", "repository": "acme/web"}

pytestmark = pytest.mark.usefixtures("mailbox")


def create(send: Sender, cloud: Cloud, **more: object) -> Reply:
    body = {"teamId": cloud.team.id, "permissions": {"artifacts": ["read", "write", "trust"]}, **more}
    return send("POST", CREATE, json_body=body)


def protection_entries(cloud: Cloud) -> list[str]:
    entries = read_entries(cloud.team.id, limit=100, now=clock.now()).entries
    return [entry.subject.split()[0] for entry in entries if entry.action == "protection_set"]


def test_the_first_trusted_key_protects_its_team(cloud: Cloud) -> None:
    in_person = session(cloud)
    reply = create(in_person, cloud)
    assert (reply.status, reply.json["teamProtected"]) == (200, True)
    protection = read_protection(cloud.team.id)
    assert protection.on is True
    assert not protection.keeps_stored
    assert "teamProtected" not in create(in_person, cloud).json
    assert read_protection(cloud.team.id) == protection
    assert protection_entries(cloud) == ["protected=true"]


def test_the_owners_get_an_email(cloud: Cloud, mailbox: Mailbox) -> None:
    now = clock.now()
    for name, role in (("olga", Role.OWNER), ("bob", Role.ADMIN)):
        user = create_user(f"{name}@acme.example", name, email_verified=True, now=now)
        add_member(cloud.team.id, user.id, role, now=now)
    in_person = session(cloud)
    create(in_person, cloud)
    create(in_person, cloud)
    jobs = [job for job in mailbox.jobs if isinstance(job, TeamProtected)]
    assert len(jobs) == 2
    (message,) = [one for one in mailbox.deliver() if "protected" in one.subject]
    assert message.to == "olga@acme.example"
    assert "The team acme at" in message.text


def test_naming_a_trusted_key_protects_no_team_if_the_option_says_never(cloud: Cloud, option: SetOption) -> None:
    option("protect_new_teams", "never")
    in_person = session(cloud)
    assert "teamProtected" not in create(in_person, cloud).json
    assert "teamProtected" not in in_person("POST", RULES, json_body=RULE).json
    assert read_protection(cloud.team.id).on is None
    assert in_person("PUT", "/v1/teams/acme/protection", json_body={"protected": True}).status == 200


def test_the_caller_can_decline(cloud: Cloud) -> None:
    in_person = session(cloud)
    assert "teamProtected" not in create(in_person, cloud, protect=False).json
    assert read_protection(cloud.team.id).on is False
    # It is decided now.
    assert "teamProtected" not in create(in_person, cloud).json
    assert read_protection(cloud.team.id).on is False
    assert protection_entries(cloud) == ["protected=false"]


def test_an_owner_who_turned_it_off_is_not_overruled(cloud: Cloud) -> None:
    protect(cloud, on=False)
    assert "teamProtected" not in create(session(cloud), cloud).json
    assert read_protection(cloud.team.id).on is False


@pytest.mark.parametrize("permissions", [None, {"artifacts": ["read", "write", "manage"]}])
def test_other_keys_decide_nothing(cloud: Cloud, permissions: object) -> None:
    reply = create(session(cloud), cloud, permissions=permissions)
    assert reply.status == 200
    assert read_protection(cloud.team.id).on is None


def test_a_key_without_a_team_protects_none(cloud: Cloud) -> None:
    reply = create(session(cloud), cloud, teamId=None)
    assert reply.status == 200
    assert read_protection(cloud.team.id).on is None


def test_a_refused_key_protects_nothing(cloud: Cloud, stranger: Sender) -> None:
    body = {"teamId": cloud.team.id, "permissions": {"artifacts": ["trust"], "teams": ["fly"]}}
    assert session(cloud)("POST", CREATE, json_body=body).status == 403
    assert read_protection(cloud.team.id).on is None


def test_of_two_first_keys_both_are_stored(cloud: Cloud) -> None:
    one = first_trust(cloud.team.id, protect=True, actor=None)
    other = first_trust(cloud.team.id, protect=False, actor=None)
    assert commit(*one.writes)
    assert commit(*other.writes)
    assert read_protection(cloud.team.id).on is True


def test_an_existing_key_cannot_get_trust(cloud: Cloud) -> None:
    in_person = session(cloud)
    body = {"keyId": cloud.key.id, "permissions": {"artifacts": ["read", "write", "trust"]}}
    reply = in_person("POST", "/api/auth/api-key/update", json_body=body)
    assert reply.status == 400
    assert "only a new key" in reply.json["message"]
    key_id = create(in_person, cloud).json["id"]
    for actions, status in ((["trust"], 200), (["read"], 200), (["trust"], 400)):
        body = {"keyId": key_id, "permissions": {"artifacts": actions}}
        assert in_person("POST", "/api/auth/api-key/update", json_body=body).status == status


# Rules -------------------------------------------------------------------------------------------


def add_rule(send: Sender, **more: object) -> Reply:
    return send("POST", RULES, json_body={**RULE, **more})


def test_the_first_rule_protects_its_team(cloud: Cloud, mailbox: Mailbox) -> None:
    in_person = session(cloud)
    reply = add_rule(in_person)
    assert (reply.status, reply.json["teamProtected"]) == (200, True)
    protection = read_protection(cloud.team.id)
    assert protection.on is True
    assert not protection.keeps_stored
    assert "teamProtected" not in add_rule(in_person).json
    assert "teamProtected" not in create(in_person, cloud).json
    assert read_protection(cloud.team.id) == protection
    assert protection_entries(cloud) == ["protected=true"]
    assert [job for job in mailbox.jobs if isinstance(job, TeamProtected)]


def admin(cloud: Cloud) -> Person:
    return joined(cloud, Role.ADMIN)


def test_an_admin_protects_the_team_with_the_first_rule(cloud: Cloud) -> None:
    assert add_rule(admin(cloud).send).json["teamProtected"] is True


def test_the_caller_of_the_first_rule_can_decline(cloud: Cloud, mailbox: Mailbox) -> None:
    in_person = session(cloud)
    assert "teamProtected" not in add_rule(in_person, protect=False).json
    assert read_protection(cloud.team.id).on is False
    # It is decided now.
    assert "teamProtected" not in add_rule(in_person).json
    assert read_protection(cloud.team.id).on is False
    assert protection_entries(cloud) == ["protected=false"]
    assert not [job for job in mailbox.jobs if isinstance(job, TeamProtected)]


@pytest.mark.parametrize("more", [{"others": "all"}, {"protect": "no"}, {"issuer": "https://ci.acme.example/oidc"}])
def test_a_refused_rule_protects_nothing(cloud: Cloud, more: dict[str, object]) -> None:
    assert add_rule(session(cloud), **more).status == 400
    assert read_protection(cloud.team.id).on is None


def test_a_rule_of_someone_who_is_demoted_meanwhile_protects_nothing(cloud: Cloud) -> None:
    in_person = admin(cloud)
    demotions = iter([Role.MEMBER])

    def demote(**_: object) -> None:
        if role := next(demotions, None):
            add_member(cloud.team.id, in_person.user.id, role, now=clock.now())

    with hooked("before-call.dynamodb.TransactWriteItems", demote, aws.dynamodb()):
        reply = add_rule(in_person.send)
    assert outcome(reply) == (403, "missing_role")
    assert list_rules(cloud.team.id) == []
    assert read_protection(cloud.team.id).on is None


def test_a_slow_first_rule_counts_nothing_of_before_it(cloud: Cloud) -> None:
    """If the write takes longer than it is ahead, uploads of the meantime would count without another one."""
    with time_machine.travel(clock.now(), tick=False) as traveller:
        delays = iter([timedelta(seconds=5)])

        def upload_meanwhile(**_: object) -> None:
            if delay := next(delays, None):
                traveller.shift(delay)
                put(cloud.send, "abc", POISON)

        with hooked("before-call.dynamodb.TransactWriteItems", upload_meanwhile, aws.dynamodb()):
            assert add_rule(session(cloud)).json["teamProtected"] is True
        traveller.shift(timedelta(seconds=3))
        assert read(trusted_key(cloud), "abc") is None


def test_the_email_says_that_the_operator_ended_the_protection(cloud: Cloud, mailbox: Mailbox) -> None:
    olga = create_user("olga@acme.example", "Olga", email_verified=True, now=clock.now())
    context = MailContext(
        base_url="https://cache.example.com",
        request=RequestDescription(method="", path="", ip_address=None, user_agent=None),
    )
    send_later(TeamProtected(user_id=olga.id, team_id=cloud.team.id, ended=True, mail_context=context))
    (message,) = mailbox.deliver()
    assert "has ended the protection of the team acme" in message.text
