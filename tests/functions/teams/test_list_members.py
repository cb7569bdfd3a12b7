"""GET /v3/teams/{idOrSlug}/members"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import clock
from larder.accounts.service import create_user, delete_user
from larder.clock import to_ms
from larder.invitations import service as invitations
from larder.invitations.models import LIFETIME, Invitee
from larder.teams.members import add_member, remove_member
from larder.teams.models import Role
from tests.functions.teams.people import Person, joined
from tests.requests import Cloud, Reply, Sender


def ask(person: Person, query: str = "") -> Reply:
    assert person.send.token is not None
    return Sender(person.send.token, query=query)("GET", "/v3/teams/acme/members")


def listed(answer: Any) -> list[str]:
    return [member["username"] for member in answer["members"]]


def invited(cloud: Cloud, *names: str, at: datetime | None = None) -> None:
    invitees = [Invitee(email=f"{name}@b.example", address=f"{name}@b.example", role=Role.VIEWER) for name in names]
    invitations.create_invitations(cloud.team.id, invitees, by=None, now=at or clock.now())


def test_a_member_with_every_field_that_clients_require(cloud: Cloud, ada: Person) -> None:
    reply = ask(ada)
    assert reply.status == 200
    assert reply.json == {
        "members": [
            {
                "uid": cloud.user.id,
                "username": "ada",
                "email": "ada@acme.example",
                "name": "Ada",
                "role": "OWNER",
                "confirmed": True,
                "managedBy": None,
                "managedGroup": None,
                "createdAt": to_ms(cloud.team.created_at),
            }
        ],
        "emailInviteCodes": [],
        "groupRoles": [],
        "pagination": {"hasNext": False, "count": 1, "next": None, "prev": None},
    }


def test_the_team_is_named_by_its_id_as_well(cloud: Cloud, ada: Person) -> None:
    assert ada.send("GET", f"/v3/teams/{cloud.team.id}/members").json == ask(ada).json


def test_the_newest_members_come_first(cloud: Cloud, ada: Person) -> None:
    now = clock.now()
    for minutes, name in enumerate(("zoe", "bob", "eve")):
        user = create_user(f"{name}@acme.example", name, now=now)
        moment = now + timedelta(minutes=minutes + 1)
        add_member(cloud.team.id, user.id, Role.VIEWER, now=moment)
    assert listed(ask(ada).json) == ["eve", "bob", "zoe", "ada"]


def test_changes_of_roles_and_departures_show_at_once(cloud: Cloud, ada: Person) -> None:
    bob = joined(cloud, Role.MEMBER)
    add_member(cloud.team.id, bob.user.id, Role.VIEWER, now=clock.now())
    assert {m["username"]: m["role"] for m in ask(ada).json["members"]} == {
        "ada": "OWNER", "bob": "VIEWER",
    }  # fmt: skip
    remove_member(cloud.team.id, bob.user.id, by=None)
    assert listed(ask(ada).json) == ["ada"]


def test_a_deleted_user_is_not_listed(cloud: Cloud, ada: Person) -> None:
    bob = joined(cloud, Role.MEMBER)
    delete_user(bob.user.id, now=clock.now())
    assert listed(ask(ada).json) == ["ada"]


class TestPages:
    @pytest.fixture
    def crowd(self, cloud: Cloud) -> list[str]:
        """Seven more members. The third to the fifth joined in the same millisecond."""
        now = clock.now()
        names = []
        for number, second in enumerate((1, 2, 3, 3, 3, 4, 5)):
            user = create_user(f"m{number}@acme.example", "M", now=now)
            moment = now + timedelta(seconds=second)
            add_member(cloud.team.id, user.id, Role.MEMBER, now=moment)
            names.append(f"m{number}")
        return names

    @pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 8, 9, 100])
    def test_pages_return_every_member_once(self, crowd: list[str], ada: Person, limit: int) -> None:
        found, sizes, query = [], [], f"limit={limit}"
        while True:
            answer = ask(ada, query).json
            found += listed(answer)
            sizes.append(answer["pagination"]["count"])
            following = answer["pagination"]["next"]
            assert answer["pagination"]["hasNext"] is (following is not None)
            if following is None:
                break
            query = f"limit={limit}&until={following}"
        assert sorted(found) == sorted(["ada", *crowd])
        assert max(sizes) <= max(limit, limit + 2)
        assert sizes[-1] > 0

    def test_a_page_exceeds_the_limit_only_for_members_who_joined_together(self, crowd: list[str], ada: Person) -> None:
        first = ask(ada, "limit=3").json
        assert listed(first)[:2] == ["m6", "m5"]
        assert set(listed(first)) == {"m6", "m5", "m4", "m3", "m2"}
        second = ask(ada, f"limit=3&until={first['pagination']['next']}").json
        assert listed(second) == ["m1", "m0", "ada"]

    def test_the_default_limit_is_twenty(self, cloud: Cloud, ada: Person) -> None:
        now = clock.now()
        for number in range(22):
            user = create_user(f"m{number}@acme.example", "M", now=now)
            moment = now + timedelta(seconds=number)
            add_member(cloud.team.id, user.id, Role.MEMBER, now=moment)
        assert ask(ada).json["pagination"]["count"] == 20

    def test_since_and_until_limit_the_join_time(self, cloud: Cloud, crowd: list[str], ada: Person) -> None:
        joined_at = {m["username"]: m["createdAt"] for m in ask(ada).json["members"]}
        query = f"since={joined_at['m1']}&until={joined_at['m2']}"
        assert set(listed(ask(ada, query).json)) == {"m1", "m2", "m3", "m4"}
        assert listed(ask(ada, f"since={joined_at['m6'] + 1}").json) == []


class TestOpenInvitations:
    @pytest.mark.parametrize("role", list(Role))
    def test_roles_that_manage_members_see_invitations(self, cloud: Cloud, role: Role) -> None:
        invited(cloud, "eve", "zoe")
        answer = ask(joined(cloud, role)).json
        seen = [invite_code["email"] for invite_code in answer["emailInviteCodes"]]
        assert seen == (["eve@b.example", "zoe@b.example"] if role.manages_members else [])

    def test_an_invitation_with_every_field_that_clients_require(self, cloud: Cloud, ada: Person) -> None:
        now = clock.now()
        invited(cloud, "eve", at=now)
        (one,) = ask(ada).json["emailInviteCodes"]
        assert one.pop("id").startswith("inv_")
        assert one == {
            "email": "eve@b.example",
            "role": "VIEWER",
            "isDSyncUser": False,
            "createdAt": to_ms(now),
            "expiresAt": to_ms(now + timedelta(days=7)),
        }

    def test_expired_invitations_are_not_listed(self, cloud: Cloud, ada: Person) -> None:
        invited(cloud, "eve", at=clock.now() - LIFETIME)
        invited(cloud, "zoe", at=clock.now() - LIFETIME + timedelta(minutes=1))
        assert [invite_code["email"] for invite_code in ask(ada).json["emailInviteCodes"]] == ["zoe@b.example"]

    def test_invitations_are_only_on_the_first_page(self, cloud: Cloud, ada: Person) -> None:
        joined(cloud, Role.MEMBER)
        invited(cloud, "eve")
        following = ask(ada, "limit=1").json["pagination"]["next"]
        assert ask(ada, f"limit=1&until={following}").json["emailInviteCodes"] == []


def test_no_members_if_until_is_before_since(cloud: Cloud, ada: Person) -> None:
    # DynamoDB refuses such a query, but moto does not.
    reply = ask(ada, "since=1522078655&until=343519241")
    assert (reply.status, reply.json["members"]) == (200, [])
