"""The bucket's "Object Created" event"""

from datetime import timedelta

import pytest

from larder import aws, clock
from larder.accounts.sessions import start_session
from larder.actor import Actor
from larder.artifacts import storage, sweep
from larder.artifacts.models import (
    INDEXED_BODY_BYTES,
    NULL_VERSION,
    Artifact,
    ArtifactHash,
    PendingUpload,
    Totals,
    Upload,
    parse_object_key,
)
from larder.artifacts.records import Discarded
from larder.artifacts.repository import index
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.sweep_queue import delete_discarded
from larder.artifacts.repository.totals import read_totals
from larder.hashing import time_ordered_id
from larder.settings import settings
from larder.tables import ARTIFACTS
from larder.teams.state import change_state
from tests.direct_uploads import announce, keeping_no_versions, object_keys, offer, put_object, upload, versions_of
from tests.faults import answering, error
from tests.hooks import hooked
from tests.requests import Cloud, Sender

HOUR = timedelta(hours=1)
LARGER = INDEXED_BODY_BYTES + 1
"""Too large for the index, so that readers get it from the bucket."""


def stored(cloud: Cloud, hash: str) -> Artifact | None:
    """The indexed artifact, read without publishing a pending upload."""
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


@pytest.mark.parametrize("first_bytes", [100, LARGER])
@pytest.mark.parametrize("more_bytes", [-1, 0, 1, 10_000])
def test_an_upload_to_the_url_of_a_published_one_changes_nothing(
    cloud: Cloud, caplog: pytest.LogCaptureFixture, first_bytes: int, more_bytes: int
) -> None:
    """The quota allowed the first bytes. Others in their place would not be counted, or would be another artifact."""
    change_state(cloud.team.id, quota_bytes=10_000)
    key = upload(cloud.send, "abc", b"x" * first_bytes)
    announce(key)
    published = stored(cloud, "abc")
    assert published is not None
    put_object(key, b"y" * (first_bytes + more_bytes))
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"x" * first_bytes
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"x" * first_bytes
    assert stored(cloud, "abc") == published
    assert read_totals(cloud.team.id) == Totals(size_bytes=first_bytes, artifacts=1)
    assert [one.id for one in versions_of(key)] == [published.version]
    (warning,) = (record for record in caplog.records if record.levelname == "WARNING")
    assert "deleted an object that would replace a published one" in warning.message
    assert vars(warning)["ReplacedUploadAttempts"] == 1


@pytest.mark.parametrize("size_bytes", [100, LARGER])
def test_of_two_uploads_to_one_url_the_one_whose_event_comes_first_is_published(cloud: Cloud, size_bytes: int) -> None:
    key = offer(cloud.send, "abc")
    first, second = put_object(key, b"1" * size_bytes), put_object(key, b"2" * (size_bytes + 50))
    announce(key, version=second)
    for late in (first, second, first):
        announce(key, version=late)
        assert cloud.send("GET", "/v8/artifacts/abc").body == b"2" * (size_bytes + 50)
    assert read_totals(cloud.team.id) == Totals(size_bytes=size_bytes + 50, artifacts=1)
    assert [one.id for one in versions_of(key)] == [second]


def test_a_reader_publishes_the_latest_of_two_uploads_to_one_url(cloud: Cloud) -> None:
    key = offer(cloud.send, "abc")
    first, second = put_object(key, b"first"), put_object(key, b"second")
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"second"
    announce(key, version=first)
    announce(key, version=second)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"second"
    assert [one.id for one in versions_of(key)] == [second]


def test_events_of_two_uploads_to_one_url_at_once_publish_one(cloud: Cloud) -> None:
    key = offer(cloud.send, "abc")
    first, second = put_object(key, b"first"), put_object(key, b"second")
    interrupted = False

    def the_other_event_is_handled(**_: object) -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            announce(key, version=second)

    # The event of the first has read that nothing is published, and is about to publish.
    with hooked("before-call.dynamodb.TransactWriteItems", the_other_event_is_handled, aws.dynamodb()):
        announce(key, version=first)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"second"
    assert read_totals(cloud.team.id) == Totals(size_bytes=6, artifacts=1)
    assert [one.id for one in versions_of(key)] == [second]


