"""POST /v1/teams"""

from typing import Any

import pytest

from larder import clock
from larder.audit.service import read_entries
from larder.clock import to_ms
from larder.teams.members import add_member, list_members, remove_member
from larder.teams.models import Block, Role
from larder.teams.state import change_state
from larder.teams.teams import create_team, find_team
from tests.addresses import prove_address
from tests.conftest import SetOption
from tests.faults import just_before
from tests.functions.teams.people import Person, key_of, newcomer, outcome, signed_in
from tests.requests import Cloud

PATH = "/v1/teams"


@pytest.fixture
def ada(cloud: Cloud) -> Person:
    return signed_in(prove_address(cloud.user))


def make(person: Person, slug: str, **body: Any) -> tuple[int, str]:
    return outcome(person.send("POST", PATH, json_body={"slug": slug, **body}))


def test_the_creator_owns_the_team(ada: Person) -> None:
    reply = ada.send("POST", PATH, json_body={"slug": "web", "name": " Web platform "})
    assert reply.status == 200
    team = find_team("web")
    assert team is not None
    assert reply.json == {"id": team.id, "slug": "web", "name": "Web platform"}
    assert [(member.user_id, member.role) for member in list_members(team.id)] == [(ada.user.id, Role.OWNER)]
    assert (team.created_by, team.created_at) == (ada.user.id, team.updated_at)
    assert ada.send("GET", "/v2/teams/web").json["membership"]["role"] == "OWNER"


def test_new_teams_are_protected_from_the_start_by_option(ada: Person, option: SetOption) -> None:
    make(ada, "open")
    option("protect_new_teams", "always")
    make(ada, "safe")
    shown = {slug: ada.send("GET", f"/v1/teams/{slug}/protection").json for slug in ("open", "safe")}
    team = find_team("safe")
    assert team is not None
    assert [one["protected"] for one in shown.values()] == [False, True]
    assert shown["safe"]["trustedFrom"] == to_ms(team.created_at)
    actions = [entry.action for entry in read_entries(team.id, limit=9, now=clock.now()).entries]
    assert sorted(actions) == ["protection_set", "team_created"]


def test_a_team_without_a_name_uses_its_slug(ada: Person) -> None:
    assert ada.send("POST", PATH, json_body={"slug": "web", "avatar": "x"}).json["name"] == "web"


def test_409_for_a_slug_that_another_team_has(ada: Person) -> None:
    reply = ada.send("POST", PATH, json_body={"slug": "acme"})
    assert outcome(reply) == (409, "slug_taken")
    assert "acme" in reply.message


BAD = {
    "slug": ["", "Web", "-web", "web-", "a" * 49, "web\n", "team_web", "\u0430cme"],
    "name": ["", "  ", "a" * 101, "a\u0000b", "a\x1b[2J", "\ud800"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD.items() for value in values])
def test_400_names_the_field_that_breaks_a_rule(ada: Person, field: str, value: str) -> None:
    reply = ada.send("POST", PATH, json_body={"slug": "web", field: value})
    assert outcome(reply) == (400, "bad_request")
    assert reply.message.startswith(f"{field}: ")


def test_a_key_needs_the_permission_to_create_teams(ada: Person, cloud: Cloud) -> None:
    writes = {"teams": ("write",)}
    by_key = Person(ada.user, key_of(ada, writes))
    assert make(by_key, "by-key") == (200, "")
    for permissions in ({}, {"artifacts": ("read", "write")}, {"teams": ("read",)}):
        refused = Person(ada.user, key_of(ada, permissions))
        assert make(refused, "other") == (403, "missing_permission")
    bound = Person(ada.user, key_of(ada, writes, team_id=cloud.team.id))
    assert make(bound, "other") == (403, "missing_permission")


def test_an_option_allows_only_operators_to_create_teams(ada: Person, option: SetOption) -> None:
    option("disable_team_creation", "true")
    assert make(ada, "web") == (403, "team_creation_disabled")
    option("operator_emails", ada.user.email)
    by_key = Person(ada.user, key_of(ada, {"teams": ("write",)}))
    assert make(by_key, "web") == (403, "team_creation_disabled")
    assert make(ada, "web") == (200, "")


def test_403_for_a_user_whose_address_is_not_proven(cloud: Cloud) -> None:
    """A stranger could create teams, and store as much in each of them as a team may."""
    unproven = signed_in(cloud.user)
    by_key = Person(cloud.user, key_of(unproven, {"teams": ("write",)}))
    for person in (unproven, by_key):
        assert make(person, "web") == (403, "email_not_proven")
    assert find_team("web") is None
    prove_address(cloud.user)
    assert make(unproven, "web") == (200, "")
    assert make(by_key, "by-key") == (200, "")


