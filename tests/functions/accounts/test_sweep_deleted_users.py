"""The hourly schedule. test_sweep_deleted_owners.py has the tests that users and teams share."""

from datetime import datetime, timedelta

import pytest

from larder import aws, clock
from larder.accounts.repository import list_sessions
from larder.accounts.service import create_user, delete_user, deleted_users
from larder.accounts.sessions import start_session
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey
from larder.artifacts.repository.totals import read_totals
from larder.settings import settings
from larder.teams.members import role_of
from larder.teams.state import change_state
from tests.faults import unreachable
from tests.owned import fill, stored_of
from tests.requests import Cloud, Context, Sender, invoke

HANDLER = "accounts.sweep_deleted_users.handler"


def test_the_rest_of_an_interrupted_deletion_is_deleted(cloud: Cloud) -> None:
    """The request stopped after it deleted the user and before it deleted their keys."""
    create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    delete_user(cloud.user.id, now=clock.now())
    assert len(list_keys(cloud.user.id)) == 2
    invoke(HANDLER, {})
    assert list_keys(cloud.user.id) == []
    assert role_of(cloud.team.id, cloud.user.id) is None


def test_the_deletion_record_is_kept_until_every_membership_is_removed(cloud: Cloud) -> None:
    deleted_at = clock.now() - timedelta(hours=26)
    delete_user(cloud.user.id, now=deleted_at)
    with unreachable("dynamodb", "TransactWriteItems"):
        invoke(HANDLER, {})
    assert deleted_users() == [(cloud.user.id, deleted_at)]
    invoke(HANDLER, {})
    assert deleted_users() == []
    assert role_of(cloud.team.id, cloud.user.id) is None


def test_no_session_is_left(cloud: Cloud) -> None:
    """A session holds the user's IP address."""
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    for user in (cloud.user, cloud.user, bob):
        start_session(user, ip_address="192.0.2.1", now=clock.now())
    delete_user(cloud.user.id, now=clock.now())
    invoke(HANDLER, {})
    items = aws.dynamodb().scan(TableName=settings().identity_table)["Items"]
    left = [item for item in map(aws.deserialize, items) if cloud.user.id in str(item)]
    assert [item["pk"] for item in left] == ["deleted"]
    assert len(list_sessions(bob.id)) == 1


def test_a_user_brought_back_by_a_restored_table_keeps_everything(cloud: Cloud) -> None:
    """The record of the deletion is newer than the backup, so it still exists."""
    table = settings().identity_table
    before = aws.dynamodb().scan(TableName=table)["Items"]
    delete_user(cloud.user.id, now=clock.now())
    for item in before:
        aws.dynamodb().put_item(TableName=table, Item=item)
    invoke(HANDLER, {})
    assert [key.id for key in list_keys(cloud.user.id)] == [cloud.key.id]
    assert role_of(cloud.team.id, cloud.user.id) is not None
    assert deleted_users() == []
    left = aws.dynamodb().scan(TableName=table)["Items"]
    assert "deleted" not in {item["pk"]["S"] for item in left}


# --------------------------------------------------------------- the user's personal artifacts


@pytest.fixture
def full(cloud: Cloud) -> Cloud:
    """Ada with every kind of personal data, and some in her team."""
    own = Sender(create_key(NewKey(user_id=cloud.user.id), now=clock.now())[1])
    for send in (own, cloud.send):
        fill(send)
    change_state(cloud.user.id, quota_bytes=10**9)
    return cloud


def delete(cloud: Cloud, *, ago: timedelta = timedelta(0)) -> datetime:
    deleted_at = clock.now() - ago
    delete_user(cloud.user.id, now=deleted_at)
    return deleted_at


def is_clear(owner: str) -> bool:
    return not any(stored_of(owner).values())


def in_team(cloud: Cloud) -> dict[str, list[str]]:
    """The team's items, except for Ada's membership."""
    found = stored_of(cloud.team.id)
    found[settings().teams_table].remove(f"member#{cloud.user.id}")
    return found


def test_personal_artifacts_are_deleted_and_team_artifacts_stay(full: Cloud) -> None:
    before = in_team(full)
    assert all(stored_of(full.user.id).values())
    delete(full)
    invoke(HANDLER, {})
    assert is_clear(full.user.id)
    after = stored_of(full.team.id)
    # So that the team knows who else can still use its keys.
    after[settings().teams_table].remove(f"left#{full.user.id}")
    assert after == before
    assert all(before.values())


def test_when_time_runs_out_the_rest_is_left_to_the_next_run_except_keys(full: Cloud) -> None:
    deleted_at = delete(full, ago=timedelta(hours=26))
    invoke(HANDLER, {}, Context(remaining_ms=30_000))
    assert list_keys(full.user.id) == []
    assert deleted_users() == [(full.user.id, deleted_at)]
    assert read_totals(full.user.id).artifacts == 3
    invoke(HANDLER, {})
    assert deleted_users() == []
    assert is_clear(full.user.id)
