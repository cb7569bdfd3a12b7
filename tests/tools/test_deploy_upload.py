"""What lies under a release's key in the bucket for code: `larder install` deploys its own files, and exactly these."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import click
import pytest

from larder_cli.deploy import code_bucket
from larder_cli.deploy.account import Account
from larder_cli.deploy.flow import Deployment, planned, upload
from larder_cli.deploy.release import DESCRIPTION, PLAIN, Release, open_release
from local.template import REGION
from tests.tools.buckets import ACCOUNT, empty_bucket
from tests.tools.buckets import NAME as BUCKET

ARCHIVE = "functions-0123456789abcdef.zip"
TEMPLATE = {
    "Description": "Larder: a small release.",
    "Parameters": {name: {"Type": "String"} for name in ("CodeBucket", "CodePrefix")}
    | {"FunctionsVersion": {"Type": "String", "Default": ""}},
    "Conditions": {"HasFunctionsVersion": {"Fn::Not": [{"Fn::Equals": [{"Ref": "FunctionsVersion"}, ""]}]}},
    "Resources": {
        "Layer": {
            "Type": "AWS::Lambda::LayerVersion",
            "Properties": {
                "LayerName": "functions",
                "Content": {
                    "S3Bucket": {"Ref": "CodeBucket"},
                    "S3Key": {"Fn::Sub": "${CodePrefix}" + ARCHIVE},
                    "S3ObjectVersion": {
                        "Fn::If": ["HasFunctionsVersion", {"Ref": "FunctionsVersion"}, {"Ref": "AWS::NoValue"}]
                    },
                },
            },
        }
    },
}

SIZE = len(json.dumps(TEMPLATE)) + len(b"code")


@pytest.fixture
def s3() -> Iterator[Any]:
    with empty_bucket() as bucket:
        _keep_versions(bucket.s3)
        yield bucket.s3


def _keep_versions(s3: Any, status: str = "Enabled") -> None:
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": status})


@pytest.fixture
def release(tmp_path: Path) -> Release:
    files = {PLAIN: json.dumps(TEMPLATE).encode(), ARCHIVE: b"code"}
    for name, body in files.items():
        (tmp_path / name).write_bytes(body)
    described = {
        "version": "1.2.3",
        "contents": {ARCHIVE: ""},
        "files": {name: hashlib.sha256(body).hexdigest() for name, body in files.items()},
    }
    (tmp_path / DESCRIPTION).write_text(json.dumps(described))
    return open_release(tmp_path)


def deployment(release: Release, *, is_plan: bool = False) -> Deployment:
    account = Account(boto3.Session(region_name=REGION), ACCOUNT, "caller", REGION, "larder-prod")
    return Deployment(account, release, {"ProtectData": "true"}, BUCKET, is_plan=is_plan)


def sent(release: Release, *, is_plan: bool = False) -> tuple[Deployment, int]:
    files = [release.template_file("us-east-1", "aws"), *([] if is_plan else release.archives)]
    return upload(deployment(release, is_plan=is_plan), files)


KEY = f"larder/larder-prod/{ARCHIVE}"


def test_each_file_is_sent_once_with_its_checksum_under_the_prefix_of_the_stack(s3: Any, release: Release) -> None:
    first, size = sent(release)
    assert size == SIZE
    keys = {entry["Key"] for entry in s3.list_objects_v2(Bucket=BUCKET)["Contents"]}
    assert KEY in keys
    assert {key.rpartition("/")[0] for key in keys} == {"larder/larder-prod"}
    stored = s3.head_object(Bucket=BUCKET, Key=KEY, ChecksumMode="ENABLED")
    assert stored["ChecksumSHA256"] == release.file(ARCHIVE).base64_sha256
    again, size = sent(release)
    assert (again.versions, size) == (first.versions, 0)


@pytest.mark.parametrize("is_plan", [False, True])
def test_another_file_under_a_key_of_the_release_is_refused(s3: Any, release: Release, is_plan: bool) -> None:
    sent(release, is_plan=is_plan)
    for key in [entry["Key"] for entry in s3.list_objects_v2(Bucket=BUCKET)["Contents"]]:
        planted = s3.put_object(Bucket=BUCKET, Key=key, Body=b"planted", ChecksumAlgorithm="SHA256")
        with pytest.raises(click.ClickException, match="is not the file of this release") as refused:
            sent(release, is_plan=is_plan)
        assert f"s3://{BUCKET}/{key} " in refused.value.message
        # What the message says is enough.
        s3.delete_object(Bucket=BUCKET, Key=key, VersionId=planted["VersionId"])
        assert sent(release, is_plan=is_plan)[1] == 0


def test_the_refusal_of_an_object_from_before_versions_names_it_as_s3_does(s3: Any, release: Release) -> None:
    _keep_versions(s3, "Suspended")
    s3.put_object(Bucket=BUCKET, Key=KEY, Body=b"planted", ChecksumAlgorithm="SHA256")
    _keep_versions(s3)
    with pytest.raises(click.ClickException, match=r"--version-id null$"):
        sent(release)


@pytest.mark.parametrize("versions", ["Enabled", "Suspended"])
def test_what_has_no_checksum_or_no_version_is_sent_again_and_not_used(
    s3: Any, release: Release, versions: str
) -> None:
    _keep_versions(s3, versions)
    s3.put_object(Bucket=BUCKET, Key=KEY, Body=b"planted")
    _keep_versions(s3)
    made, size = sent(release)
    assert size == SIZE
    used = s3.get_object(Bucket=BUCKET, Key=KEY, VersionId=made.versions[ARCHIVE])
    assert used["Body"].read() == b"code"


def test_a_bucket_that_keeps_no_versions_is_refused(s3: Any, release: Release) -> None:
    _keep_versions(s3, "Suspended")
    with pytest.raises(click.ClickException, match="acme-build-cache keeps no versions"):
        sent(release)


def test_cloudformation_gets_the_versions_that_were_compared(s3: Any, release: Release) -> None:
    made, _ = sent(release)
    # Whatever is put there afterwards.
    s3.put_object(Bucket=BUCKET, Key=KEY, Body=b"planted")
    events = made.account.session.events
    # moto fails for a change set that is not there.
    events.register("before-call.cloudformation.DeleteChangeSet", _reply)
    events.register("provide-client-params.cloudformation.CreateChangeSet", _raise_asked)
    with pytest.raises(Asked) as asked:
        planned(made, made.account.find_stack())
    assert asked.value.args[0]["TemplateURL"].endswith(f".json?versionId={made.versions[PLAIN]}")
    given = asked.value.args[0]["Parameters"]
    assert {one["ParameterKey"]: one["ParameterValue"] for one in given} == {
        "CodeBucket": BUCKET,
        "CodePrefix": "larder/larder-prod/",
        "FunctionsVersion": made.versions[ARCHIVE],
    }


class Asked(Exception):
    """What CloudFormation would get."""


def _reply(**_: object) -> Any:
    return SimpleNamespace(status_code=200), {}


def _raise_asked(params: dict[str, Any], **_: object) -> None:
    raise Asked(params)


def test_templates_of_plans_expire_in_a_day_and_code_does_not() -> None:
    resources: Any = code_bucket.TEMPLATE["Resources"]
    (rule,) = resources["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    assert rule["Status"] == "Enabled"
    assert rule["ExpirationInDays"] == 1
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
    account = Account(boto3.Session(region_name=REGION), ACCOUNT, "caller", REGION, "larder-prod")
    for is_plan in (True, False):
        one = Deployment(account, Release(Path(), {}), {}, BUCKET, is_plan=is_plan)
        assert one.prefix.startswith(rule["Prefix"]) == is_plan
