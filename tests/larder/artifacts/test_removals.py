"""Removal of all artifacts of a writer, or of an owner."""

from datetime import datetime, timedelta

import pytest

from larder import clock
from larder.actor import Actor
from larder.artifacts import publish, sweep
from larder.artifacts.models import Artifact, ArtifactHash, IndexEntry, Totals, Upload
from larder.artifacts.removals import delete_target
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import add_to_totals, read_totals
from larder.artifacts.selection import EVERYTHING
from tests.direct_uploads import announce, object_keys, offer, put_object, upload
from tests.faults import answering, error, just_before
from tests.requests import Cloud

HOUR = timedelta(hours=1)


def store(
    cloud: Cloud,
    hash: str,
    *,
    writer: str | Actor = "another",
    body: bytes = b"artifact",
    owner: str | None = None,
    replaces: Artifact | None = None,
) -> Artifact:
    return cloud.store(
        hash,
        body,
        owner=owner or cloud.team.id,
        writer=Actor(writer, "someone") if isinstance(writer, str) else writer,
        entry=IndexEntry(artifact=replaces),
    )


def remove(cloud: Cloud, target: str = "another", *, now: datetime | None = None) -> bool:
    return delete_target(cloud.team.id, target, now=now or clock.now())


def hashes(owner: str) -> list[str]:
    return sorted(one.upload.hash for one in index.stored_by(owner))


def test_only_the_artifacts_of_the_writer_are_deleted(cloud: Cloud) -> None:
    for number in range(7):
        store(cloud, f"a{number}", writer="another" if number % 2 else "mine")
    store(cloud, "a1", owner=cloud.user.id)
    assert remove(cloud)
    assert hashes(cloud.team.id) == ["a0", "a2", "a4", "a6"]
    assert hashes(cloud.user.id) == ["a1"]
    assert read_totals(cloud.team.id) == Totals(size_bytes=32, artifacts=4)
    assert read_totals(cloud.user.id) == Totals(size_bytes=8, artifacts=1)


def test_a_user_id_deletes_uploads_by_all_keys_and_sessions(cloud: Cloud) -> None:
    for hash, writer in (
        ("a1", Actor("key", "ada")),
        ("a2", Actor("session", "ada")),
        ("a3", Actor("key")),
        ("a4", Actor("key", "bob")),
    ):
        store(cloud, hash, writer=writer)
    assert remove(cloud, "ada")
    assert hashes(cloud.team.id) == ["a3", "a4"]
    assert remove(cloud, "key")
    assert hashes(cloud.team.id) == []


def test_without_a_writer_everything_is_deleted_and_the_sweep_empties_the_bucket(cloud: Cloud) -> None:
    store(cloud, "a1")
    store(cloud, "a2", writer="mine")
    offer(cloud.send, "a3")
    assert remove(cloud, EVERYTHING)
    assert hashes(cloud.team.id) == []
    assert read_totals(cloud.team.id) == Totals()
    assert len(object_keys()) == 2
    sweep.sweep(now=clock.now() + HOUR)
    assert object_keys() == []


def test_a_reader_with_a_redirect_can_still_load_the_object(cloud: Cloud) -> None:
    store(cloud, "a1")
    assert remove(cloud)
    sweep.sweep(now=clock.now())
    assert len(object_keys()) == 1


@pytest.mark.parametrize("after", [timedelta(0), HOUR, 23 * HOUR])
def test_an_upload_offered_before_the_removal_is_never_visible(cloud: Cloud, after: timedelta) -> None:
    key = offer(cloud.send, "a1")
    assert remove(cloud, cloud.key.id)
    sweep.sweep(now=clock.now() + after)
    put_object(key, b"too late")
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/a1").status == 404
    assert read_totals(cloud.team.id) == Totals()
    sweep.sweep(now=clock.now() + 25 * HOUR)
    assert object_keys() == []


def test_an_upload_that_arrived_but_is_not_published_is_deleted(cloud: Cloud) -> None:
    key = upload(cloud.send, "a1", b"straight to S3")
    assert remove(cloud, cloud.key.id)
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/a1").status == 404


def test_another_writers_offer_for_a_deleted_hash_stays(cloud: Cloud) -> None:
    store(cloud, "a1")
    key = offer(cloud.send, "a1")
    assert remove(cloud)
    put_object(key, b"mine")
    assert cloud.send("GET", "/v8/artifacts/a1").body == b"mine"


def test_an_offer_published_during_the_removal_is_deleted_as_an_artifact(cloud: Cloud) -> None:
    key = upload(cloud.send, "a1", b"straight to S3")
    with just_before("dynamodb", "TransactWriteItems", lambda: announce(key)):
        assert remove(cloud, cloud.key.id)
    assert hashes(cloud.team.id) == []
    assert read_totals(cloud.team.id) == Totals()


@pytest.mark.parametrize(("by", "left"), [("mine", ["a1"]), ("another", [])])
def test_an_artifact_replaced_by_the_same_writer_during_the_removal_is_deleted(
    cloud: Cloud, by: str, left: list[str]
) -> None:
    first = store(cloud, "a1")
    with just_before(
        "dynamodb", "TransactWriteItems", lambda: store(cloud, "a1", writer=by, body=b"newer", replaces=first)
    ):
        assert remove(cloud)
    assert hashes(cloud.team.id) == left
    assert read_totals(cloud.team.id).artifacts == len(left)


def test_an_artifact_deleted_concurrently_is_subtracted_once(cloud: Cloud) -> None:
    first = store(cloud, "a1")
    with just_before("dynamodb", "TransactWriteItems", lambda: publish.delete_from_index(first, now=clock.now())):
        assert remove(cloud)
    assert read_totals(cloud.team.id) == Totals()


def test_a_transaction_conflict_is_retried(cloud: Cloud) -> None:
    store(cloud, "a1")
    reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
    conflict = error("TransactionCanceledException", CancellationReasons=reasons)
    with answering("dynamodb", "TransactWriteItems", conflict, times=3):
        assert remove(cloud)
    assert hashes(cloud.team.id) == []


def test_an_interrupted_removal_is_finished_by_the_next_one(cloud: Cloud) -> None:
    for number in range(250):
        index.publish(
            Artifact(
                upload=Upload(owner=cloud.team.id, hash=ArtifactHash(f"a{number}"), id=f"{number:028x}"),
                size_bytes=1,
                created_at=clock.now(),
                writer=Actor("another"),
            ),
            replaces=None,
            now=clock.now(),
        )
    add_to_totals(cloud.team.id, 250, 250)
    looks = iter([True, True, False])
    assert not delete_target(cloud.team.id, "another", now=clock.now(), has_time=lambda: next(looks))
    assert read_totals(cloud.team.id) == Totals(size_bytes=50, artifacts=50)
    assert len(hashes(cloud.team.id)) == 50
    assert remove(cloud)
    assert read_totals(cloud.team.id) == Totals()


def test_a_failure_is_left_to_the_next_removal_and_the_rest_is_done(cloud: Cloud) -> None:
    store(cloud, "a1")
    store(cloud, "a2")
    with answering("dynamodb", "TransactWriteItems", error("InternalServerError", 500), times=1):
        assert not remove(cloud)
    assert len(hashes(cloud.team.id)) == 1
    assert remove(cloud)
    assert read_totals(cloud.team.id) == Totals()
