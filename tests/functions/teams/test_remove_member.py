"""DELETE /v1/teams/{idOrSlug}/members/{uid}"""

import pytest

from larder import clock
from larder.api_keys.keys import list_keys
from larder.invitations import service as invitations
from larder.invitations.models import LIFETIME, Invitation, Invitee
from larder.teams.members import role_of
from larder.teams.models import Role
from larder.teams.teams import create_team
from tests.faults import unreachable
from tests.functions.teams.people import Person, joined, key_of, newcomer, outcome
from tests.mailbox import Mailbox
from tests.requests import Cloud, Reply, Sender


def remove(person: Person, uid: str) -> Reply:
    return person.send("DELETE", f"/v1/teams/acme/members/{uid}")


def is_member(cloud: Cloud, person: Person) -> bool:
    return role_of(cloud.team.id, person.user.id) is not None


@pytest.mark.parametrize("role", list(Role))
def test_an_owner_can_remove_any_member(cloud: Cloud, ada: Person, role: Role) -> None:
    bob = joined(cloud, role)
    reply = remove(ada, bob.user.id)
    assert (reply.status, reply.json) == (200, {"id": cloud.team.id})
    assert not is_member(cloud, bob)


@pytest.mark.parametrize("role", list(Role))
def test_an_admin_can_remove_any_member_except_an_owner(cloud: Cloud, role: Role) -> None:
    admin, bob = joined(cloud, Role.ADMIN, "eve"), joined(cloud, role)
    expected = (403, "missing_role") if role is Role.OWNER else (200, "")
    assert outcome(remove(admin, bob.user.id)) == expected
    assert is_member(cloud, bob) is (role is Role.OWNER)


@pytest.mark.parametrize("role", list(Role))
def test_every_member_can_leave(cloud: Cloud, role: Role) -> None:
    bob = joined(cloud, role)
    assert remove(bob, bob.user.id).status == 200
    assert not is_member(cloud, bob)
    assert outcome(remove(bob, bob.user.id)) == (404, "team_not_found")


def test_the_only_owner_cannot_leave(cloud: Cloud, ada: Person) -> None:
    joined(cloud, Role.ADMIN)
    assert outcome(remove(ada, ada.user.id)) == (409, "last_owner")
    joined(cloud, Role.OWNER, "zoe")
    assert remove(ada, ada.user.id).status == 200


def test_it_takes_effect_at_the_next_request(cloud: Cloud, ada: Person) -> None:
    bob = joined(cloud, Role.MEMBER)
    bound = key_of(bob, {"artifacts": ("read", "write")}, team_id=cloud.team.id)
    senders = [Sender(bob.send.token, slug="acme"), Sender(bound.token, slug="acme"), bound]
    for send in senders:
        assert send("PUT", "/v8/artifacts/abc", body=b"x").status == 202
    remove(ada, bob.user.id)
    refusals = [outcome(send("GET", "/v8/artifacts/abc")) for send in senders]
    assert refusals == [(403, "not_a_team_member"), (401, "unauthorized"), (401, "unauthorized")]
    assert outcome(bob.send("GET", "/v2/teams/acme")) == (404, "team_not_found")
    assert list_keys(bob.user.id) == []


@pytest.mark.parametrize(
    "uid", ["nobody", "A" * 32, "inv_", "inv_" + "a" * 24, "inv_" + "a" * 23, "member#x", "team", "..", "a" * 4000]
)  # fmt: skip
def test_404_for_an_unknown_id(cloud: Cloud, ada: Person, uid: str) -> None:
    assert outcome(remove(ada, uid))[0] == 404
    assert is_member(cloud, ada)


def test_404_for_a_user_who_is_not_a_member(cloud: Cloud, ada: Person) -> None:
    assert outcome(remove(ada, newcomer().user.id)) == (404, "member_not_found")


def test_an_unavailable_table_removes_no_one(cloud: Cloud, ada: Person) -> None:
    bob = joined(cloud, Role.MEMBER)
    with unreachable("dynamodb", "TransactWriteItems"):
        assert remove(ada, bob.user.id).status == 503
    assert is_member(cloud, bob)


class TestWithdrawInvitation:
    def invited(self, cloud: Cloud, role: Role = Role.MEMBER, *, over: bool = False) -> Invitation:
        eve = Invitee(email="eve@acme.example", address="eve@acme.example", role=role)
        at = clock.now() - LIFETIME if over else clock.now()
        (made,) = invitations.create_invitations(cloud.team.id, [eve], by=None, now=at)
        return made

    def test_an_invitation_is_withdrawn_by_its_id(self, cloud: Cloud, ada: Person, mailbox: Mailbox) -> None:
        made = self.invited(cloud)
        token = invitations.issue_token(made)
        reply = remove(ada, made.id)
        assert (reply.status, reply.json) == (200, {"id": cloud.team.id})
        assert invitations.open_invitations(cloud.team.id, now=clock.now()) == []
        eve = newcomer("eve")
        refused = eve.send("POST", "/v1/teams/join", json_body={"token": token})
        assert outcome(refused) == (404, "invitation_not_found")
        assert outcome(remove(ada, made.id)) == (404, "member_not_found")

    @pytest.mark.parametrize("invited_as", [Role.OWNER, Role.ADMIN])
    @pytest.mark.parametrize("role", list(Role))
    def test_roles_that_can_invite_with_a_role_can_withdraw_it(
        self, cloud: Cloud, role: Role, invited_as: Role
    ) -> None:
        made = self.invited(cloud, invited_as)
        bob = joined(cloud, role)
        expected = (200, "") if role.manages(invited_as) else (403, "missing_role")
        assert outcome(remove(bob, made.id)) == expected

    def test_404_for_an_expired_invitation(self, cloud: Cloud, ada: Person) -> None:
        made = self.invited(cloud, over=True)
        assert outcome(remove(ada, made.id)) == (404, "member_not_found")

    def test_404_for_an_invitation_of_another_team(self, cloud: Cloud, ada: Person) -> None:
        made = self.invited(cloud)
        create_team("Other", "other", owner_user_id=ada.user.id, now=clock.now())
        reply = ada.send("DELETE", f"/v1/teams/other/members/{made.id}")
        assert outcome(reply) == (404, "member_not_found")
        assert len(invitations.open_invitations(cloud.team.id, now=clock.now())) == 1
