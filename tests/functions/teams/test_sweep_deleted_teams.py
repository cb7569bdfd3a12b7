"""The hourly schedule. test_sweep_deleted_owners.py has the tests that users and teams share."""

from datetime import datetime, timedelta

import pytest

from larder import aws, clock
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey
from larder.invitations import service as invitations
from larder.invitations.models import Invitee
from larder.settings import settings
from larder.teams import teams
from larder.teams.models import Role, RunInputs
from larder.teams.teams import TeamChange, change_team, create_team, deleted_teams, find_team
from tests.functions.teams.people import joined, key_of
from tests.functions.usage.reports import LIB, objects, report
from tests.functions.usage.reports import send as report_run
from tests.owned import fill, stored_of
from tests.requests import Cloud, Context, Sender, invoke

HANDLER = "teams.sweep_deleted_teams.handler"


@pytest.fixture
def full(cloud: Cloud) -> Cloud:
    """The team of `cloud` with every kind of data, and another team with some."""
    bob = joined(cloud, Role.MEMBER)
    key_of(bob, {"artifacts": ("read",)}, team_id=cloud.team.id)
    key_of(bob, {"artifacts": ("read",)})
    eve = Invitee(email="eve@acme.example", address="eve@acme.example", role=Role.MEMBER)
    invitations.create_invitations(cloud.team.id, [eve], by=None, now=clock.now())
    other = create_team("Other", "other", owner_user_id=bob.user.id, now=clock.now())
    others_key = create_key(NewKey(user_id=bob.user.id, team_id=other.id), now=clock.now())[1]
    for team in (cloud.team, other):
        change_team(team.id, TeamChange(run_inputs=RunInputs.NAMES), by=None, now=clock.now())
    for send in (cloud.send, Sender(others_key, slug="other")):
        fill(send)
        assert report_run(send, report(LIB)).json["recorded"]
    return cloud


def delete(cloud: Cloud, *, ago: timedelta = timedelta(0)) -> datetime:
    deleted_at = clock.now() - ago
    teams.delete_team(cloud.team.id, by=None, now=deleted_at)
    return deleted_at


def left_of(team_id: str) -> dict[str, list[str]]:
    """The team's items in every table, its keys, and the inputs of its runs."""
    keys = aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"]
    bound = [item["id"] for item in map(aws.deserialize, keys) if item.get("team_id") == team_id]
    inputs = [name for name in objects() if name.startswith(f"inputs/{team_id}/")]
    return {**stored_of(team_id), "keys": bound, "inputs": inputs}


def is_clear(team_id: str) -> bool:
    return not any(left_of(team_id).values())


def test_everything_of_a_deleted_team_is_deleted_and_other_teams_stay(full: Cloud) -> None:
    other = find_team("other")
    assert other is not None
    before = left_of(other.id)
    assert all(left_of(full.team.id).values())
    delete(full)
    invoke(HANDLER, {})
    assert is_clear(full.team.id)
    assert left_of(other.id) == before
    assert all(before.values())


def test_personal_keys_of_the_members_stay(full: Cloud) -> None:
    delete(full)
    invoke(HANDLER, {})
    assert list_keys(full.user.id) == []
    personal = create_key(NewKey(user_id=full.user.id), now=clock.now())
    invoke(HANDLER, {})
    assert [key.id for key in list_keys(full.user.id)] == [personal[0].id]


def test_a_team_brought_back_by_a_restored_table_keeps_everything(full: Cloud) -> None:
    """The record of the deletion is newer than the backup, so it still exists."""
    before = aws.dynamodb().scan(TableName=settings().teams_table)["Items"]
    everything = left_of(full.team.id)
    delete(full)
    for item in before:
        aws.dynamodb().put_item(TableName=settings().teams_table, Item=item)
    invoke(HANDLER, {})
    assert left_of(full.team.id) == everything
    assert find_team("acme") is not None
    assert deleted_teams() == []


def test_when_time_runs_out_the_rest_is_left_to_the_next_run(full: Cloud) -> None:
    deleted_at = delete(full, ago=timedelta(hours=26))
    invoke(HANDLER, {}, Context(remaining_ms=30_000))
    assert deleted_teams() == [(full.team.id, deleted_at)]
    assert not is_clear(full.team.id)
    invoke(HANDLER, {})
    assert deleted_teams() == []
    assert is_clear(full.team.id)


def test_a_run_without_deleted_teams_succeeds(cloud: Cloud) -> None:
    invoke(HANDLER, {})
    assert find_team("acme") == cloud.team
