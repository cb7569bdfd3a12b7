"""GET /v8/artifacts/{hash}"""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from larder import aws, clock
from larder.artifacts.management import delete_artifact
from larder.artifacts.models import (
    HELD_BODY_BYTES,
    INDEXED_BODY_BYTES,
    MAX_CI_LENGTH,
    MAX_HASH_LENGTH,
    MAX_TAG_LENGTH,
    ArtifactHash,
    Totals,
)
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import read_totals
from larder.artifacts.sweep import sweep
from larder.conditions import begins_with
from larder.settings import settings
from larder.tables import ARTIFACTS
from larder.teams.protection import ProtectionChange, change_protection
from tests.conftest import SetOption
from tests.direct_uploads import announce, keeping_no_versions, object_keys, offer, put_object, upload, versions
from tests.faults import answering, error
from tests.hooks import hooked
from tests.requests import Cloud, Sender

LARGER = HELD_BODY_BYTES + 1
"""An artifact that is too large for the index, so that its body is only in the bucket."""

TAG = "Tc0BmHvJYMIYJ62/zx87YqO0Flxk+5Ovip25NY825CQ="


def delete_every_object() -> None:
    for version in versions():
        aws.s3().delete_object(Bucket=settings().artifacts_bucket, Key=version.key, VersionId=version.id)


def test_200_with_the_body_for_a_small_artifact(send: Sender) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"\x28\xb5\x2f\xfd small")
    reply = send("GET", "/v8/artifacts/abc")
    assert (reply.status, reply.body) == (200, b"\x28\xb5\x2f\xfd small")
    assert reply.headers["content-type"] == "application/octet-stream"


