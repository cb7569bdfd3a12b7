"""Removal of what somebody wrote, or of everything that an owner stores."""

from datetime import datetime, timedelta

import pytest

from larder import clock
from larder.artifacts import finalize, service, sweep
from larder.artifacts.delete_by_writer import remove_written
from larder.artifacts.models import Artifact, ArtifactHash, ArtifactMetadata, Totals, Upload, Writer
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import add_to_totals, read_totals
from tests.direct_uploads import announce, object_keys, offer, put_object, upload
from tests.faults import answering, error, just_before
from tests.requests import Cloud

HOUR = timedelta(hours=1)


def store(
    cloud: Cloud,
    hash: str,
    *,
    writer: str | Writer = "theirs",
    body: bytes = b"artifact",
    owner: str | None = None,
    replaces: Artifact | None = None,
) -> Artifact:
    return service.store(
        owner or cloud.team.id,
        ArtifactHash(hash),
        body,
        ArtifactMetadata(),
        writer=Writer(writer, "somebody") if isinstance(writer, str) else writer,
        replaces=replaces,
        quota_bytes=None,
        now=clock.now(),
    )


def remove(cloud: Cloud, writer: str | None = "theirs", *, now: datetime | None = None) -> bool:
    return remove_written(cloud.team.id, writer=writer, now=now or clock.now())


def hashes(owner: str) -> list[str]:
    return [str(one.upload.hash) for one in index.stored_by(owner)]


def test_what_the_writer_wrote_goes_and_everything_else_stays(cloud: Cloud) -> None:
    for number in range(7):
        store(cloud, f"a{number}", writer="theirs" if number % 2 else "mine")
    store(cloud, "a1", owner=cloud.user.id)
    assert remove(cloud)
    assert hashes(cloud.team.id) == ["a0", "a2", "a4", "a6"]
    assert hashes(cloud.user.id) == ["a1"]
    assert read_totals(cloud.team.id) == Totals(size_bytes=32, artifacts=4)
    assert read_totals(cloud.user.id) == Totals(size_bytes=8, artifacts=1)


def test_a_user_goes_by_their_id_with_all_keys_and_sessions_and_an_older_upload_by_its_key(
    cloud: Cloud,
) -> None:
    for hash, writer in (
        ("a1", Writer("key", "ada")),
        ("a2", Writer("session", "ada")),
        ("a3", Writer("key")),
        ("a4", Writer("key", "bob")),
    ):
        store(cloud, hash, writer=writer)
    assert remove(cloud, "ada")
    assert hashes(cloud.team.id) == ["a3", "a4"]
    assert remove(cloud, "key")
    assert hashes(cloud.team.id) == []


def test_without_a_writer_everything_goes_and_the_sweep_empties_the_bucket(cloud: Cloud) -> None:
    store(cloud, "a1")
    store(cloud, "a2", writer="mine")
    offer(cloud.send, "a3")
    assert remove(cloud, None)
    assert hashes(cloud.team.id) == []
    assert read_totals(cloud.team.id) == Totals()
    assert len(object_keys()) == 2
    sweep.sweep(now=clock.now() + HOUR)
    assert object_keys() == []


def test_a_reader_who_was_sent_to_an_object_can_still_load_it(cloud: Cloud) -> None:
    store(cloud, "a1")
    assert remove(cloud)
    sweep.sweep(now=clock.now())
    assert len(object_keys()) == 1


@pytest.mark.parametrize("after", [timedelta(0), HOUR, 23 * HOUR])
def test_an_upload_that_was_offered_before_is_never_seen_whenever_it_comes(
    cloud: Cloud, after: timedelta
) -> None:
    key = offer(cloud.send, "a1")
    assert remove(cloud, cloud.key.id)
    sweep.sweep(now=clock.now() + after)
    put_object(key, b"too late")
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/a1").status == 404
    assert read_totals(cloud.team.id) == Totals()
    sweep.sweep(now=clock.now() + 25 * HOUR)
    assert object_keys() == []


def test_an_upload_that_has_come_and_is_not_settled_is_removed(cloud: Cloud) -> None:
    key = upload(cloud.send, "a1", b"straight to S3")
    assert remove(cloud, cloud.key.id)
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/a1").status == 404


def test_an_offer_of_somebody_else_for_a_removed_hash_stays(cloud: Cloud) -> None:
    store(cloud, "a1")
    key = offer(cloud.send, "a1")
    assert remove(cloud)
    put_object(key, b"mine")
    assert cloud.send("GET", "/v8/artifacts/a1").body == b"mine"


def test_the_offer_that_is_settled_while_it_is_taken_back_is_removed_as_an_artifact(
    cloud: Cloud,
) -> None:
    key = upload(cloud.send, "a1", b"straight to S3")
    with just_before("dynamodb", "TransactWriteItems", lambda: announce(key)):
        assert remove(cloud, cloud.key.id)
    assert hashes(cloud.team.id) == []
    assert read_totals(cloud.team.id) == Totals()


@pytest.mark.parametrize(("by", "left"), [("mine", ["a1"]), ("theirs", [])])
def test_an_artifact_that_is_replaced_meanwhile_goes_if_its_writer_wrote_that_too(
    cloud: Cloud, by: str, left: list[str]
) -> None:
    first = store(cloud, "a1")
    with just_before(
        "dynamodb",
        "TransactWriteItems",
        lambda: store(cloud, "a1", writer=by, body=b"newer", replaces=first),
    ):
        assert remove(cloud)
    assert hashes(cloud.team.id) == left
    assert read_totals(cloud.team.id).artifacts == len(left)


def test_an_artifact_that_somebody_else_removes_meanwhile_is_counted_out_once(
    cloud: Cloud,
) -> None:
    first = store(cloud, "a1")
    with just_before(
        "dynamodb", "TransactWriteItems", lambda: finalize.forget(first, now=clock.now())
    ):
        assert remove(cloud)
    assert read_totals(cloud.team.id) == Totals()


def test_a_transaction_that_meets_another_is_tried_again(cloud: Cloud) -> None:
    store(cloud, "a1")
    reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
    conflict = error("TransactionCanceledException", CancellationReasons=reasons)
    with answering("dynamodb", "TransactWriteItems", conflict, times=3):
        assert remove(cloud)
    assert hashes(cloud.team.id) == []


def test_a_removal_that_is_stopped_is_done_by_the_next_one(cloud: Cloud) -> None:
    for number in range(250):
        index.publish(
            Artifact(
                upload=Upload(
                    owner=cloud.team.id, hash=ArtifactHash(f"a{number}"), id=f"{number:028x}"
                ),
                size_bytes=1,
                created_at=clock.now(),
                writer=Writer("theirs"),
            ),
            replaces=None,
            now=clock.now(),
        )
    add_to_totals(cloud.team.id, 250, 250, quota_bytes=None)
    looks = iter([True, True, False])
    assert not remove_written(
        cloud.team.id, writer="theirs", now=clock.now(), has_time=lambda: next(looks)
    )
    assert read_totals(cloud.team.id) == Totals(size_bytes=50, artifacts=50)
    assert len(hashes(cloud.team.id)) == 50
    assert remove(cloud)
    assert read_totals(cloud.team.id) == Totals()


def test_what_fails_is_left_to_the_next_removal_and_the_rest_is_done(cloud: Cloud) -> None:
    store(cloud, "a1")
    store(cloud, "a2")
    with answering("dynamodb", "TransactWriteItems", error("InternalServerError", 500), times=1):
        assert not remove(cloud)
    assert len(hashes(cloud.team.id)) == 1
    assert remove(cloud)
    assert read_totals(cloud.team.id) == Totals()
