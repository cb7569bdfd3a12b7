"""DELETE /v1/teams/{idOrSlug}/keys/{keyId}, and the keys of a member who is removed."""

import pytest

from larder import clock
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.properties import NewKey
from larder.teams.members import add_member
from larder.teams.models import Role
from tests.faults import unreachable
from tests.functions.teams.people import KEYS, Person, joined, outcome, team_key
from tests.requests import Cloud, Sender

STATUS = "/v8/artifacts/status"


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN])
def test_owners_and_admins_list_and_delete_the_keys_of_all_members(cloud: Cloud, role: Role) -> None:
    manager, bob = joined(cloud, role, "eve"), joined(cloud, Role.DEVELOPER)
    key, raw = team_key(cloud, bob)
    create_key(NewKey(user_id=bob.user.id), now=clock.now())
    reply = manager.send("GET", KEYS)
    owners = {each["id"]: each["uid"] for each in reply.json["keys"]}
    assert owners == {cloud.key.id: cloud.user.id, key.id: bob.user.id}
    for secret in (raw, key.key_hash, cloud.token):
        assert secret not in reply.body.decode()
    deleted = manager.send("DELETE", f"{KEYS}/{key.id}")
    assert (deleted.status, deleted.json) == (200, {"id": key.id})
    assert Sender(raw)("GET", STATUS).status == 401
    assert outcome(manager.send("DELETE", f"{KEYS}/{key.id}")) == (404, "key_not_found")


def test_keys_of_other_teams_and_keys_without_a_team_are_not_found(cloud: Cloud, ada: Person) -> None:
    own, _ = create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    for key_id in (own.id, "A" * 32, "x", "%00"):
        assert outcome(ada.send("DELETE", f"{KEYS}/{key_id}")) == (404, "key_not_found")
    assert find_key(own.id) is not None


@pytest.mark.parametrize("leaves", [True, False])
def test_keys_of_a_removed_member_are_deleted_and_stay_invalid(cloud: Cloud, ada: Person, leaves: bool) -> None:
    bob = joined(cloud, Role.DEVELOPER)
    key, raw = team_key(cloud, bob)
    own, _ = create_key(NewKey(user_id=bob.user.id), now=clock.now())
    actor = bob if leaves else ada
    assert actor.send("DELETE", f"/v1/teams/acme/members/{bob.user.id}").status == 200
    assert find_key(key.id) is None
    assert find_key(own.id) is not None
    add_member(cloud.team.id, bob.user.id, Role.DEVELOPER, now=clock.now())
    assert Sender(raw)("GET", STATUS).status == 401


def test_a_key_of_an_earlier_membership_is_refused(cloud: Cloud, ada: Person) -> None:
    bob = joined(cloud, Role.DEVELOPER)
    _, raw = team_key(cloud, bob)
    with unreachable("dynamodb", "Query"):
        assert ada.send("DELETE", f"/v1/teams/acme/members/{bob.user.id}").status == 200
    assert outcome(Sender(raw)("GET", STATUS)) == (403, "not_a_team_member")
    add_member(cloud.team.id, bob.user.id, Role.DEVELOPER, now=clock.now())
    assert outcome(Sender(raw)("GET", STATUS)) == (403, "not_a_team_member")
    _, new = team_key(cloud, bob)
    assert Sender(new)("GET", STATUS).status == 200
