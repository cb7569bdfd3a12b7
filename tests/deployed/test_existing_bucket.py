"""A stack moves from its own bucket to an existing one, in this order: refusal, change, uploads, deletion."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.deployed.cloud import ANNOUNCED, TIMEOUT_S, DeployedCloud
from tests.deployed.stack import TRIAL, Stack
from tests.deploying import commands_in, obey
from tests.local.stub_service import eventually

pytestmark = pytest.mark.e2e

BUCKET = "acme-build-cache"
MOVED = {**TRIAL, "ExistingBucket": BUCKET}
THEIRS = {"logs/2026-11-22.gz": b"a log", "artifacts.txt": b"a note"}
LARGE = b"large artifact" * 500_000
"""Seven megabytes: too large to pass through a function."""
BEFORE = b"stored before" * 5_000
"""Too large for the tables, from which smaller ones stay hits."""

Ask = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    with DeployedCloud.deployed(tmp_path_factory.mktemp("moving") / "data") as made:
        yield made


@pytest.fixture(scope="module")
def s3(stack: Stack) -> Any:
    return stack.emulator.client("s3")


@pytest.fixture(scope="module")
def own_bucket(stack: Stack) -> str:
    return stack.outputs()["ArtifactsBucket"]


@pytest.fixture
def ask(cloud: DeployedCloud) -> Ask:
    def send(method: str, path: str, **given: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {cloud.token}", **given.pop("headers", {})}
        return httpx.request(
            method,
            f"{cloud.url}{path}",
            headers=headers,
            params={"slug": cloud.team},
            trust_env=False,
            timeout=TIMEOUT_S,
            **given,
        )

    return send


def versions(s3: Any, bucket: str) -> dict[str, str]:
    """The version of each object."""
    listed = s3.list_object_versions(Bucket=bucket).get("Versions", [])
    assert len({one["Key"] for one in listed}) == len(listed)
    return {one["Key"]: one["VersionId"] for one in listed}


def test_a_bucket_that_is_not_ready_is_refused_before_anything_changes(
    stack: Stack, s3: Any, own_bucket: str, ask: Ask
) -> None:
    assert ask("PUT", "/v8/artifacts/before", content=BEFORE).status_code == 202
    s3.create_bucket(Bucket=BUCKET)
    for key, body in THEIRS.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=body)
    refused = stack.try_to_deploy(MOVED)
    assert refused.status == 1
    # S3 blocks public access and access lists of every new bucket.
    assert len(commands_in(refused.text)) == 4
    assert "Options that change" not in refused.text
    assert stack.outputs()["ArtifactsBucket"] == own_bucket
    obey(s3, refused.text)


def test_the_stack_changes_to_it_and_the_artifacts_before_are_kept(
    cloud: DeployedCloud, stack: Stack, s3: Any, own_bucket: str, ask: Ask
) -> None:
    policy = s3.get_bucket_policy(Bucket=BUCKET)["Policy"]
    stack.deploy(MOVED)
    assert stack.outputs()["ArtifactsBucket"] == BUCKET
    assert "AWS::S3::BucketPolicy" not in stack.types()
    assert s3.get_bucket_policy(Bucket=BUCKET)["Policy"] == policy
    assert len(versions(s3, own_bucket)) == 1
    cloud.let_plain_http_in()


def test_artifacts_in_it_become_visible_and_other_objects_stay_as_they_are(
    cloud: DeployedCloud, s3: Any, ask: Ask
) -> None:
    theirs = {key: s3.head_object(Bucket=BUCKET, Key=key)["ETag"] for key in THEIRS}
    assert ask("PUT", "/v8/artifacts/small", content=b"small artifact").status_code == 202
    assert ask("GET", "/v8/artifacts/small").content == b"small artifact"
    offered = ask("OPTIONS", "/v8/artifacts/large", headers=ANNOUNCED)
    assert offered.status_code == 204, offered.text
    location = offered.headers["location"]
    assert f"/{BUCKET}/artifacts/" in location
    sent = httpx.put(location, content=LARGE, trust_env=False, timeout=TIMEOUT_S)
    assert sent.status_code == 200, sent.text
    # No request asks for it meanwhile: the event of the bucket publishes it.
    items = "LARDER_ARTIFACTS_TABLE"
    assert eventually(lambda: any(item["hash"] == "large" for item in cloud.items(items)), 60)
    got = ask("GET", "/v8/artifacts/large")
    assert got.status_code == 302
    assert httpx.get(got.headers["location"], trust_env=False).content == LARGE
    cloud.operate("sweep")
    cloud.operate("rebuild-index")
    assert theirs == {key: s3.head_object(Bucket=BUCKET, Key=key)["ETag"] for key in THEIRS}
    stored = versions(s3, BUCKET).keys() - THEIRS.keys()
    assert sorted(key.split("/")[2] for key in stored) == ["large", "small"]


def test_an_artifact_of_the_bucket_before_is_a_miss_that_can_be_stored_again(ask: Ask) -> None:
    assert ask("GET", "/v8/artifacts/before").status_code == 404
    assert ask("PUT", "/v8/artifacts/before", content=BEFORE).status_code == 202
    assert ask("GET", "/v8/artifacts/before").content == BEFORE


def test_a_deletion_of_the_stack_leaves_the_bucket_with_everything(stack: Stack, s3: Any, own_bucket: str) -> None:
    before = versions(s3, BUCKET)
    assert len(before) == len(THEIRS) + 3
    # CloudFormation could not delete the bucket before, because it has an artifact. The operator does.
    for key, version in versions(s3, own_bucket).items():
        s3.delete_object(Bucket=own_bucket, Key=key, VersionId=version)
    s3.delete_bucket(Bucket=own_bucket)
    deleted = stack.delete()
    assert deleted.status == 0, deleted.text[-2_000:]
    assert versions(s3, BUCKET) == before
