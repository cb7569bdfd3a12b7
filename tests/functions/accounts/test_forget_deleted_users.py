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


def test_what_a_deletion_left_over_is_ended(cloud: Cloud) -> None:
    """The request was cut off after the user was gone, before their keys were."""
    create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    remove_user(cloud.user.id, now=clock.now())
    assert len(list_keys(cloud.user.id)) == 2
    invoke(HANDLER, {})
    assert list_keys(cloud.user.id) == []
    assert role_of(cloud.team.id, cloud.user.id) is None


def test_the_note_is_kept_until_no_upload_can_come_any_more(cloud: Cloud) -> None:
    deleted_at = clock.now() - timedelta(hours=24)
    remove_user(cloud.user.id, now=deleted_at)
    invoke(HANDLER, {})
    assert deleted_users() == [(cloud.user.id, deleted_at)]


def test_then_nothing_is_kept_of_the_user(cloud: Cloud) -> None:
    remove_user(cloud.user.id, now=clock.now() - timedelta(hours=26))
    invoke(HANDLER, {})
    assert deleted_users() == []


def test_the_note_is_kept_as_long_as_a_membership_could_not_be_ended(cloud: Cloud) -> None:
    deleted_at = clock.now() - timedelta(hours=26)
    remove_user(cloud.user.id, now=deleted_at)
    with unreachable("dynamodb", "TransactWriteItems"):
        invoke(HANDLER, {})
    assert deleted_users() == [(cloud.user.id, deleted_at)]
    invoke(HANDLER, {})
    assert deleted_users() == []
    assert role_of(cloud.team.id, cloud.user.id) is None


def test_no_record_of_a_session_is_left(cloud: Cloud) -> None:
    """It would tell for days where the user was."""
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    for user in (cloud.user, cloud.user, bob):
        start_session(user, ip_address="192.0.2.1", now=clock.now())
    remove_user(cloud.user.id, now=clock.now())
    invoke(HANDLER, {})
    items = aws.dynamodb().scan(TableName=settings().identity_table)["Items"]
    told = [item for item in map(aws.deserialize, items) if cloud.user.id in str(item)]
    assert [item["pk"] for item in told] == ["deleted"]
    assert len(list_sessions(bob.id)) == 1


def test_who_was_brought_back_by_a_restored_table_keeps_everything(cloud: Cloud) -> None:
    """The note of the deletion is newer than the moment that the table was restored to, so it is still there."""
    table = settings().identity_table
    before = aws.dynamodb().scan(TableName=table)["Items"]
    remove_user(cloud.user.id, now=clock.now())
    for item in before:
        aws.dynamodb().put_item(TableName=table, Item=item)
    invoke(HANDLER, {})
    assert [key.id for key in list_keys(cloud.user.id)] == [cloud.key.id]
    assert role_of(cloud.team.id, cloud.user.id) is not None
    assert deleted_users() == []


# --------------------------------------------------------------- what they stored without a team


@pytest.fixture
def full(cloud: Cloud) -> Cloud:
    """Ada with everything that a person can have without a team, and in her team with some of it."""
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
    """What the team has but Ada's membership."""
    found = stored_of(cloud.team.id)
    found[settings().teams_table].remove(f"member#{cloud.user.id}")
    return found


def test_what_a_user_stored_without_a_team_goes_and_nothing_of_their_team(full: Cloud) -> None:
    before = in_team(full)
    assert all(stored_of(full.user.id).values())
    delete(full)
    invoke(HANDLER, {})
    assert is_clear(full.user.id)
    assert stored_of(full.team.id) == before
    assert all(before.values())


def test_objects_go_with_the_sweep(full: Cloud) -> None:
    delete(full)
    invoke(HANDLER, {})
    sweep.sweep(now=clock.now() + timedelta(days=2))
    assert_nothing_is_in_index_or_bucket(full.user.id)


def test_an_upload_that_was_under_way_is_removed_by_a_later_run(full: Cloud) -> None:
    delete(full)
    invoke(HANDLER, {})
    upload_late(full.user.id)
    invoke(HANDLER, {})
    assert is_clear(full.user.id)


def test_what_there_is_no_time_for_is_left_to_the_next_run_but_keys(full: Cloud) -> None:
    deleted_at = delete(full, ago=timedelta(hours=26))
    invoke(HANDLER, {}, Context(remaining_ms=30_000))
    assert list_keys(full.user.id) == []
    assert deleted_users() == [(full.user.id, deleted_at)]
    assert read_totals(full.user.id).artifacts == 3
    invoke(HANDLER, {})
    assert deleted_users() == []
    assert is_clear(full.user.id)


@pytest.mark.parametrize("operation", ["Query", "DeleteItem", "TransactWriteItems", "UpdateItem"])
def test_a_store_that_does_not_answer_is_asked_again_by_the_next_run(
    full: Cloud, operation: str
) -> None:
    delete(full, ago=timedelta(hours=26))
    with unreachable("dynamodb", operation), suppress(TryAgain):
        invoke(HANDLER, {})
    assert len(deleted_users()) == 1
    # The daily check of the totals mends what was taken out and not counted out.
    for hours in (24, 25):
        sweep.sweep(now=clock.now() + timedelta(hours=hours))
    invoke(HANDLER, {})
    assert is_clear(full.user.id)
    assert deleted_users() == []


def test_an_artifact_that_others_remove_at_the_same_moment_is_counted_out_once(
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
