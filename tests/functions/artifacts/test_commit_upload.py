"""The bucket's "Object Created" event"""

from datetime import timedelta

from larder import aws, clock
from larder.accounts.sessions import start_session
from larder.artifacts import sweep
from larder.artifacts.models import (
    Artifact,
    ArtifactHash,
    PendingUpload,
    Totals,
    Upload,
    Writer,
)
from larder.artifacts.repository import index
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.sweep_queue import forget_discarded
from larder.artifacts.repository.totals import read_totals
from larder.hashing import time_ordered_id
from larder.settings import settings
from larder.teams.service import change_state
from tests.direct_uploads import announce, object_keys, offer, put_object, upload
from tests.requests import Cloud, Sender

HOUR = timedelta(hours=1)


def stored(cloud: Cloud, hash: str) -> Artifact | None:
    """The indexed artifact, read without settling a pending upload."""
    return read_entry(cloud.team.id, ArtifactHash(hash)).artifact


def test_the_event_makes_an_upload_visible_before_any_read(cloud: Cloud) -> None:
    key = upload(cloud.send, "abc", b"straight to S3")
    announce(key)
    artifact = stored(cloud, "abc")
    assert artifact is not None
    assert (artifact.upload.object_key, artifact.size_bytes) == (key, 14)
    assert read_entry(cloud.team.id, ArtifactHash("abc")).pending is None
    assert read_totals(cloud.team.id) == Totals(size_bytes=14, artifacts=1)


def test_a_repeated_event_counts_once(cloud: Cloud) -> None:
    key = upload(cloud.send, "abc", b"straight to S3")
    announce(key)
    announce(key)
    assert read_totals(cloud.team.id) == Totals(size_bytes=14, artifacts=1)


def test_an_upload_of_another_size_to_the_same_url_removes_the_artifact(
    cloud: Cloud,
) -> None:
    """The quota allowed 100 bytes. Other bytes in their place would be served but not counted."""
    change_state(cloud.team.id, quota_bytes=1_000)
    key = upload(cloud.send, "abc", b"x" * 100)
    announce(key)
    put_object(key, b"y" * 10_000)
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    assert read_totals(cloud.team.id) == Totals()
    assert [sweep.sweep(now=clock.now() + hours * HOUR).failed for hours in (1, 25)] == [0, 0]
    assert object_keys() == []


def test_a_late_event_of_the_earlier_object_changes_nothing(cloud: Cloud) -> None:
    key = upload(cloud.send, "abc", b"x" * 100)
    put_object(key, b"y" * 200)
    announce(key, size_bytes=200)
    announce(key, size_bytes=100)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"y" * 200
    assert read_totals(cloud.team.id) == Totals(size_bytes=200, artifacts=1)


def test_an_event_without_an_object_changes_nothing(cloud: Cloud) -> None:
    announce(offer(cloud.send, "abc"))
    assert stored(cloud, "abc") is None
    assert read_entry(cloud.team.id, ArtifactHash("abc")).pending is not None


def test_an_upload_whose_offer_was_replaced_is_settled_by_its_event(
    cloud: Cloud,
) -> None:
    first = offer(cloud.send, "abc")
    offer(cloud.send, "abc")
    put_object(first, b"first")
    announce(first)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"first"


def test_an_upload_keeps_its_writer_after_a_later_offer(cloud: Cloud) -> None:
    first = offer(cloud.send, "abc")
    offer(Sender(start_session(cloud.user, now=clock.now())[1], slug="acme"), "abc")
    put_object(first, b"first")
    announce(first)
    artifact = stored(cloud, "abc")
    assert artifact is not None
    assert artifact.writer == cloud.writer


def test_an_uploader_cannot_change_the_writer_or_the_quota(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=10)
    for hash, body in (("a1", b"12345678"), ("a2", b"123")):
        key = offer(cloud.send, hash)
        # S3 refuses unsigned headers. Larder would ignore them even if S3 accepted them.
        claims = {"writer": "another", "user-id": "else"}
        aws.s3().put_object(Bucket=settings().artifacts_bucket, Key=key, Body=body, Metadata=claims)
        announce(key)
    artifact = stored(cloud, "a1")
    assert artifact is not None
    assert artifact.writer == cloud.writer
    assert stored(cloud, "a2") is None


def test_an_offer_of_an_older_version_keeps_its_writer(cloud: Cloud) -> None:
    upload = Upload(owner=cloud.team.id, hash=ArtifactHash("abc"), id=time_ordered_id(clock.now()))
    index.put_pending(PendingUpload(upload=upload, created_at=clock.now()))
    aws.dynamodb().update_item(
        TableName=settings().artifacts_table,
        Key=aws.serialize({"owner": cloud.team.id, "hash": "abc#pending"}),
        UpdateExpression="SET writer = :key",
        ExpressionAttributeValues=aws.serialize({":key": cloud.key.id}),
    )
    put_object(upload.object_key, b"artifact")
    announce(upload.object_key)
    artifact = stored(cloud, "abc")
    assert artifact is not None
    assert artifact.writer == Writer(cloud.key.id)


def test_the_upload_that_started_later_wins_in_either_order(cloud: Cloud) -> None:
    for hash, order in (("a1", (0, 1)), ("a2", (1, 0))):
        keys = [upload(cloud.send, hash, b"earlier"), upload(cloud.send, hash, b"later!!")]
        for place in order:
            announce(keys[place])
        assert cloud.send("GET", f"/v8/artifacts/{hash}").body == b"later!!"
    assert read_totals(cloud.team.id) == Totals(size_bytes=14, artifacts=2)


def test_a_late_event_of_a_replaced_upload_changes_nothing(cloud: Cloud) -> None:
    first = upload(cloud.send, "abc", b"first")
    announce(first)
    cloud.send("PUT", "/v8/artifacts/abc", body=b"second")
    announce(first)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"second"


def test_a_late_event_does_not_restore_a_deleted_artifact(cloud: Cloud) -> None:
    key = upload(cloud.send, "abc", b"artifact")
    announce(key)
    artifact = stored(cloud, "abc")
    assert artifact is not None
    index.remove(artifact, now=clock.now())
    announce(key)
    assert stored(cloud, "abc") is None


def test_an_upload_over_the_quota_is_not_listed(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=10)
    announce(upload(cloud.send, "abc", b"eleven byte"))
    assert stored(cloud, "abc") is None
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    assert read_totals(cloud.team.id).size_bytes == 0


def test_an_empty_object_is_not_an_artifact(cloud: Cloud) -> None:
    announce(upload(cloud.send, "abc", b""))
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404


def test_the_event_completes_an_upload_whose_function_crashed(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact", headers={"x-artifact-duration": "5"})
    (key,) = object_keys()
    artifact = stored(cloud, "abc")
    assert artifact is not None
    # The crash: the object exists, but it has no index item.
    index.remove(artifact, now=clock.now() - timedelta(days=1))
    forget_discarded(artifact.upload)
    announce(key)
    reply = cloud.send("GET", "/v8/artifacts/abc")
    assert (reply.body, reply.headers["x-artifact-duration"]) == (b"artifact", "5")


def test_objects_that_larder_did_not_name_are_left_alone(cloud: Cloud, send: Sender) -> None:
    for key in ("artifacts/readme.txt", "artifacts/a/b/../c/d", f"artifacts/{'x' * 900}"):
        put_object(key, b"another")
        announce(key)
    assert len(object_keys()) == 3
