"""Who made the rules and trusted keys of a team, and the emails to its owners."""

from typing import Any

import pytest

from larder import clock
from larder.accounts.models import User
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.teams.models import Role
from tests.functions.teams.people import Person, joined
from tests.functions.teams.rules import IDS, RULES, made
from tests.mailbox import Mailbox, link_in
from tests.requests import Cloud

CREATE = "/api/auth/api-key/create"
PINNED = {"provider": "github", "pinned": IDS}
TRUSTED: dict[str, Any] = {"permissions": {"artifacts": ["read", "write", "trust"]}}


@pytest.fixture
def olga(cloud: Cloud) -> User:
    """A second owner, who gets email."""
    return joined(cloud, Role.OWNER, "olga").user


@pytest.fixture
def adam(cloud: Cloud, olga: User) -> Person:
    return joined(cloud, Role.ADMIN, "adam")


def add_rule(person: Person, **more: Any) -> dict[str, Any]:
    reply = person.send("POST", RULES, json_body={**PINNED, "protect": False, **more})
    assert reply.status == 200, reply
    return dict(reply.json)


def makers(person: Person) -> list[Any]:
    found = person.send("GET", RULES).json["rules"]
    for rule in found:
        one = person.send("GET", f"{RULES}/{rule['id']}").json
        assert one["createdBy"] == rule["createdBy"]
    return [rule["createdBy"] for rule in found]


def test_the_owners_get_an_email_for_each_rule(adam: Person, olga: User, mailbox: Mailbox) -> None:
    rule = add_rule(adam)
    (mail,) = mailbox.deliver()
    assert (mail.to, "New rule for CI jobs of acme" in mail.subject) == (olga.email, True)
    assert rule["id"] in mail.text
    assert adam.user.email in mail.text
    assert link_in(mail) == "/console/t/acme/protection"


@pytest.mark.parametrize("bound", [True, False])
def test_the_owners_get_an_email_for_each_trusted_key(
    cloud: Cloud, adam: Person, olga: User, mailbox: Mailbox, bound: bool
) -> None:
    team = {"teamId": cloud.team.id} if bound else {}
    sent = {**TRUSTED, **team, "expiresIn": 86_400, "protect": False}
    key = adam.send("POST", CREATE, json_body=sent).json
    (mail,) = mailbox.deliver()
    assert (mail.to, "New trusted API key of acme" in mail.subject) == (olga.email, True)
    assert key["id"] in mail.text
    assert adam.user.email in mail.text
    assert key["key"] not in mail.text
    assert link_in(mail) == "/console/t/acme/keys"
    plain = {**team, "expiresIn": 86_400}
    assert adam.send("POST", CREATE, json_body=plain).status == 200
    assert len(mailbox.deliver()) == 1


def test_a_trusted_key_of_a_member_who_is_not_trusted_needs_no_email(
    cloud: Cloud, olga: User, mailbox: Mailbox
) -> None:
    dev = joined(cloud, Role.DEVELOPER, "dev")
    sent = {**TRUSTED, "expiresIn": 86_400}
    assert dev.send("POST", CREATE, json_body=sent).status == 200
    assert mailbox.jobs == []


def test_rules_name_who_made_them(cloud: Cloud, ada: Person, adam: Person, mailbox: Mailbox) -> None:
    add_rule(adam)
    made(cloud, provider="github", pinned={"repository_owner_id": "1"})
    assert makers(ada) == [
        {"uid": adam.user.id, "email": adam.user.email, "role": "ADMIN"},
        {"uid": None, "email": None, "role": None},
    ]
    member = f"/v1/teams/acme/members/{adam.user.id}"
    assert ada.send("PATCH", member, json_body={"role": "VIEWER"}).status == 200
    assert makers(ada)[0]["role"] == "VIEWER"
    assert ada.send("DELETE", member).status == 200
    assert makers(ada)[0] == {"uid": adam.user.id, "email": adam.user.email, "role": None}


def leaving(adam: Person, ada: Person, how: str) -> None:
    member = f"/v1/teams/acme/members/{adam.user.id}"
    match how:
        case "removed":
            reply = ada.send("DELETE", member)
        case "leaves":
            reply = adam.send("DELETE", member)
        case "lowered":
            reply = ada.send("PATCH", member, json_body={"role": "DEVELOPER"})
        case _:
            reply = adam.send("POST", "/api/auth/delete-user", json_body={})
    assert reply.status == 200, reply


@pytest.mark.parametrize("how", ["removed", "leaves", "lowered", "deleted"])
def test_the_owners_learn_what_someone_leaves_behind(
    cloud: Cloud, ada: Person, adam: Person, olga: User, mailbox: Mailbox, how: str
) -> None:
    rule = add_rule(adam)
    other = made(cloud, provider="github", pinned={"repository_owner_id": "1"})
    new = NewKey(user_id=adam.user.id, team_id=cloud.team.id, permissions={"artifacts": ("read", "trust")})
    key, _ = create_key(new, now=clock.now())
    plain, _ = create_key(NewKey(user_id=adam.user.id, team_id=cloud.team.id), now=clock.now())
    mailbox.deliver()
    leaving(adam, ada, how)
    mail, *_ = mailbox.deliver()
    assert (mail.to, "Check the rules and keys of acme" in mail.subject) == (olga.email, True)
    assert all(one in mail.text for one in (rule["id"], key.id, adam.user.email))
    assert not any(one in mail.text for one in (other.id, plain.id))


def test_no_email_if_nothing_is_left_behind(cloud: Cloud, ada: Person, adam: Person, mailbox: Mailbox) -> None:
    leaving(adam, ada, "removed")
    promoted = joined(cloud, Role.ADMIN, "eve")
    add_rule(promoted)
    mailbox.deliver()
    member = f"/v1/teams/acme/members/{promoted.user.id}"
    assert ada.send("PATCH", member, json_body={"role": "OWNER"}).status == 200
    assert mailbox.jobs == []
