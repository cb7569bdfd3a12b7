"""PATCH /v2/teams/{idOrSlug}"""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
import time_machine

from larder import aws, clock
from larder.clock import to_ms
from larder.errors import TeamNotFound
from larder.instance import restart
from larder.rate_limits.models import TEAMS_MADE
from larder.settings import settings
from larder.tables import TEAMS
from larder.teams import repository
from larder.teams.models import CachingStatus, Role
from larder.teams.state import change_state
from larder.teams.teams import TeamChange, change_team, create_team, find_team
from tests.conftest import SetOption
from tests.faults import just_before, unreachable
from tests.functions.teams.people import Person, joined, newcomer, outcome
from tests.requests import Cloud, Reply, Sender


def change(person: Person, team: str, **body: Any) -> Reply:
    return person.send("PATCH", f"/v2/teams/{team}", json_body=body)


def rename(person: Person, was: str, becomes: str, **more: Any) -> None:
    assert change(person, was, slug=becomes, **more).status == 200


@pytest.mark.parametrize("named_by", ["id", "slug"])
def test_the_reply_has_the_new_name_and_slug(cloud: Cloud, ada: Person, named_by: str) -> None:
    before = ada.send("GET", "/v2/teams/acme").json
    reply = change(ada, getattr(cloud.team, named_by), name=" Acme, Inc. ", slug="acme-inc")
    assert reply.status == 200
    team = find_team("acme-inc")
    assert team is not None
    assert reply.json == {
        **before,
        "slug": "acme-inc",
        "name": "Acme, Inc.",
        "formerSlugs": ["acme"],
        "updatedAt": to_ms(team.updated_at),
    }
    assert reply.json == ada.send("GET", "/v2/teams/acme-inc").json


def test_fields_that_are_not_sent_stay(cloud: Cloud, ada: Person) -> None:
    change(ada, "acme", name="Other")
    change(ada, "acme", slug="other")
    reply = change(ada, "other", remoteCaching={"enabled": False}, description="ignored")
    assert (reply.json["name"], reply.json["slug"]) == ("Other", "other")
    assert reply.json["remoteCaching"] == {"enabled": False}


@pytest.mark.parametrize(
    ("enabled", "was", "becomes"),
    [
        (True, CachingStatus.ENABLED, "enabled"),
        (True, CachingStatus.DISABLED, "enabled"),
        (True, CachingStatus.PAUSED, "enabled"),
        (False, CachingStatus.ENABLED, "disabled"),
        (False, CachingStatus.PAUSED, "disabled"),
    ],
)
def test_remote_caching_sets_the_caching_status(
    cloud: Cloud, ada: Person, enabled: bool, was: CachingStatus, becomes: str
) -> None:
    change_state(cloud.team.id, caching=was)
    reply = change(ada, "acme", remoteCaching={"enabled": enabled})
    assert reply.json["remoteCaching"] == {"enabled": enabled}
    assert cloud.send("GET", "/v8/artifacts/status").json == {"status": becomes}


def test_the_price_of_an_hour_of_builds_is_for_owners_and_admins_to_set(cloud: Cloud, ada: Person) -> None:
    member, admin = joined(cloud, Role.MEMBER), joined(cloud, Role.ADMIN, "eve")
    assert outcome(change(member, "acme", buildHourCents=48)) == (403, "missing_role")
    assert change(admin, "acme", buildHourCents=48).json["buildHourCents"] == 48
    assert member.send("GET", "/v2/teams/acme").json["buildHourCents"] == 48
    assert change(ada, "acme", buildHourCents=0).json["buildHourCents"] == 0


def test_misses_are_explained_until_an_owner_or_admin_turns_that_off(cloud: Cloud, ada: Person) -> None:
    assert ada.send("GET", "/v2/teams/acme").json["runInputs"] == "names"
    viewer, admin = joined(cloud, Role.VIEWER), joined(cloud, Role.ADMIN, "eve")
    assert outcome(change(viewer, "acme", runInputs="off")) == (403, "missing_role")
    reply = change(admin, "acme", runInputs="off")
    assert (reply.status, reply.json["runInputs"]) == (200, "off")
    entry = next(one for one in ada.send("GET", "/v1/audit?slug=acme").json["entries"])
    assert (entry["action"], entry["subject"]) == ("team_changed", "run_inputs")


def test_the_key_of_the_run_inputs_stays_and_is_in_no_reply(cloud: Cloud, ada: Person) -> None:
    made = find_team("acme")
    replies = [change(ada, "acme", runInputs=to) for to in ("values", "off", "names")]
    team = find_team("acme")
    assert made is not None
    assert team is not None
    assert len(team.inputs_key) == 64
    assert team.inputs_key == made.inputs_key
    item = TEAMS.get(cloud.team.id, "team")
    assert item is not None
    assert item["inputs_key"] == team.inputs_key
    shown = [reply.body for reply in (*replies, ada.send("GET", "/v2/teams/acme"))]
    assert team.inputs_key not in "".join([*map(str, shown), repr(team)])


