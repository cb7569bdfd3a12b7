"""The first trusted key of a team protects the team in the same transaction."""

import pytest

from larder import clock
from larder.accounts.email_jobs import TeamProtected
from larder.accounts.service import create_user
from larder.audit.service import read_entries
from larder.tables import commit
from larder.teams.members import add_member
from larder.teams.models import Role
from larder.teams.protection import first_trust, read_protection
from tests.mailbox import Mailbox
from tests.requests import Cloud, Reply, Sender
from tests.trust.scene import protect, session

CREATE = "/api/auth/api-key/create"

pytestmark = pytest.mark.usefixtures("mailbox")


def create(send: Sender, cloud: Cloud, **more: object) -> Reply:
    body = {
        "teamId": cloud.team.id,
        "permissions": {"artifacts": ["read", "write", "trust"]},
        **more,
    }
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
