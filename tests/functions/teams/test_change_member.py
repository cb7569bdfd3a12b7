"""PATCH /v1/teams/{idOrSlug}/members/{uid}"""

import pytest

from larder.teams.members import role_of
from larder.teams.models import Role
from tests.faults import unreachable
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
