"""`larder rebuild-index` and `larder sweep`. test_on_a_local_cloud.py rebuilds while a client writes."""

import base64
from datetime import timedelta
from typing import Any

from larder import aws, clock
from larder.artifacts import storage
from larder.artifacts.models import ArtifactHash, ArtifactMetadata, Upload
from larder.settings import settings
from tests.requests import Cloud, Reply

from .conftest import Larder


def put(cloud: Cloud, hash: str, body: bytes, *, duration_ms: int, tag: str) -> None:
    headers = {"x-artifact-duration": str(duration_ms), "x-artifact-tag": tag}
    assert cloud.send("PUT", f"/v8/artifacts/{hash}", body=body, headers=headers).status == 202


def get(cloud: Cloud, hash: str) -> Reply:
    return cloud.send("GET", f"/v8/artifacts/{hash}")


def index() -> list[dict[str, Any]]:
    items = aws.dynamodb().scan(TableName=settings().artifacts_table)["Items"]
    return sorted((aws.deserialize(item) for item in items), key=lambda item: str(item["hash"]))


def lose_the_index() -> None:
    for item in index():
        key = aws.serialize({name: item[name] for name in ("owner", "hash")})
        aws.dynamodb().delete_item(TableName=settings().artifacts_table, Key=key)


def tag(number: int) -> str:
    return base64.b64encode(b"signature %d" % number).decode()


def store_some(cloud: Cloud) -> list[str]:
    hashes = [f"{number:016x}" for number in range(5)]
    for number, hash in enumerate(hashes):
        put(cloud, hash, b"body of " + hash.encode(), duration_ms=number + 1, tag=tag(number))
    return hashes


def test_rebuild_restores_a_lost_index_with_tags_and_durations(larder: Larder, cloud: Cloud) -> None:
    hashes = store_some(cloud)
    before = larder.json("teams", "show", "acme")
    lose_the_index()
    assert get(cloud, hashes[0]).status == 404

    output = larder.json("rebuild-index")

    assert output.pop("seconds") >= 0
    assert output == {"objects": 5, "indexed": 5, "already_current": 0, "expired_or_refused": 0, "replaced": 0}
    for number, hash in enumerate(hashes):
        reply = get(cloud, hash)
        assert (reply.status, reply.body) == (200, b"body of " + hash.encode())
        assert reply.headers["x-artifact-tag"] == tag(number)
        assert reply.headers["x-artifact-duration"] == str(number + 1)
    assert larder.json("teams", "show", "acme") == before


def test_a_second_run_changes_nothing(larder: Larder, cloud: Cloud) -> None:
    store_some(cloud)
    lose_the_index()
    larder("rebuild-index")
    before = index()
    output = larder.json("rebuild-index")
    assert (output["indexed"], output["already_current"]) == (0, 5)
    assert index() == before


def test_a_complete_index_does_not_change(larder: Larder, cloud: Cloud) -> None:
    store_some(cloud)
    before = index()
    assert larder.json("rebuild-index")["already_current"] == 5
    assert index() == before


def test_the_latest_upload_of_a_hash_wins(larder: Larder, cloud: Cloud) -> None:
    put(cloud, "abc", b"old", duration_ms=1, tag=tag(1))
    put(cloud, "abc", b"newer", duration_ms=2, tag=tag(2))
    lose_the_index()
    output = larder.json("rebuild-index")
    assert (output["objects"], output["indexed"], output["replaced"]) == (2, 1, 1)
    reply = get(cloud, "abc")
    assert (reply.body, reply.headers["x-artifact-tag"]) == (b"newer", tag(2))
    assert larder.json("teams", "show", "acme")["stored_bytes"] == 5


def test_a_direct_upload_whose_event_was_lost_becomes_visible(larder: Larder, cloud: Cloud) -> None:
    hash = ArtifactHash("abc")
    cloud.offer(hash)
    (pending,) = index()
    upload = Upload(owner=cloud.team.id, hash=hash, id=pending["upload_id"])
    storage.put(upload, b"bytes", ArtifactMetadata(), None)
    lose_the_index()
    assert larder.json("rebuild-index")["indexed"] == 1
    assert get(cloud, "abc").body == b"bytes"


def test_objects_that_are_not_artifacts_stay(larder: Larder, cloud: Cloud) -> None:
    bucket, key = settings().artifacts_bucket, "artifacts/readme.txt"
    aws.s3().put_object(Bucket=bucket, Key=key, Body=b"mine")
    assert larder.json("rebuild-index")["objects"] == 0
    assert aws.s3().get_object(Bucket=bucket, Key=key)["Body"].read() == b"mine"


def test_an_empty_bucket_is_not_an_error(larder: Larder) -> None:
    shown = larder("rebuild-index").stdout
    for expected in ("objects", "indexed", "already current", "expired or refused", "seconds"):
        assert expected in shown


def test_sweep_deletes_announced_uploads_that_never_arrived(larder: Larder, cloud: Cloud) -> None:
    long_ago = clock.now() - timedelta(days=2)
    cloud.offer("abc", now=long_ago)
    assert larder.json("sweep") == {
        "expired_artifacts": 0,
        "objects_deleted": 0,
        "uploads_published": 0,
        "uploads_never_received": 1,
        "removals_finished": 0,
        "totals_checked": 0,
        "totals_to_check_again": 0,
        "totals_not_checked": 0,
        "totals_corrected": 0,
        "corrected_size_bytes": 0,
        "corrected_artifacts": 0,
        "failed": 0,
        "finished": True,
    }
    assert [item for item in index() if item["owner"] != "#deployment"] == []
    assert "uploads never received" in larder("sweep").stdout