BAD: dict[str, list[Any]] = {
    "name": ["", "a" * 101, "\x00", "\ud800"],
    "slug": ["", "A", "a" * 49],
    "formerSlugs": [["never-had"]],
    "runInputs": ["all"],
    "buildHourCents": [-1, 0.5, "48", 100_001],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD.items() for value in values])
def test_400_names_the_field_that_breaks_a_rule(ada: Person, field: str, value: Any) -> None:
    reply = ada.send("PATCH", "/v2/teams/acme", json_body={field: value})
    assert outcome(reply) == (400, "bad_request")
    assert reply.message.startswith(f"{field}: ")


def test_400_names_ten_fields_and_counts_the_others(ada: Person) -> None:
    reply = ada.send("PATCH", "/v2/teams/acme", json_body={"formerSlugs": [1] * 11})
    assert outcome(reply) == (400, "bad_request")
    rule = "Input should be a valid string"
    errors = [f"formerSlugs.{place}: {rule}" for place in range(10)]
    assert reply.message == "; ".join([*errors, "and 1 more"])


@pytest.mark.parametrize("body", [{}, {"avatar": "x"}, {"name": None}, {"remoteCaching": {}}])
def test_400_for_a_body_that_changes_nothing(ada: Person, body: Any) -> None:
    assert outcome(ada.send("PATCH", "/v2/teams/acme", json_body=body)) == (
        400, "no_values_to_update",
    )  # fmt: skip


def test_a_repeated_request_writes_nothing(cloud: Cloud, ada: Person) -> None:
    with unreachable("dynamodb", "TransactWriteItems"):
        assert change(ada, "acme", name="Acme", slug="acme").status == 200
    assert find_team("acme") == cloud.team


def test_an_unavailable_table_leaves_the_team_unchanged(cloud: Cloud, ada: Person) -> None:
    with unreachable("dynamodb", "TransactWriteItems"):
        assert change(ada, "acme", slug="other", name="Other").status == 503
    assert find_team("acme") == cloud.team
    assert find_team("other") is None


class TestFormerSlugs:
    def test_clients_that_use_the_old_slug_still_work(self, cloud: Cloud, ada: Person) -> None:
        """Both on an instance that has cached the slug and on one that has not."""
        assert cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
        rename(ada, "acme", "acme-inc")
        for _ in range(2):
            assert cloud.send("GET", "/v8/artifacts/abc").body == b"artifact"
            assert cloud.send("PUT", "/v8/artifacts/def", body=b"more").status == 202
            by_new = Sender(cloud.token, slug="acme-inc")
            assert by_new("GET", "/v8/artifacts/def").body == b"more"
            restart()
        assert ada.send("GET", "/v2/teams/acme").json["slug"] == "acme-inc"

    def test_another_team_cannot_take_a_former_slug(self, cloud: Cloud, ada: Person) -> None:
        rename(ada, "acme", "acme-inc")
        mallory = newcomer("mallory")
        for slug in ("acme", "acme-inc"):
            reply = mallory.send("POST", "/v1/teams", json_body={"slug": slug})
            assert outcome(reply) == (409, "slug_taken")
        create_team("Other", "other", owner_user_id=mallory.user.id, now=clock.now())
        assert outcome(change(mallory, "other", slug="acme")) == (409, "slug_taken")

    def test_the_team_can_take_a_former_slug_back(self, cloud: Cloud, ada: Person) -> None:
        rename(ada, "acme", "acme-inc")
        rename(ada, "acme-inc", "acme")
        reply = ada.send("GET", "/v2/teams/acme-inc")
        assert (reply.json["slug"], reply.json["formerSlugs"]) == ("acme", ["acme-inc"])

    def test_a_slug_that_was_given_up_leads_nowhere_and_no_other_team_can_take_it(
        self, cloud: Cloud, ada: Person
    ) -> None:
        assert cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact").status == 202
        rename(ada, "acme", "acme-inc")
        reply = change(ada, "acme-inc", formerSlugs=[])
        assert reply.json["formerSlugs"] == []
        assert outcome(cloud.send("GET", "/v8/artifacts/abc")) == (403, "not_a_team_member")
        assert ada.send("GET", "/v2/teams/acme").status == 404
        bob = newcomer()
        made = bob.send("POST", "/v1/teams", json_body={"slug": "acme"})
        assert outcome(made) == (409, "slug_taken")
        create_team("Bob's", "bobs", owner_user_id=bob.user.id, now=clock.now())
        assert outcome(change(bob, "bobs", slug="acme")) == (409, "slug_taken")
        assert outcome(cloud.send("GET", "/v8/artifacts/abc")) == (403, "not_a_team_member")
        assert outcome(cloud.send("PUT", "/v8/artifacts/abc", body=b"x")) == (
            403, "not_a_team_member",
        )  # fmt: skip

    def test_a_slug_can_be_freed_in_the_request_that_renames(self, ada: Person) -> None:
        rename(ada, "acme", "acme-inc", formerSlugs=[])
        assert find_team("acme") is None

    def test_an_instance_with_a_cached_slug_follows_it_to_its_new_team(
        self, cloud: Cloud, ada: Person, personal: Sender
    ) -> None:
        """The key's user is in both teams. The slug's current team counts."""
        send = Sender(personal.token, slug="acme")
        assert send("PUT", "/v8/artifacts/abc", body=b"of the first").status == 202
        assert send("GET", "/v8/artifacts/abc").body == b"of the first"
        rename(ada, "acme", "acme-inc", formerSlugs=[])
        now = clock.now()
        create_team("New", "acme", owner_user_id=ada.user.id, reuses_slug=True, now=now)
        assert outcome(send("GET", "/v8/artifacts/abc")) == (404, "artifact_not_found")
        assert send("PUT", "/v8/artifacts/abc", body=b"of the second").status == 202
        assert cloud.send("GET", "/v8/artifacts/abc").status == 403
        bound = Sender(cloud.token, slug="acme-inc")
        assert bound("GET", "/v8/artifacts/abc").body == b"of the first"

    def test_former_slugs_in_the_body_stay(self, ada: Person) -> None:
        for was, becomes in (("acme", "b"), ("b", "c"), ("c", "d")):
            rename(ada, was, becomes)
        assert change(ada, "d", formerSlugs=["c", "acme", "d"]).json["formerSlugs"] == ["acme", "c"]
        assert find_team("b") is None

    def test_a_sixth_former_slug_replaces_the_oldest(self, ada: Person) -> None:
        slugs = ["acme", *(f"acme-{number}" for number in range(6))]
        for was, becomes in pairwise(slugs):
            rename(ada, was, becomes)
        assert find_team("acme") is None
        team = find_team(slugs[-1])
        assert team is not None
        assert team.slugs == tuple(slugs[1:])
        assert {found.id for slug in team.slugs if (found := find_team(slug))} == {team.id}
        made = newcomer().send("POST", "/v1/teams", json_body={"slug": "acme"})
        assert outcome(made) == (409, "slug_taken")
        rename(ada, slugs[-1], "acme")
        assert find_team("acme") == find_team(team.id)

    def test_new_slugs_are_limited_like_new_teams(self, ada: Person, option: SetOption) -> None:
        option("http_rate_limit_enabled", "true")
        slugs = ["acme", *(f"acme-{number}" for number in range(TEAMS_MADE.most))]
        with time_machine.travel(clock.now().replace(minute=0), tick=True):
            for was, becomes in pairwise(slugs):
                rename(ada, was, becomes)
            reply = change(ada, slugs[-1], slug="one-more")
            assert outcome(reply) == (429, "too_many_requests")
            rename(ada, slugs[-1], slugs[-2])


