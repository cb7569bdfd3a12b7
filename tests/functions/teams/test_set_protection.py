"""PUT /v1/teams/{idOrSlug}/protection"""

import pytest

from larder import clock
from larder.audit.models import Action
from larder.audit.service import read_entries
from larder.clock import from_ms, to_ms
from larder.errors import MissingRole, TeamNotFound
from larder.teams.members import add_member
from larder.teams.models import Member, Role
from larder.teams.protection import ProtectionChange, change_protection, read_protection
from larder.teams.teams import delete_team
from tests.functions.teams.conftest import co_owner
from tests.functions.teams.people import JSON, Person, joined, outcome
from tests.requests import Cloud

PROTECTION = "/v1/teams/acme/protection"
ON: JSON = {"protected": True}


def test_an_owner_protects_the_team(cloud: Cloud, ada: Person) -> None:
    before = to_ms(clock.now())
    reply = ada.send("PUT", PROTECTION, json_body={**ON, "people": "read", "unsigned": "refuse"})
    assert reply.status == 200
    trusted_from = reply.json["trustedFrom"]
    assert 2000 <= trusted_from - before < 60_000
    assert reply.json == {
        "protected": True,
        "trustedFrom": trusted_from,
        "keepStored": False,
        "people": "read",
        "overwrites": "keep",
        "unsigned": "refuse",
        "lastSharedUploadAt": None,
        "idle": False,
    }
    assert ada.send("GET", PROTECTION).json == reply.json
    # A missing field stays, and protecting again does not move the moment.
    assert ada.send("PUT", PROTECTION, json_body=ON).json == reply.json
    (entry, *_) = read_entries(cloud.team.id, limit=1, now=clock.now()).entries
    assert (entry.action, entry.subject) == (
        Action.PROTECTION_SET,
        "protected=true people=read overwrites=keep unsigned=refuse",
    )
    assert entry.actor is not None
    assert entry.actor.user_id == cloud.user.id


def test_what_is_stored_can_be_kept(cloud: Cloud, ada: Person) -> None:
    reply = ada.send("PUT", PROTECTION, json_body={**ON, "keepStored": True})
    assert (reply.json["trustedFrom"], reply.json["keepStored"]) == (None, True)
    assert read_protection(cloud.team.id).trusted_from == from_ms(0)
    assert ada.send("PUT", PROTECTION, json_body={"protected": False}).json["keepStored"] is False
    assert ada.send("PUT", PROTECTION, json_body=ON).json["trustedFrom"] is not None


def test_an_admin_can_only_turn_it_on(cloud: Cloud, ada: Person) -> None:
    admin = joined(cloud, Role.ADMIN)
    refused = (403, "missing_role")
    for body in ({**ON, "people": "read"}, {**ON, "keepStored": True}, {"protected": False}):
        assert outcome(admin.send("PUT", PROTECTION, json_body=body)) == refused
    for _ in range(2):
        # Sent again after a lost reply, it changes nothing.
        assert outcome(admin.send("PUT", PROTECTION, json_body=ON)) == (200, "")
    for body in ({"protected": False}, {**ON, "overwrites": "replace"}):
        assert outcome(admin.send("PUT", PROTECTION, json_body=body)) == refused
    assert outcome(ada.send("PUT", PROTECTION, json_body={"protected": False})) == (200, "")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**ON, "people": "all"}, "people"),
        ({**ON, "unsigned": "reject"}, "unsigned"),
        ({"protected": False, "keepStored": True}, "keepStored"),
    ],
)
def test_400_for_a_value_that_cannot_be(ada: Person, body: JSON, field: str) -> None:
    reply = ada.send("PUT", PROTECTION, json_body=body)
    assert outcome(reply) == (400, "bad_request")
    assert reply.message.startswith(f"{field}:")


def test_a_role_that_was_lost_meanwhile_changes_nothing(cloud: Cloud) -> None:
    """The member is as the request read it. The transaction checks the role again."""
    co_owner(cloud)
    was_owner = Member(user_id=cloud.user.id, role=Role.OWNER, joined_at=clock.now())
    add_member(cloud.team.id, cloud.user.id, Role.ADMIN, now=clock.now())
    with pytest.raises(MissingRole):
        change_protection(cloud.team.id, ProtectionChange(protected=False), by=was_owner)
    delete_team(cloud.team.id, by=None, now=clock.now())
    with pytest.raises(TeamNotFound):
        change_protection(cloud.team.id, ProtectionChange(protected=True), by=None)
