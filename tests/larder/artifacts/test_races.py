"""Concurrent writers, and crashes between two calls: readers always see one complete artifact, and the totals are
correct in the end. A botocore hook runs the other writer between two calls.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.artifacts import publish, reads, storage, sweep
from larder.artifacts.models import (
    UNPROTECTED,
    Artifact,
    ArtifactHash,
    ArtifactMetadata,
    IndexEntry,
    PendingUpload,
    Totals,
    Upload,
    View,
)
from larder.artifacts.repository import index
from larder.artifacts.repository.sweep_queue import due_items
from larder.artifacts.repository.totals import add_to_totals, read_totals, try_add_to_totals
from larder.errors import ArtifactNotFound, CachingOverLimit, TryAgain
from larder.hashing import time_ordered_id
from larder.teams.state import change_state
from tests.direct_uploads import object_keys, offer, put_object
from tests.faults import answering, error, just_before, unreachable
from tests.requests import Cloud

HASH = ArtifactHash("abc")


def store(cloud: Cloud, body: bytes, replaces: Artifact | None = None) -> Artifact:
    return cloud.store(HASH, body, view=View(quota_bytes=1_000), entry=IndexEntry(artifact=replaces))


def seen(cloud: Cloud) -> bytes | None:
    """Return what a reader gets, and check the totals."""
    now = clock.now()
    try:
        entry = index.read_entry(cloud.team.id, HASH)
        artifact = reads.find(entry, view=UNPROTECTED, now=now)
    except ArtifactNotFound:
        assert read_totals(cloud.team.id) == Totals()
        return None
    body = reads.fetch(artifact, now=now)
    assert isinstance(body, bytes)
    assert read_totals(cloud.team.id) == Totals(size_bytes=len(body), artifacts=1)
    return body


def test_of_two_concurrent_first_uploads_one_is_visible_and_both_succeed(cloud: Cloud) -> None:
    with just_before("dynamodb", "PutItem", lambda: store(cloud, b"the other")):
        store(cloud, b"mine")
    assert seen(cloud) == b"the other"


def test_of_two_concurrent_replacements_one_is_visible_and_both_succeed(cloud: Cloud) -> None:
    first = store(cloud, b"first")
    with just_before("dynamodb", "TransactWriteItems", lambda: store(cloud, b"the other", replaces=first)):
        store(cloud, b"mine", replaces=first)
    assert seen(cloud) == b"the other"


def test_readers_get_a_direct_upload_that_was_offered_during_a_replacement(cloud: Cloud) -> None:
    first, keys = store(cloud, b"first"), list[str]()
    with just_before("dynamodb", "TransactWriteItems", lambda: keys.append(offer(cloud.send, HASH))):
        cloud.store(HASH, b"mine", entry=IndexEntry(artifact=first), now=clock.now() - timedelta(seconds=1))
    assert cloud.send("GET", f"/v8/artifacts/{HASH}").body == b"mine"
    put_object(keys[0], b"direct")
    assert cloud.send("GET", f"/v8/artifacts/{HASH}").body == b"direct"


def test_an_offer_marks_what_was_published_meanwhile(cloud: Cloud) -> None:
    first = store(cloud, b"first")
    with just_before("dynamodb", "TransactWriteItems", lambda: store(cloud, b"mine", replaces=first)):
        id = time_ordered_id(clock.now())
        pending = PendingUpload(upload=replace(first.upload, id=id), created_at=clock.now())
        index.put_pending(pending, replaces=first)
    entry = index.read_entry(cloud.team.id, HASH)
    assert entry.artifact
    assert entry.pending
    assert entry.artifact.offered == entry.pending.upload.id == id


def test_an_artifact_deleted_during_its_replacement_is_counted_correctly(cloud: Cloud) -> None:
    first = store(cloud, b"first")
    with just_before("dynamodb", "TransactWriteItems", lambda: publish.delete_from_index(first, now=clock.now())):
        store(cloud, b"mine", replaces=first)
    assert seen(cloud) == b"mine"


@pytest.mark.usefixtures("refusing")
def test_the_space_of_a_smaller_replacement_is_not_used_before_it_is_free(cloud: Cloud) -> None:
    first = store(cloud, b"x" * 1_000)

    def another_reserves_space() -> None:
        assert try_add_to_totals(cloud.team.id, 1, 1, quota_bytes=1_000) is None

    with just_before("dynamodb", "TransactWriteItems", another_reserves_space):
        store(cloud, b"mine", replaces=first)
    assert seen(cloud) == b"mine"


@pytest.mark.usefixtures("refusing")
def test_a_failed_smaller_replacement_does_not_change_the_totals(cloud: Cloud) -> None:
    first = store(cloud, b"x" * 1_000)
    with unreachable("s3", "PutObject"), pytest.raises(TryAgain):
        store(cloud, b"mine", replaces=first)
    assert seen(cloud) == b"x" * 1_000


@pytest.mark.usefixtures("refusing")
def test_the_quota_checks_the_full_upload_if_the_replaced_artifact_is_gone(cloud: Cloud) -> None:
    first = store(cloud, b"x" * 100)

    def it_goes_and_others_take_the_space() -> None:
        publish.delete_from_index(first, now=clock.now())
        add_to_totals(cloud.team.id, 990, 1)

    with (
        just_before("dynamodb", "TransactWriteItems", it_goes_and_others_take_the_space),
        pytest.raises(CachingOverLimit),
    ):
        store(cloud, b"x" * 110, replaces=first)
    assert read_totals(cloud.team.id) == Totals(size_bytes=990, artifacts=1)
    assert index.read_entry(cloud.team.id, HASH).artifact is None


def test_an_event_that_arrives_before_the_function_ends_counts_once(cloud: Cloud) -> None:
    def publish_it() -> None:
        (key,) = object_keys()
        _, owner, hash, upload_id = key.split("/")
        upload = Upload(owner=owner, hash=ArtifactHash(hash), id=upload_id)
        publish.publish(upload, now=clock.now())

    with just_before("dynamodb", "PutItem", publish_it):
        store(cloud, b"mine")
    assert seen(cloud) == b"mine"


def test_a_transaction_conflict_is_retried(cloud: Cloud) -> None:
    first = store(cloud, b"first")
    reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}, {"Code": "None"}]
    conflict = error("TransactionCanceledException", CancellationReasons=reasons)
    with answering("dynamodb", "TransactWriteItems", conflict, times=3):
        store(cloud, b"mine", replaces=first)
    assert seen(cloud) == b"mine"


@pytest.mark.slow
def test_a_replacement_that_other_writes_overtake_each_time_is_refused(cloud: Cloud) -> None:
    first = store(cloud, b"first")

    def publishes(params: dict[str, Any]) -> bool:
        return b"size_bytes" in params["body"]

    conflict = error("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}])
    with answering("dynamodb", "TransactWriteItems", conflict, only=publishes), pytest.raises(TryAgain):
        store(cloud, b"mine", replaces=first)
    assert seen(cloud) == b"first"


def test_the_next_sweep_deletes_an_object_that_s3_did_not(cloud: Cloud) -> None:
    store(cloud, b"second", replaces=store(cloud, b"first"))
    later = clock.now() + timedelta(hours=1)
    with unreachable("s3", "DeleteObjects"):
        assert sweep.sweep(now=later).failed == 1
    assert len(object_keys()) == 2
    sweep.sweep(now=later)
    assert len(object_keys()) == 1


@pytest.mark.usefixtures("refusing")
def test_a_concurrent_upload_cannot_use_the_same_part_of_the_quota(cloud: Cloud) -> None:
    def other() -> None:
        add_to_totals(cloud.team.id, 990, 1)

    with just_before("dynamodb", "UpdateItem", other), pytest.raises(CachingOverLimit):
        store(cloud, b"x" * 11)
    assert read_totals(cloud.team.id) == Totals(size_bytes=990, artifacts=1)
    assert index.read_entry(cloud.team.id, HASH).artifact is None


def test_a_failed_upload_to_s3_leaves_nothing_behind(cloud: Cloud) -> None:
    with unreachable("s3", "PutObject"), pytest.raises(TryAgain):
        store(cloud, b"mine")
    assert seen(cloud) is None


@pytest.mark.parametrize("size", [0, 1_001])
def test_the_sweep_deletes_an_upload_that_was_refused(cloud: Cloud, size: int) -> None:
    now = clock.now()
    upload = Upload(owner=cloud.team.id, hash=HASH, id=time_ordered_id(now))
    # No writer, because it was uploaded directly to S3.
    storage.put(upload, b"x" * size, ArtifactMetadata(), None)
    entry = index.read_entry(cloud.team.id, HASH)
    with pytest.raises(ArtifactNotFound):
        reads.find(entry, view=View(quota_bytes=1_000), now=now)
    change_state(cloud.team.id, quota_bytes=1_000)
    assert publish.publish(upload, now=now) is None
    assert list(due_items(now=now)) == []
    later = now.replace(year=now.year + 1)
    assert [due.sort_key for due in due_items(now=later)] == [f"#discarded#{upload.id}"]