class TestAtTheSameMoment:
    """Another request makes a change after this request has read the data."""

    def test_two_concurrent_renamings_both_count_in_their_order(self, cloud: Cloud, ada: Person) -> None:
        def other() -> None:
            change_team(cloud.team.id, TeamChange(slug="second"), by=None, now=clock.now())

        with just_before("dynamodb", "TransactWriteItems", other):
            rename(ada, "acme", "third")
        team = find_team("third")
        assert team is not None
        assert team.slugs == ("acme", "second", "third")

    def test_the_first_request_gets_the_slug(self, cloud: Cloud, ada: Person) -> None:
        other = create_team("Other", "other", owner_user_id=ada.user.id, now=clock.now())

        def faster() -> None:
            change_team(other.id, TeamChange(slug="wanted"), by=None, now=clock.now())

        with just_before("dynamodb", "TransactWriteItems", faster):
            assert outcome(change(ada, "acme", slug="wanted")) == (409, "slug_taken")
        assert find_team("acme") == cloud.team

    def test_a_member_who_was_just_demoted_cannot_rename(self, cloud: Cloud) -> None:
        admin = joined(cloud, Role.ADMIN)

        def demoted() -> None:
            repository.change_role(cloud.team.id, admin.user.id, Role.ADMIN, Role.MEMBER)

        with just_before("dynamodb", "TransactWriteItems", demoted):
            assert outcome(change(admin, "acme", slug="another")) == (403, "missing_role")
        assert find_team("acme") == cloud.team

    def test_a_team_that_was_just_deleted_takes_no_slug(self, cloud: Cloud) -> None:
        def deleted() -> None:
            repository.delete_team(cloud.team, by=None, now=clock.now())

        renamed = TeamChange(slug="other")
        with just_before("dynamodb", "TransactWriteItems", deleted), pytest.raises(TeamNotFound):
            change_team(cloud.team.id, renamed, by=None, now=clock.now())
        assert find_team("other") is None


def test_teams_stored_without_a_version_can_be_renamed(cloud: Cloud, ada: Person) -> None:
    aws.dynamodb().update_item(
        TableName=settings().teams_table,
        Key=aws.serialize({"pk": cloud.team.id, "sk": "team"}),
        UpdateExpression="REMOVE version, updated_at, created_by",
    )
    rename(ada, "acme", "acme-inc")
    rename(ada, "acme", "acme-corp")
    team = find_team("acme-corp")
    assert team is not None
    assert (team.version, team.slugs) == (2, ("acme", "acme-inc", "acme-corp"))
    assert clock.now() - team.updated_at < timedelta(minutes=1)