@pytest.mark.parametrize("block", list(Block))
def test_402_for_a_blocked_user(ada: Person, block: Block) -> None:
    """A new team would be a way around the block."""
    change_state(ada.user.id, block=block)
    assert make(ada, "web")[0] == 402
    change_state(ada.user.id, unblock=True)
    assert make(ada, "web") == (200, "")


def quota(slug: str) -> int | None:
    team = find_team(slug)
    assert team is not None
    return team.state.quota_bytes


class TestTeamLimitPerUser:
    def test_a_user_can_create_as_many_teams_as_the_option_says(self, ada: Person, option: SetOption) -> None:
        option("max_teams_per_user", 2)
        assert [make(ada, f"team-{number}") for number in range(3)] == [
            (200, ""), (200, ""), (409, "team_limit_reached"),
        ]  # fmt: skip
        assert make(newcomer(), "bobs") == (200, "")

    def test_each_further_team_has_half_of_the_quota(self, ada: Person, option: SetOption) -> None:
        """All teams that one user creates have less than two quotas, whatever is deleted between."""
        option("default_quota_bytes", 1000)
        slugs = [f"team-{number}" for number in range(4)]
        for slug in slugs:
            make(ada, slug)
        assert [quota(slug) for slug in slugs] == [1000, 500, 250, 125]
        assert ada.send("DELETE", "/v1/teams/team-1").status == 200
        make(ada, "again")
        assert [quota("team-2"), quota("again")] == [250, 125]
        create_team("By command", "by-command", owner_user_id=ada.user.id, now=clock.now())
        make(newcomer(), "bobs")
        assert [quota("by-command"), quota("bobs")] == [1000, 1000]
        option("default_quota_bytes", 0)
        assert quota("again") is None

    def test_teams_created_by_the_operator_do_not_count(self, ada: Person, option: SetOption) -> None:
        option("max_teams_per_user", 1)
        create_team("By command", "by-command", owner_user_id=ada.user.id, now=clock.now())
        assert make(ada, "one") == (200, "")

    def test_a_deleted_team_no_longer_counts(self, ada: Person, option: SetOption) -> None:
        option("max_teams_per_user", 1)
        make(ada, "one")
        assert ada.send("DELETE", "/v1/teams/one").status == 200
        assert make(ada, "two") == (200, "")
        assert make(ada, "three") == (409, "team_limit_reached")

    def test_a_team_that_the_creator_has_left_still_counts(self, ada: Person, option: SetOption) -> None:
        """Otherwise two accounts could create any number of teams by leaving them to each other."""
        option("max_teams_per_user", 1)
        make(ada, "one")
        team, bob = find_team("one"), newcomer()
        assert team is not None
        add_member(team.id, bob.user.id, Role.OWNER, now=clock.now())
        remove_member(team.id, ada.user.id, by=None)
        assert make(ada, "two") == (409, "team_limit_reached")
        assert make(bob, "two") == (200, "")

    def test_0_is_no_limit(self, ada: Person, option: SetOption) -> None:
        option("max_teams_per_user", 0)
        assert {make(ada, f"team-{number}") for number in range(12)} == {(200, "")}

    def test_a_team_created_by_a_concurrent_request_counts(self, ada: Person, option: SetOption) -> None:
        option("max_teams_per_user", 1)

        def faster() -> None:
            create_team("Faster", "faster", owner_user_id=ada.user.id, limited=True, now=clock.now())

        with just_before("dynamodb", "TransactWriteItems", faster):
            assert make(ada, "slower") == (409, "team_limit_reached")
        assert find_team("slower") is None


def test_the_rate_limit_counts_requests_per_user(ada: Person, option: SetOption) -> None:
    option("http_rate_limit_enabled", "true")
    option("max_teams_per_user", 0)
    assert {make(ada, f"team-{number}")[0] for number in range(10)} == {200}
    reply = ada.send("POST", PATH, json_body={"slug": "one-more"})
    assert outcome(reply) == (429, "too_many_requests")
    assert 0 < int(reply.headers["retry-after"]) <= 3600
    assert make(newcomer(), "bobs") == (200, "")


def test_two_concurrent_requests_for_a_slug_create_one_team(ada: Person) -> None:
    bob = newcomer()

    def faster() -> None:
        create_team("Web", "web", owner_user_id=bob.user.id, limited=True, now=clock.now())

    with just_before("dynamodb", "TransactWriteItems", faster):
        assert make(ada, "web") == (409, "slug_taken")
    team = find_team("web")
    assert team is not None
    assert team.created_by == bob.user.id