def test_an_upload_to_the_url_of_a_deleted_artifact_is_deleted_by_the_sweep(cloud: Cloud) -> None:
    key = upload(cloud.send, "abc", b"x" * LARGER)
    announce(key)
    assert manager(cloud)("DELETE", "/v1/artifacts/abc").status == 200
    put_object(key, b"y" * LARGER)
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    for hours in (1, 25):
        assert sweep.sweep(now=clock.now() + hours * HOUR).failed == 0
    assert versions_of(key) == []
    assert read_totals(cloud.team.id) == Totals()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v8/artifacts/abc"),
        ("HEAD", "/v8/artifacts/abc"),
        ("POST", "/v8/artifacts"),
        ("GET", "/v1/artifacts/abc"),
        ("DELETE", "/v1/artifacts/abc"),
    ],
)
def test_a_reader_whose_version_is_deleted_before_it_is_read_gets_no_error(
    cloud: Cloud, method: str, path: str
) -> None:
    """As when the event of another version comes between, and then the event of this one."""
    upload(cloud.send, "abc", b"straight to S3")
    body = {"hashes": ["abc"]} if method == "POST" else None
    with answering("s3", "GetObject", error("NoSuchVersion", 404), times=1) as calls:
        assert manager(cloud)(method, path, json_body=body).status == 200
    assert calls == ["GetObject"]


def test_an_event_of_a_version_that_is_gone_changes_nothing(cloud: Cloud) -> None:
    key = offer(cloud.send, "abc")
    version = put_object(key, b"x" * LARGER)
    storage.delete_version(of(key), version)
    announce(key, version=version)
    assert stored(cloud, "abc") is None
    put_object(key, b"again")
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"again"


def test_an_object_of_a_bucket_without_versions_is_the_version_null(cloud: Cloud) -> None:
    """So are the objects and events of version 0.1.0, which a deployment finds."""
    key = offer(cloud.send, "abc")
    with keeping_no_versions():
        put_object(key, b"x" * LARGER)
    announce(key, version="")
    artifact = stored(cloud, "abc")
    assert artifact is not None
    assert artifact.version == NULL_VERSION
    put_object(key, b"y" * LARGER)
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"x" * LARGER


def of(key: str) -> Upload:
    found = parse_object_key(key)
    assert found is not None
    return found


def manager(cloud: Cloud) -> Sender:
    """The team's owner, signed in."""
    return Sender(start_session(cloud.user, now=clock.now())[1], slug="acme")


def test_an_event_without_an_object_changes_nothing(cloud: Cloud) -> None:
    announce(offer(cloud.send, "abc"))
    assert stored(cloud, "abc") is None
    assert read_entry(cloud.team.id, ArtifactHash("abc")).pending is not None


def test_an_upload_whose_offer_was_replaced_is_published_by_its_event(cloud: Cloud) -> None:
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


@pytest.mark.usefixtures("refusing")
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
        Key=ARTIFACTS.typed_key(index.entry_keys(cloud.team.id, "abc")[1]),
        UpdateExpression="SET writer = :key",
        ExpressionAttributeValues=aws.serialize({":key": cloud.key.id}),
    )
    put_object(upload.object_key, b"artifact")
    announce(upload.object_key)
    artifact = stored(cloud, "abc")
    assert artifact is not None
    assert artifact.writer == Actor(cloud.key.id)


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
    index.delete(artifact, now=clock.now())
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
    index.delete(artifact, now=clock.now() - timedelta(days=1))
    delete_discarded(Discarded(artifact.upload))
    announce(key)
    reply = cloud.send("GET", "/v8/artifacts/abc")
    assert (reply.body, reply.headers["x-artifact-duration"]) == (b"artifact", "5")


def test_objects_that_larder_did_not_name_are_left_alone(cloud: Cloud, send: Sender) -> None:
    for key in ("artifacts/readme.txt", "artifacts/a/b/../c/d", f"artifacts/{'x' * 900}"):
        put_object(key, b"another")
        announce(key)
    assert len(object_keys()) == 3
