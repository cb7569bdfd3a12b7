"""PATCH /v1/teams/{idOrSlug}/members/{uid}"""

from typing import Any

import pytest

from larder import clock
from larder.errors import LastOwner, MissingRole, TeamNotFound
from larder.teams import members
from larder.teams.members import add_member, remove_member, role_of
from larder.teams.models import Member, Role
from tests.faults import just_before, unreachable
from tests.functions.teams.people import Person, joined, newcomer, outcome
from tests.requests import Cloud, Reply, Sender


def give(person: Person, uid: str, role: str) -> Reply:
    return person.send("PATCH", f"/v1/teams/acme/members/{uid}", json_body={"role": role})


def role_in(cloud: Cloud, person: Person) -> Role | None:
    return role_of(cloud.team.id, person.user.id)


@pytest.mark.parametrize("becomes", list(Role))
@pytest.mark.parametrize("was", list(Role))
def test_an_owner_can_assign_any_role_to_any_member(cloud: Cloud, ada: Person, was: Role, becomes: Role) -> None:
    bob = joined(cloud, was)
    reply = give(ada, bob.user.id, becomes.value)
    assert (reply.status, reply.json) == (200, {"id": cloud.team.id})
    assert role_in(cloud, bob) is becomes


@pytest.mark.parametrize("becomes", list(Role))
@pytest.mark.parametrize("was", list(Role))
def test_an_admin_cannot_make_or_change_an_owner(cloud: Cloud, was: Role, becomes: Role) -> None:
    admin, bob = joined(cloud, Role.ADMIN, "eve"), joined(cloud, was)
    reply = give(admin, bob.user.id, becomes.value)
    if Role.OWNER in (was, becomes):
        assert outcome(reply) == (403, "missing_role")
        assert "owner" in reply.message
        assert role_in(cloud, bob) is was
    else:
        assert reply.status == 200
        assert role_in(cloud, bob) is becomes


@pytest.mark.parametrize("becomes", list(Role))
def test_an_admin_can_only_lower_their_own_role(cloud: Cloud, becomes: Role) -> None:
    admin = joined(cloud, Role.ADMIN)
    reply = give(admin, admin.user.id, becomes.value)
    assert reply.status == (403 if becomes is Role.OWNER else 200)


def test_it_takes_effect_at_the_next_request(cloud: Cloud, ada: Person) -> None:
    bob = joined(cloud, Role.VIEWER)
    cache = Sender(bob.send.token, slug="acme")
    assert outcome(cache("PUT", "/v8/artifacts/abc", body=b"x")) == (403, "read_only")
    give(ada, bob.user.id, "DEVELOPER")
    assert cache("PUT", "/v8/artifacts/abc", body=b"x").status == 202
    give(ada, bob.user.id, "VIEWER")
    assert outcome(cache("PUT", "/v8/artifacts/abc", body=b"x")) == (403, "read_only")


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.OWNER}))
def test_the_only_owner_cannot_lower_their_role(cloud: Cloud, ada: Person, role: Role) -> None:
    assert outcome(give(ada, ada.user.id, role.value)) == (409, "last_owner")
    joined(cloud, Role.OWNER)
    assert give(ada, ada.user.id, role.value).status == 200


@pytest.mark.parametrize(
    "body",
    [{"role": ""}, {"role": "owner"}, {"role": "BILLING"}, {"role": "OWNER "}, {"Role": "OWNER"}],
)  # fmt: skip
def test_400_for_an_invalid_role(cloud: Cloud, ada: Person, body: Any) -> None:
    bob = joined(cloud, Role.MEMBER)
    reply = ada.send("PATCH", f"/v1/teams/acme/members/{bob.user.id}", json_body=body)
    assert outcome(reply) == (400, "bad_request")
    assert role_in(cloud, bob) is Role.MEMBER


@pytest.mark.parametrize(
    "uid",
    ["nobody", "A" * 32, "A" * 5000, "inv_" + "a" * 24, "member", "team", "ada@acme.example", "..", "%2e", "$", "{}"],
)  # fmt: skip
def test_404_for_a_user_who_is_not_a_member(cloud: Cloud, ada: Person, uid: str) -> None:
    assert outcome(give(ada, uid, "MEMBER")) == (404, "member_not_found")
    stranger = newcomer()
    assert outcome(give(ada, stranger.user.id, "MEMBER")) == (404, "member_not_found")
    assert role_in(cloud, stranger) is None


def test_an_unavailable_table_changes_nothing(cloud: Cloud, ada: Person) -> None:
    bob = joined(cloud, Role.MEMBER)
    with unreachable("dynamodb", "TransactWriteItems"):
        assert give(ada, bob.user.id, "ADMIN").status == 503
    assert role_in(cloud, bob) is Role.MEMBER


class TestAtTheSameMoment:
    """Another request makes a change after this request has read the data."""

    @pytest.fixture
    def admin(self, cloud: Cloud) -> Person:
        return joined(cloud, Role.ADMIN, "eve")

    @pytest.fixture
    def bob(self, cloud: Cloud) -> Person:
        return joined(cloud, Role.MEMBER)

    def change(self, cloud: Cloud, by: Person, member: Person, role: Role) -> None:
        actor = Member(user_id=by.user.id, role=Role.ADMIN, joined_at=clock.now())
        members.change_role(cloud.team.id, member.user.id, role, by=actor)

    def test_an_admin_cannot_change_a_member_who_just_became_an_owner(
        self, cloud: Cloud, admin: Person, bob: Person
    ) -> None:
        def promoted() -> None:
            add_member(cloud.team.id, bob.user.id, Role.OWNER, now=clock.now())

        with just_before("dynamodb", "TransactWriteItems", promoted), pytest.raises(MissingRole):
            self.change(cloud, admin, bob, Role.VIEWER)
        assert role_in(cloud, bob) is Role.OWNER

    def test_a_member_who_was_just_demoted_cannot_change_roles(self, cloud: Cloud, admin: Person, bob: Person) -> None:
        def demoted() -> None:
            add_member(cloud.team.id, admin.user.id, Role.MEMBER, now=clock.now())

        with just_before("dynamodb", "TransactWriteItems", demoted), pytest.raises(MissingRole):
            self.change(cloud, admin, bob, Role.VIEWER)
        assert role_in(cloud, bob) is Role.MEMBER

    def test_a_member_who_was_just_removed_cannot_change_roles(self, cloud: Cloud, admin: Person, bob: Person) -> None:
        def removed() -> None:
            remove_member(cloud.team.id, admin.user.id, by=None)

        with just_before("dynamodb", "TransactWriteItems", removed), pytest.raises(TeamNotFound):
            self.change(cloud, admin, bob, Role.VIEWER)
        assert role_in(cloud, bob) is Role.MEMBER

    def test_an_owner_who_just_became_the_last_one_keeps_the_role(self, cloud: Cloud, ada: Person) -> None:
        other = joined(cloud, Role.OWNER, "zoe")
        by = Member(user_id=ada.user.id, role=Role.OWNER, joined_at=clock.now())

        def leaves() -> None:
            remove_member(cloud.team.id, other.user.id, by=None)

        with just_before("dynamodb", "TransactWriteItems", leaves), pytest.raises(LastOwner):
            members.change_role(cloud.team.id, ada.user.id, Role.MEMBER, by=by)
        assert role_in(cloud, ada) is Role.OWNER
