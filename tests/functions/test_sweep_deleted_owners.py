"""What the hourly sweeps of deleted users and of deleted teams have in common."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from larder import clock
from larder.accounts.service import create_user, delete_user, deleted_users
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.artifacts import publish, sweep
from larder.artifacts.models import ArtifactHash, Totals
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import read_totals
from larder.errors import TryAgain
from larder.tables import ARTIFACTS
from larder.teams.state import change_state
from larder.teams.teams import create_team, delete_team, deleted_teams
from tests.faults import just_before, unreachable
from tests.owned import assert_nothing_is_in_index_or_bucket, fill, stored_of, upload_late
from tests.requests import Cloud, Sender, invoke


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A user or a team, and how to delete it. `send` stores artifacts for it, `deleted` lists the deleted ones."""

    id: str
    send: Sender
    handler: str
    delete_at: Callable[[datetime], object]
    deleted: Callable[[], list[tuple[str, datetime]]]

    def delete(self, *, ago: timedelta = timedelta(0)) -> datetime:
        deleted_at = clock.now() - ago
        self.delete_at(deleted_at)
        return deleted_at

    def sweep(self) -> None:
        invoke(self.handler, {})

    @property
    def is_clear(self) -> bool:
        return not any(stored_of(self.id).values())


@pytest.fixture(params=["user", "team"])
def owner(request: pytest.FixtureRequest, cloud: Cloud) -> Owner:
    now = clock.now()
    bob = create_user("bob@acme.example", "Bob", now=now)
    if request.param == "user":
        return Owner(
            id=bob.id,
            send=Sender(create_key(NewKey(user_id=bob.id), now=now)[1]),
            handler="accounts.sweep_deleted_users.handler",
            delete_at=lambda at: delete_user(bob.id, now=at),
            deleted=deleted_users,
        )
    team = create_team("Other", "other", owner_user_id=bob.id, now=now)
    return Owner(
        id=team.id,
        send=Sender(create_key(NewKey(user_id=bob.id, team_id=team.id), now=now)[1], slug="other"),
        handler="teams.sweep_deleted_teams.handler",
        delete_at=lambda at: delete_team(team.id, by=None, now=at),
        deleted=deleted_teams,
    )


@pytest.fixture
def full(owner: Owner) -> Owner:
    """The owner with every kind of data."""
    fill(owner.send)
    change_state(owner.id, quota_bytes=1)
    assert owner.send("PUT", "/v8/artifacts/refused", body=b"too large").status == 403
    assert any(hash.startswith("#refused#") for hash in stored_of(owner.id)[ARTIFACTS.name()])
    change_state(owner.id, quota_bytes=10**9)
    assert all(stored_of(owner.id).values())
    return owner


def test_the_deletion_record_is_kept_until_no_upload_can_arrive(full: Owner) -> None:
    deleted_at = full.delete(ago=timedelta(hours=24))
    full.sweep()
    assert full.deleted() == [(full.id, deleted_at)]


def test_nothing_is_kept_afterwards(full: Owner) -> None:
    full.delete(ago=timedelta(hours=26))
    full.sweep()
    assert full.deleted() == []
    assert full.is_clear


def test_the_sweep_of_artifacts_deletes_the_objects(full: Owner) -> None:
    full.delete()
    full.sweep()
    sweep.sweep(now=clock.now() + timedelta(days=2))
    assert_nothing_is_in_index_or_bucket(full.id)


def test_an_upload_in_progress_is_deleted_by_a_later_run(full: Owner) -> None:
    full.delete()
    full.sweep()
    upload_late(full.id)
    full.sweep()
    assert full.is_clear


@pytest.mark.parametrize("operation", ["Query", "DeleteItem", "TransactWriteItems", "UpdateItem", "BatchGetItem"])
def test_a_failed_call_is_repeated_by_the_next_run(full: Owner, operation: str) -> None:
    full.delete(ago=timedelta(hours=26))
    with unreachable("dynamodb", operation), suppress(TryAgain):
        full.sweep()
    if operation != "BatchGetItem":  # which is called only after a concurrent deletion
        assert len(full.deleted()) == 1
    # The daily check of the totals corrects artifacts that were deleted but not subtracted.
    for hours in (24, 25):
        sweep.sweep(now=clock.now() + timedelta(hours=hours))
    full.sweep()
    assert full.is_clear
    assert full.deleted() == []


def test_an_artifact_deleted_concurrently_is_subtracted_once(owner: Owner) -> None:
    assert owner.send("PUT", "/v8/artifacts/a", body=b"artifact").status == 202
    artifact = read_entry(owner.id, ArtifactHash("a")).artifact
    assert artifact is not None
    owner.delete(ago=timedelta(hours=26))
    with just_before("dynamodb", "TransactWriteItems", lambda: publish.delete_from_index(artifact, now=clock.now())):
        owner.sweep()
    assert read_totals(owner.id) == Totals()
