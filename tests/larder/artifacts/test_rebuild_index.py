"""Rebuilding the index from the bucket."""

from datetime import timedelta

import pytest

from larder import aws, clock
from larder.artifacts import rebuild_index, sweep
from larder.artifacts.models import ArtifactHash, Totals
from larder.artifacts.rebuild_index import RebuildReport
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import read_totals
from larder.settings import settings
from larder.teams.protection import ProtectionChange, change_protection
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import put_object, upload
from tests.requests import Cloud


def lose(*, items: bool, totals: bool) -> None:
    """Delete index items, totals or both, as after the loss or restore of a table."""
    table = settings().artifacts_table
    for item in aws.dynamodb().scan(TableName=table)["Items"]:
        is_totals = item["hash"]["S"] == "#totals"
        if totals if is_totals else items:
            key = {name: item[name] for name in ("owner", "hash")}
            aws.dynamodb().delete_item(TableName=table, Key=key)


@pytest.fixture
def stored(cloud: Cloud) -> Cloud:
    """Two artifacts of 700 bytes in total."""
    headers = {"x-artifact-duration": "7", "x-artifact-tag": "QUJD"}
    cloud.send("PUT", "/v8/artifacts/a1", body=b"x" * 300, headers=headers)
    cloud.send("PUT", "/v8/artifacts/a2", body=b"y" * 400)
    return cloud


@pytest.mark.parametrize("totals_too", [True, False])
@pytest.mark.parametrize("quota", [None, 700])
def test_every_artifact_is_restored_and_counted_once(stored: Cloud, totals_too: bool, quota: int | None) -> None:
    if quota:
        change_state(stored.team.id, quota_bytes=quota)
    lose(items=True, totals=totals_too)
    report = rebuild_index.rebuild_index(now=clock.now(), workers=1)
    assert report == RebuildReport(objects=2, indexed=2)
    reply = stored.send("GET", "/v8/artifacts/a1")
    assert (reply.body, reply.headers["x-artifact-tag"]) == (b"x" * 300, "QUJD")
    assert reply.headers["x-artifact-duration"] == "7"
    assert read_totals(stored.team.id) == Totals(size_bytes=700, artifacts=2)


def test_small_bodies_are_in_the_index_again(stored: Cloud) -> None:
    lose(items=True, totals=True)
    rebuild_index.rebuild_index(now=clock.now(), workers=1)
    artifact = index.read_entry(stored.team.id, ArtifactHash("a1")).artifact
    assert artifact is not None
    assert artifact.body == b"x" * 300


def test_lost_totals_are_counted_again(stored: Cloud) -> None:
    lose(items=False, totals=True)
    report = rebuild_index.rebuild_index(now=clock.now(), workers=1)
    assert report == RebuildReport(objects=2, current=2)
    assert read_totals(stored.team.id) == Totals(size_bytes=700, artifacts=2)


def test_of_several_uploads_of_a_hash_the_latest_is_indexed(stored: Cloud) -> None:
    stored.send("PUT", "/v8/artifacts/a1", body=b"newer")
    lose(items=True, totals=True)
    report = rebuild_index.rebuild_index(now=clock.now(), workers=1)
    assert report == RebuildReport(objects=3, indexed=2, replaced=1)
    assert stored.send("GET", "/v8/artifacts/a1").body == b"newer"
    assert sweep.sweep(now=clock.now() + timedelta(hours=1)).objects_deleted == 1


def test_of_several_manifests_of_a_protected_team_the_latest_is_indexed(cloud: Cloud) -> None:
    for hash in ("ccache-a1", "sccache-a1"):
        cloud.send("PUT", f"/v8/artifacts/{hash}", body=b"first")
        cloud.send("PUT", f"/v8/artifacts/{hash}", body=b"latest")
    change_protection(cloud.team.id, ProtectionChange(protected=True, keep_stored=True), by=None)
    lose(items=True, totals=True)
    rebuild_index.rebuild_index(now=clock.now(), workers=1)
    assert cloud.send("GET", "/v8/artifacts/ccache-a1").body == b"latest"
    assert cloud.send("GET", "/v8/artifacts/sccache-a1").body == b"first"


def test_direct_uploads_are_restored_without_metadata_that_s3_does_not_have(cloud: Cloud) -> None:
    upload(cloud.send, "abc", b"straight to S3")
    lose(items=True, totals=True)
    rebuild_index.rebuild_index(now=clock.now(), workers=1)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"straight to S3"


def test_of_several_versions_of_an_upload_the_first_that_could_be_published_is_indexed(
    cloud: Cloud, option: SetOption
) -> None:
    """Later ones were sent to the URL of the upload after that, and larger ones were never published."""
    key = upload(cloud.send, "abc", b"x" * 3_000)
    for body in (b"first", b"later", b""):
        put_object(key, body)
    option("max_upload_bytes", 2_999)
    lose(items=True, totals=True)
    report = rebuild_index.rebuild_index(now=clock.now(), workers=1)
    assert report == RebuildReport(objects=1, indexed=1)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"first"
    assert read_totals(cloud.team.id) == Totals(size_bytes=5, artifacts=1)


def test_an_object_with_a_delete_marker_is_skipped(stored: Cloud) -> None:
    """An operator has deleted it, or the lifecycle of the bucket."""
    key = upload(stored.send, "gone", b"straight to S3")
    aws.s3().delete_object(Bucket=settings().artifacts_bucket, Key=key)
    lose(items=True, totals=True)
    assert rebuild_index.rebuild_index(now=clock.now(), workers=1).objects == 2
    assert index.read_entry(stored.team.id, ArtifactHash("gone")).artifact is None


@pytest.mark.parametrize("hash", ["small", "direct"])
def test_the_writer_is_restored(cloud: Cloud, hash: str) -> None:
    cloud.send("PUT", "/v8/artifacts/small", body=b"through the function")
    upload(cloud.send, "direct", b"straight to S3")
    lose(items=True, totals=True)
    rebuild_index.rebuild_index(now=clock.now(), workers=1)
    artifact = index.read_entry(cloud.team.id, ArtifactHash(hash)).artifact
    assert artifact is not None
    assert artifact.writer == cloud.writer


def test_expired_artifacts_are_not_restored(stored: Cloud) -> None:
    lose(items=True, totals=True)
    in_a_year = clock.now() + timedelta(days=365)
    assert rebuild_index.rebuild_index(now=in_a_year, workers=1) == RebuildReport(objects=2, expired=2)
    assert index.read_entry(stored.team.id, ArtifactHash("a1")).artifact is None


def test_a_second_rebuild_changes_nothing(stored: Cloud) -> None:
    lose(items=True, totals=True)
    rebuild_index.rebuild_index(now=clock.now(), workers=1)
    assert rebuild_index.rebuild_index(now=clock.now(), workers=1) == RebuildReport(objects=2, current=2)


def test_objects_that_larder_did_not_name_are_skipped(stored: Cloud) -> None:
    bucket = settings().artifacts_bucket
    aws.s3().put_object(Bucket=bucket, Key="artifacts/notes.txt", Body=b"someone's")
    assert rebuild_index.rebuild_index(now=clock.now(), workers=1).objects == 2
