"""What lies under a release's key in the bucket for code: `larder install` deploys its own files, and exactly these."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import boto3
import click
import pytest

from larder_cli.deploy import code_bucket, publish
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


# -------------------------------------------------------------------------------- larder release publish


OPTIONS = {"ProtectData": "true", "AlarmEmail": "ops+larder@acme.example"}


def published(release: Release, region: str = REGION, *, bucket: str = BUCKET, may_write: bool = True) -> Any:
    accounts = [Account(boto3.Session(region_name=region), ACCOUNT, "caller", region, "larder-prod")]
    records: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "print_json", records.extend)
        publish.run(
            release,
            accounts,
            bucket,
            stack="larder-prod",
            options=OPTIONS,
            organization="o-a1b2c3d4e5",
            may_write=may_write,
            as_json=True,
        )
    return records[0]


def test_a_link_opens_the_template_with_the_options(s3: Any, release: Release) -> None:
    link = urlsplit(published(release)["link"])
    assert link.netloc == f"{REGION}.console.aws.amazon.com"
    assert link.fragment.startswith("/stacks/quickcreate?")
    asked = dict(parse_qsl(link.fragment.partition("?")[2], strict_parsing=True))
    given = {name.removeprefix("param_"): value for name, value in asked.items() if name[:6] == "param_"}
    assert given == OPTIONS
    assert asked["stackName"] == "larder-prod"
    assert asked["templateURL"] == f"https://{BUCKET}.s3.amazonaws.com/larder/1.2.3/{PLAIN}"


def test_a_published_template_names_exactly_the_archives_that_were_compared(s3: Any, release: Release) -> None:
    published(release)
    version = s3.head_object(Bucket=BUCKET, Key=f"larder/1.2.3/{ARCHIVE}")["VersionId"]
    s3.put_object(Bucket=BUCKET, Key=f"larder/1.2.3/{ARCHIVE}", Body=b"planted")
    template = json.loads(s3.get_object(Bucket=BUCKET, Key=f"larder/1.2.3/{PLAIN}")["Body"].read())
    assert template["Resources"]["Layer"]["Properties"]["Content"] == {
        "S3Bucket": BUCKET,
        "S3Key": f"larder/1.2.3/{ARCHIVE}",
        "S3ObjectVersion": version,
    }
    assert (template["Parameters"], template["Conditions"]) == ({}, {})


def test_publishing_again_sends_nothing(s3: Any, release: Release) -> None:
    first = published(release)
    assert first.pop("sent_bytes") > len(b"code")
    assert published(release) == {**first, "sent_bytes": 0}
    assert published(release, may_write=False)["sent_bytes"] == 0


@pytest.mark.parametrize("name", [PLAIN, ARCHIVE])
def test_what_was_changed_in_the_bucket_is_refused(s3: Any, release: Release, name: str) -> None:
    published(release)
    s3.put_object(Bucket=BUCKET, Key=f"larder/1.2.3/{name}", Body=b"{}", ChecksumAlgorithm="SHA256")
    for may_write in (False, True):
        with pytest.raises(click.ClickException, match=f"{name} is not the file of this release"):
            published(release, may_write=may_write)


def test_a_check_uploads_nothing_and_names_what_is_missing(s3: Any, release: Release) -> None:
    with pytest.raises(click.ClickException, match=f"{ARCHIVE} is not published"):
        published(release, may_write=False)
    assert "Contents" not in s3.list_objects_v2(Bucket=BUCKET)


def test_one_bucket_for_two_regions_is_refused(s3: Any, release: Release) -> None:
    account = Account(boto3.Session(region_name=REGION), ACCOUNT, "caller", REGION, "larder-prod")
    with pytest.raises(click.UsageError, match=r"Write \{region\} into the name"):
        publish.run(
            release,
            [account, account],
            BUCKET,
            stack="larder",
            options={},
            organization=None,
            may_write=True,
            as_json=False,
        )


def test_an_organization_reads_the_release_and_nothing_else(s3: Any, release: Release) -> None:
    statement = published(release)["statement"]
    assert statement["Resource"] == f"arn:aws:s3:::{BUCKET}/larder/1.2.3/*"
    assert statement["Condition"] == {"StringEquals": {"aws:PrincipalOrgID": "o-a1b2c3d4e5"}}
    for wrong in ("acme", "o-A1B2C3D4E5", "o-a1b2c3d4e5\n"):
        with pytest.raises(click.UsageError, match="is not the id of an organization"):
            publish.check_organization(wrong)
