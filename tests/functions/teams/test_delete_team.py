"""DELETE /v1/teams/{idOrSlug}"""

import pytest

from larder import clock
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.errors import InvitationNotFound, TeamNotFound
from larder.invitations import service as invitations
from larder.invitations.models import Invitee
from larder.teams.members import change_role, role_of
from larder.teams.models import Member, Role
from larder.teams.state import change_state
from larder.teams.teams import create_team, deleted_teams, find_team
from tests.faults import unreachable
from tests.functions.teams.people import Person, joined, newcomer, outcome
from tests.requests import Cloud, Reply, Sender, invoke

GONE = (403, "not_a_team_member")


def delete(person: Person, team: str) -> Reply:
    return person.send("DELETE", f"/v1/teams/{team}")


@pytest.mark.parametrize("named_by", ["id", "slug"])
def test_the_reply_names_the_deleted_team(cloud: Cloud, ada: Person, named_by: str) -> None:
    reply = delete(ada, getattr(cloud.team, named_by))
    assert (reply.status, reply.json) == (200, {"id": cloud.team.id})
    assert find_team(cloud.team.id) is None
    assert find_team("acme") is None
    assert outcome(delete(ada, getattr(cloud.team, named_by))) == (404, "team_not_found")


def test_the_team_is_gone_for_everyone_at_the_next_request(cloud: Cloud, ada: Person, personal: Sender) -> None:
    bob = joined(cloud, Role.MEMBER)
    senders = [
        cloud.send,
        Sender(personal.token, slug="acme"),
        Sender(personal.token, team_id=cloud.team.id),
        Sender(bob.send.token, slug="acme"),
        Sender(cloud.token),
    ]
    for send in senders:
        assert send("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
    assert delete(ada, "acme").status == 200
    for send in senders:
        assert outcome(send("GET", "/v8/artifacts/abc")) == GONE
        assert outcome(send("PUT", "/v8/artifacts/abc", body=b"x")) == GONE
        assert outcome(send("GET", "/v8/artifacts/status")) == GONE
    for person in (ada, bob):
        assert outcome(person.send("GET", f"/v2/teams/{cloud.team.id}")) == (404, "team_not_found")
        assert person.send("GET", "/v2/teams").json["teams"] == []
        members = person.send("GET", f"/v3/teams/{cloud.team.id}/members")
        assert outcome(members) == (404, "team_not_found")


def test_no_other_team_can_take_its_slugs(cloud: Cloud, ada: Person) -> None:
    ada.send("PATCH", "/v2/teams/acme", json_body={"slug": "acme-inc"})
    assert delete(ada, "acme").status == 200
    invoke("teams.sweep_deleted_teams.handler", {})
    bob = newcomer()
    create_team("Bob's", "bobs", owner_user_id=bob.user.id, now=clock.now())
    for slug in ("acme", "acme-inc"):
        made = bob.send("POST", "/v1/teams", json_body={"slug": slug})
        assert outcome(made) == (409, "slug_taken")
        renamed = bob.send("PATCH", "/v2/teams/bobs", json_body={"slug": slug})
        assert outcome(renamed) == (409, "slug_taken")


def test_old_keys_do_not_reach_a_team_to_which_the_operator_gives_the_slug(cloud: Cloud, ada: Person) -> None:
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
    ada.send("PATCH", "/v2/teams/acme", json_body={"slug": "acme-inc"})
    assert cloud.send("GET", "/v8/artifacts/abc").status == 200
    assert delete(ada, "acme").status == 200
    bob = newcomer()
    for slug in ("acme", "acme-inc"):
        create_team(slug, slug, owner_user_id=bob.user.id, reuses_slug=True, now=clock.now())
        assert outcome(Sender(cloud.token, slug=slug)("GET", "/v8/artifacts/abc")) == GONE
        mine = Sender(ada.send.token, slug=slug)
        assert outcome(mine("PUT", "/v8/artifacts/abc", body=b"x")) == GONE


def test_a_new_team_with_the_same_slug_starts_empty(cloud: Cloud, ada: Person) -> None:
    joined(cloud, Role.MEMBER)
    assert cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
    change_state(cloud.team.id, quota_bytes=5)
    delete(ada, "acme")
    create_team("Acme", "acme", owner_user_id=ada.user.id, reuses_slug=True, now=clock.now())
    again = Sender(ada.send.token, slug="acme")
    assert outcome(again("GET", "/v8/artifacts/abc")) == (404, "artifact_not_found")
    assert again("GET", "/v8/artifacts/status").json == {"status": "enabled"}
    members = ada.send("GET", f"/v3/teams/{ada.send('GET', '/v2/teams/acme').json['id']}/members")
    assert [member["email"] for member in members.json["members"]] == ["ada@acme.example"]


def test_the_deletion_is_recorded_for_the_later_cleanup(cloud: Cloud, ada: Person) -> None:
    before = clock.now()
    delete(ada, "acme")
    ((team_id, deleted_at),) = deleted_teams()
    assert team_id == cloud.team.id
    assert before <= deleted_at <= clock.now()


def test_an_unavailable_table_leaves_the_team_complete(cloud: Cloud, ada: Person) -> None:
    with unreachable("dynamodb", "TransactWriteItems"):
        assert delete(ada, "acme").status == 503
    assert find_team("acme") == cloud.team
    assert deleted_teams() == []
    assert cloud.send("GET", "/v8/artifacts/status").status == 200


def test_no_one_can_join_or_change_roles_in_a_deleted_team(cloud: Cloud, ada: Person) -> None:
    now, bob = clock.now(), joined(cloud, Role.MEMBER)
    owner = Member(user_id=ada.user.id, role=Role.OWNER, joined_at=clock.now())
    eve = Invitee(email="eve@acme.example", address="eve@acme.example", role=Role.MEMBER)
    (invitation,) = invitations.create_invitations(cloud.team.id, [eve], by=owner, now=now)
    delete(ada, "acme")
    with pytest.raises(InvitationNotFound):
        invitations.accept(invitation, "a-user", now=now)
    with pytest.raises(TeamNotFound):
        invitations.create_invitations(cloud.team.id, [eve], by=owner, now=now)
    with pytest.raises(TeamNotFound):
        change_role(cloud.team.id, bob.user.id, Role.ADMIN, by=owner)
    assert role_of(cloud.team.id, "a-user") is None


def test_other_teams_of_the_user_stay(cloud: Cloud, ada: Person) -> None:
    other = create_team("Other", "other", owner_user_id=ada.user.id, now=clock.now())
    token = create_key(NewKey(user_id=ada.user.id, team_id=other.id), now=clock.now())[1]
    delete(ada, "acme")
    assert Sender(token)("GET", "/v8/artifacts/status").status == 200
    assert [team["slug"] for team in ada.send("GET", "/v2/teams").json["teams"]] == ["other"]


def test_a_user_who_deleted_their_only_team_can_delete_their_account(cloud: Cloud, ada: Person) -> None:
    delete(ada, "acme")
    reply = ada.send("POST", "/api/auth/delete-user", json_body={})
    assert reply.status == 200
