"""The hourly schedule"""

from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from larder import aws, clock
from larder.accounts.repository import list_sessions
from larder.accounts.service import create_user, deleted_users, remove_user
from larder.accounts.sessions import start_session
from larder.api_keys.models import NewKey
from larder.api_keys.service import create_key, list_keys
from larder.artifacts import finalize, sweep
from larder.artifacts.models import ArtifactHash, Totals
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import read_totals
from larder.errors import TryAgain
from larder.settings import settings
from larder.teams.service import change_state, role_of
from tests.faults import just_before, unreachable
from tests.owned import assert_nothing_is_in_index_or_bucket, fill, stored_of, upload_late
from tests.requests import Cloud, Context, Sender, invoke

HANDLER = "accounts.forget_deleted_users.handler"


def test_the_rest_of_an_interrupted_deletion_is_removed(cloud: Cloud) -> None:
    """The request stopped after it deleted the user and before it deleted their keys."""
    create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    remove_user(cloud.user.id, now=clock.now())
    assert len(list_keys(cloud.user.id)) == 2
    invoke(HANDLER, {})
    assert list_keys(cloud.user.id) == []
    assert role_of(cloud.team.id, cloud.user.id) is None


def test_the_deletion_record_is_kept_until_no_upload_can_arrive(cloud: Cloud) -> None:
    deleted_at = clock.now() - timedelta(hours=24)
    remove_user(cloud.user.id, now=deleted_at)
    invoke(HANDLER, {})
    assert deleted_users() == [(cloud.user.id, deleted_at)]


def test_nothing_about_the_user_is_kept_afterwards(cloud: Cloud) -> None:
    remove_user(cloud.user.id, now=clock.now() - timedelta(hours=26))
    invoke(HANDLER, {})
    assert deleted_users() == []


def test_the_deletion_record_is_kept_until_every_membership_has_ended(cloud: Cloud) -> None:
    deleted_at = clock.now() - timedelta(hours=26)
    remove_user(cloud.user.id, now=deleted_at)
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
    remove_user(cloud.user.id, now=clock.now())
    invoke(HANDLER, {})
    items = aws.dynamodb().scan(TableName=settings().identity_table)["Items"]
    left = [item for item in map(aws.deserialize, items) if cloud.user.id in str(item)]
    assert [item["pk"] for item in left] == ["deleted"]
    assert len(list_sessions(bob.id)) == 1


def test_a_user_brought_back_by_a_restored_table_keeps_everything(cloud: Cloud) -> None:
    """The record of the deletion is newer than the backup, so it still exists."""
    table = settings().identity_table
    before = aws.dynamodb().scan(TableName=table)["Items"]
    remove_user(cloud.user.id, now=clock.now())
    for item in before:
        aws.dynamodb().put_item(TableName=table, Item=item)
    invoke(HANDLER, {})
    assert [key.id for key in list_keys(cloud.user.id)] == [cloud.key.id]
    assert role_of(cloud.team.id, cloud.user.id) is not None
    assert deleted_users() == []


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
    remove_user(cloud.user.id, now=deleted_at)
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
    assert stored_of(full.team.id) == before
    assert all(before.values())


def test_the_sweep_deletes_the_objects(full: Cloud) -> None:
    delete(full)
    invoke(HANDLER, {})
    sweep.sweep(now=clock.now() + timedelta(days=2))
    assert_nothing_is_in_index_or_bucket(full.user.id)


def test_an_upload_in_progress_is_removed_by_a_later_run(full: Cloud) -> None:
    delete(full)
    invoke(HANDLER, {})
    upload_late(full.user.id)
    invoke(HANDLER, {})
    assert is_clear(full.user.id)


def test_when_time_runs_out_the_rest_is_left_to_the_next_run_except_keys(full: Cloud) -> None:
    deleted_at = delete(full, ago=timedelta(hours=26))
    invoke(HANDLER, {}, Context(remaining_ms=30_000))
    assert list_keys(full.user.id) == []
    assert deleted_users() == [(full.user.id, deleted_at)]
    assert read_totals(full.user.id).artifacts == 3
    invoke(HANDLER, {})
    assert deleted_users() == []
    assert is_clear(full.user.id)


@pytest.mark.parametrize("operation", ["Query", "DeleteItem", "TransactWriteItems", "UpdateItem"])
def test_a_failed_read_is_retried_by_the_next_run(full: Cloud, operation: str) -> None:
    delete(full, ago=timedelta(hours=26))
    with unreachable("dynamodb", operation), suppress(TryAgain):
        invoke(HANDLER, {})
    assert len(deleted_users()) == 1
    # The daily check of the totals corrects artifacts that were deleted but not subtracted.
    for hours in (24, 25):
        sweep.sweep(now=clock.now() + timedelta(hours=hours))
    invoke(HANDLER, {})
    assert is_clear(full.user.id)
    assert deleted_users() == []


def test_an_artifact_removed_concurrently_is_subtracted_once(
    cloud: Cloud,
) -> None:
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    own = Sender(create_key(NewKey(user_id=bob.id), now=clock.now())[1])
    assert own("PUT", "/v8/artifacts/a", body=b"artifact").status == 202
    artifact = read_entry(bob.id, ArtifactHash("a")).artifact
    assert artifact is not None
    remove_user(bob.id, now=clock.now())
    with just_before(
        "dynamodb", "TransactWriteItems", lambda: finalize.forget(artifact, now=clock.now())
    ):
        invoke(HANDLER, {})
    assert read_totals(bob.id) == Totals()