def test_a_small_artifact_is_served_from_the_index(cloud: Cloud) -> None:
    """The index holds a copy of the body, so no S3 call is needed."""
    body = bytes(range(250)) * (INDEXED_BODY_BYTES // 250)
    cloud.send("PUT", "/v8/artifacts/abc", body=body, headers={"x-artifact-tag": TAG})
    delete_every_object()
    reply = cloud.send("GET", "/v8/artifacts/abc")
    assert (reply.status, reply.body, reply.headers["x-artifact-tag"]) == (200, body, TAG)


@pytest.mark.parametrize("is_protected", [False, True])
def test_a_medium_artifact_is_served_from_next_to_the_index(cloud: Cloud, is_protected: bool) -> None:
    """In a protected team from the key's own scope."""
    send = cloud.send
    if is_protected:
        change_protection(cloud.team.id, ProtectionChange(protected=True, keep_stored=True), by=None)
    body = bytes(range(256)) * (HELD_BODY_BYTES // 256)
    assert send("PUT", "/v8/artifacts/abc", body=body, headers={"x-artifact-tag": TAG}).status == 202
    delete_every_object()
    reply = send("GET", "/v8/artifacts/abc")
    assert (reply.status, reply.body, reply.headers["x-artifact-tag"]) == (200, body, TAG)


def test_a_medium_direct_upload_is_held_next_to_the_index_by_its_event(cloud: Cloud) -> None:
    body = b"x" * HELD_BODY_BYTES
    announce(upload(cloud.send, "abc", body))
    announce(upload(cloud.send, "too-large", body + b"x"))
    delete_every_object()
    assert cloud.send("GET", "/v8/artifacts/abc").body == body
    assert cloud.send("GET", "/v8/artifacts/too-large").status == 404


def held_bodies(cloud: Cloud) -> list[str]:
    """The artifacts whose bodies are next to the index."""
    of_team = f"{index.BODY}{cloud.team.id}#"
    return sorted(item["owner"].removeprefix(of_team) for item in ARTIFACTS.scan(begins_with(owner=of_team)))


def test_a_body_next_to_the_index_is_deleted_with_its_object(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"x" * HELD_BODY_BYTES)
    cloud.send("PUT", "/v8/artifacts/def", body=b"x" * HELD_BODY_BYTES)
    assert held_bodies(cloud) == ["abc", "def"]
    abc = ArtifactHash("abc")
    entry = index.read_entry(cloud.team.id, abc)
    delete_artifact(cloud.team.id, abc, entry, by=cloud.writer, now=clock.now())
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    sweep(now=clock.now() + timedelta(hours=2))
    assert held_bodies(cloud) == ["def"]
    assert cloud.send("GET", "/v8/artifacts/def").status == 200


def test_a_body_of_another_upload_is_not_served(cloud: Cloud) -> None:
    """As while an upload replaces an artifact, or after its function has ended in between."""
    for body in (b"x" * HELD_BODY_BYTES, b"y" * LARGER):
        cloud.send("PUT", "/v8/artifacts/abc", body=body)
    assert held_bodies(cloud) == ["abc"]
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"y" * LARGER
    sweep(now=clock.now() + timedelta(hours=2))
    assert held_bodies(cloud) == []
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"y" * LARGER


def test_an_upload_succeeds_if_its_body_cannot_be_kept_next_to_the_index(cloud: Cloud) -> None:
    full = error("ThrottlingException")
    with answering("dynamodb", "PutItem", full, only=lambda sent: index.BODY in str(sent["body"])) as calls:
        reply = cloud.send("PUT", "/v8/artifacts/abc", body=b"x" * HELD_BODY_BYTES)
    assert calls
    assert reply.status == 202
    assert held_bodies(cloud) == []
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"x" * HELD_BODY_BYTES


def test_a_published_small_direct_upload_is_served_from_the_index(cloud: Cloud) -> None:
    announce(upload(cloud.send, "by-its-event", b"straight to S3"))
    upload(cloud.send, "by-a-reader", b"straight to S3")
    assert cloud.send("HEAD", "/v8/artifacts/by-a-reader").status == 200
    delete_every_object()
    for hash in ("by-its-event", "by-a-reader"):
        reply = cloud.send("GET", f"/v8/artifacts/{hash}")
        assert (reply.status, reply.body) == (200, b"straight to S3")


def test_a_second_upload_to_a_used_url_is_not_served(cloud: Cloud) -> None:
    key = upload(cloud.send, "abc", b"first")
    announce(key)
    put_object(key, b"later")
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"first"


def test_a_larger_artifact_replaces_a_small_one_and_vice_versa(cloud: Cloud) -> None:
    for body in (b"small", b"x" * LARGER, b"smaller"):
        assert cloud.send("PUT", "/v8/artifacts/abc", body=body).status == 202
        assert cloud.send("GET", "/v8/artifacts/abc").body == body


def test_a_small_artifact_costs_no_more_to_read_than_one_without_a_body(cloud: Cloud) -> None:
    """DynamoDB charges a read per 4 KB of the item, including attribute names."""
    headers = {
        "x-artifact-duration": "10000000000",
        "x-artifact-tag": "t" * MAX_TAG_LENGTH,
        "x-artifact-sha": "a" * 128,
        "x-artifact-dirty-hash": "b" * 128,
        "x-artifact-client-ci": "c" * MAX_CI_LENGTH,
        "x-artifact-client-interactive": "0",
    }
    hash = "h" * MAX_HASH_LENGTH
    body = b"x" * INDEXED_BODY_BYTES
    assert cloud.send("PUT", f"/v8/artifacts/{hash}", body=body, headers=headers).status == 202
    key = ARTIFACTS.typed_key(index.entry_keys(cloud.team.id, hash)[0])
    item = aws.dynamodb().get_item(TableName=settings().artifacts_table, Key=key)["Item"]
    assert "body" in item
    assert sum(len(name) + len(str(*value.values())) for name, value in item.items()) <= 4096


def test_302_to_s3_for_an_artifact_above_the_inline_size(send: Sender, option: SetOption) -> None:
    """As a download whatever the upload had. Otherwise an upload could be a page on the address of the bucket."""
    option("inline_download_bytes", 10)
    send("PUT", "/v8/artifacts/abc", body=b"<script>...", headers={"x-artifact-duration": "7"})
    reply = send("GET", "/v8/artifacts/abc")
    location = urlsplit(reply.headers["location"])
    assert (reply.status, reply.body, reply.headers["cache-control"]) == (302, b"", "no-store")
    assert location.netloc == f"{settings().artifacts_bucket}.s3.eu-central-1.amazonaws.com"
    assert location.path.removeprefix("/") in object_keys()
    signed = {name: value for name, (value,) in parse_qs(location.query).items()}
    (version,) = versions()
    expected = {
        "versionId": version.id,
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Expires": "600",
        "response-content-type": "application/octet-stream",
        "response-content-disposition": "attachment",
        "response-cache-control": "no-store",
    }
    assert {name: signed[name] for name in expected} == expected


def test_200_for_all_that_fits_into_a_reply_if_the_option_says_so(send: Sender, option: SetOption) -> None:
    option("inline_download_bytes", 4_700_000)
    send("PUT", "/v8/artifacts/abc", body=b"u" * 4_600_000)
    reply = send("GET", "/v8/artifacts/abc")
    assert (reply.status, len(reply.body)) == (200, 4_600_000)


def test_a_signed_artifact_is_served_with_its_tag_up_to_the_inline_limit(send: Sender) -> None:
    body = b"s" * 4_000_000
    send("PUT", "/v8/artifacts/abc", body=body, headers={"x-artifact-tag": TAG})
    reply = send("GET", "/v8/artifacts/abc")
    assert (reply.status, len(reply.body)) == (200, 4_000_000)
    assert reply.headers["x-artifact-tag"] == TAG


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_duration_of_0_is_returned_and_an_unknown_one_is_not(send: Sender, method: str) -> None:
    send("PUT", "/v8/artifacts/zero", body=b"artifact", headers={"x-artifact-duration": "0"})
    send("PUT", "/v8/artifacts/unknown", body=b"artifact")
    upload(send, "direct", b"straight to S3")
    durations = {
        hash: send(method, f"/v8/artifacts/{hash}").headers.get("x-artifact-duration")
        for hash in ("zero", "unknown", "direct")
    }
    assert durations == {"zero": "0", "unknown": None, "direct": None}


def test_404_in_the_nested_and_the_flat_shape_for_a_hash_that_is_not_stored(send: Sender) -> None:
    reply = send("GET", "/v8/artifacts/abc")
    shown = {"code": "artifact_not_found", "message": reply.message}
    assert (reply.status, reply.json) == (404, {"error": shown, **shown})


def test_404_after_the_retention_even_before_the_sweep(cloud: Cloud, option: SetOption) -> None:
    option("retention_days", 7)
    eight_days_ago = clock.now() - timedelta(days=8)
    cloud.store("abc", b"old", now=eight_days_ago)
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    option("retention_days", 9)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"old"


def test_the_first_read_publishes_an_upload_and_its_event_then_changes_nothing(cloud: Cloud) -> None:
    key = upload(cloud.send, "abc", b"straight to S3")
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"straight to S3"
    entry = index.read_entry(cloud.team.id, ArtifactHash("abc"))
    assert entry.pending is None
    assert entry.artifact is not None
    assert entry.artifact.writer == cloud.writer
    for _ in range(2):
        announce(key)
        assert cloud.send("GET", "/v8/artifacts/abc").body == b"straight to S3"
        assert read_totals(cloud.team.id) == Totals(size_bytes=14, artifacts=1)


@pytest.mark.parametrize("stored", [None, b"stored"])
def test_readers_get_what_is_stored_until_the_offered_upload_has_arrived(send: Sender, stored: bytes | None) -> None:
    if stored:
        send("PUT", "/v8/artifacts/abc", body=stored)
    key = offer(send, "abc")
    reply = send("GET", "/v8/artifacts/abc")
    assert (reply.status, reply.body) == (200, stored) if stored else reply.status == 404
    put_object(key, b"offered")
    assert send("GET", "/v8/artifacts/abc").body == b"offered"


@pytest.mark.parametrize(
    ("service", "operation"),
    [("s3", "HeadObject"), ("dynamodb", "UpdateItem #totals"), ("dynamodb", "TransactWriteItems")],
)
def test_503_instead_of_404_while_publishing_an_upload_fails(send: Sender, service: str, operation: str) -> None:
    """The upload may have arrived. A client that retries gets it."""
    upload(send, "abc", b"artifact")
    name, _, note = operation.partition(" ")
    failing = error("InternalServerError", 500)
    with answering(service, name, failing, only=lambda params: note in str(params["body"])):
        reply = send("GET", "/v8/artifacts/abc")
    assert (reply.status, reply.code) == (503, "try_again")
    assert send("GET", "/v8/artifacts/abc").body == b"artifact"


def test_readers_get_the_stored_artifact_while_publishing_another_upload_fails(send: Sender) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"stored")
    upload(send, "abc", b"uploaded")
    with answering("s3", "HeadObject", error("InternalError", 500)):
        assert send("GET", "/v8/artifacts/abc").body == b"stored"
    assert send("GET", "/v8/artifacts/abc").body == b"uploaded"


def test_404_and_a_clean_index_if_the_object_is_missing(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"x" * LARGER)
    delete_every_object()
    assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    assert index.read_entry(cloud.team.id, ArtifactHash("abc")).artifact is None
    assert read_totals(cloud.team.id) == Totals()


def test_404_and_a_clean_index_if_the_object_has_another_size(cloud: Cloud) -> None:
    """The object is not read. With 0.1.0, a client could put any size in place of a published object."""
    with keeping_no_versions():
        key = upload(cloud.send, "abc", b"x" * LARGER)
    announce(key)
    with keeping_no_versions():
        put_object(key, b"x" * 2 * LARGER)

    def refuse_to_be_read(parsed: dict[str, Any], **_: object) -> None:
        parsed["Body"].read = lambda: pytest.fail("the object was read")

    with hooked("after-call.s3.GetObject", refuse_to_be_read, aws.s3()):
        assert cloud.send("GET", "/v8/artifacts/abc").status == 404
    assert index.read_entry(cloud.team.id, ArtifactHash("abc")).artifact is None


@pytest.mark.parametrize(
    ("name", "value"), [("x-artifact-client-ci", "x" * 51), ("x-artifact-client-interactive", "yes")]
)
def test_an_odd_client_header_costs_no_hit(send: Sender, name: str, value: str) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"x")
    assert send("GET", "/v8/artifacts/abc", headers={name: value}).body == b"x"
