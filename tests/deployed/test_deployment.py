"""One stack from its first deployment to its deletion, in this order: first deployment, the same again, a changed
option, another version of the code, deletion. The first data is read after each.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import ClientError

from local.schedules import scheduled_event
from local.template import REGION
from tests.catalogue import valid
from tests.deployed.cloud import ANNOUNCED, TIMEOUT_S, DeployedCloud
from tests.deployed.stack import Stack
from tests.e2e.outbox import link_in, mail_to
from tools.release.package import CODE_LAYER, complete, package

pytestmark = pytest.mark.e2e

PROD = {"Alarms": "false", "SignUpPolicy": "open", "WarmInstances": "1"}
"""In addition to `prod` in samconfig.toml. The emulator does not support alarms that combine several metrics, and an
instance takes as much processor time and memory here as a process.
"""
LARGE = b"large artifact" * 500_000
"""Seven megabytes: too large to pass through a function."""
PASSWORD = "correct horse battery"
WITHIN_S = 60


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    with DeployedCloud.deployed(tmp_path_factory.mktemp("deployed") / "data", PROD) as made:
        yield made


class Api:
    """Sends requests to the deployed API with the first key."""

    def __init__(self, cloud: DeployedCloud) -> None:
        self._cloud = cloud

    def __call__(self, method: str, path: str, **given: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self._cloud.token}", **given.pop("headers", {})}
        params = {"slug": self._cloud.team, **given.pop("params", {})}
        url = f"{self._cloud.url}{path}"
        return httpx.request(method, url, headers=headers, params=params, trust_env=False, timeout=TIMEOUT_S, **given)


@pytest.fixture
def api(cloud: DeployedCloud) -> Api:
    return Api(cloud)


def eventually(look: Callable[[], Any], within_s: float = WITHIN_S) -> Any:
    """Call `look` until it returns something, and return that."""
    deadline = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing arrived in time"
        time.sleep(0.2)
    return found


def stored(cloud: DeployedCloud) -> dict[str, Any]:
    """The data that must survive every later deployment, without the fields that uses of a key change."""
    return {
        "users": sorted(item["pk"] for item in cloud.items("LARDER_IDENTITY_TABLE")),
        "keys": sorted(item["key_hash"] for item in cloud.items("LARDER_API_KEYS_TABLE")),
        "artifacts": {
            item["hash"]: item["upload_id"] for item in cloud.items("LARDER_ARTIFACTS_TABLE") if "#" not in item["hash"]
        },
        "secret": cloud.stack and cloud.stack.outputs()["SigningSecret"],
    }


def reads_everything(api: Api) -> None:
    small, large = api("GET", "/v8/artifacts/small"), api("GET", "/v8/artifacts/large")
    assert (small.status_code, small.content) == (200, b"small artifact")
    assert small.headers["x-artifact-tag"] == "YSB0YWc="
    assert large.status_code == 302
    assert httpx.get(large.headers["location"], trust_env=False).content == LARGE


# ------------------------------------------------------------------------------ first deployment


def test_every_resource_of_the_template_is_created(stack: Stack) -> None:
    # Created, then protected by an update.
    assert stack.described()["StackStatus"] == "UPDATE_COMPLETE"
    made = {name: one["ResourceType"] for name, one in stack.resources().items()}
    wanted = stack.template()["Resources"]
    # The emulator does not support alarms, and no domain is set here.
    unasked = {name for name in wanted.keys() - made.keys() if "Condition" in wanted[name]}
    assert made == {name: one["Type"] for name, one in wanted.items() if name not in unasked}
    assert len(made) > 300


def test_data_is_protected(stack: Stack) -> None:
    dynamodb = stack.emulator.client("dynamodb")
    for table in ("IdentityTable", "ApiKeysTable", "TeamsTable", "AuditTable"):
        made = dynamodb.describe_table(TableName=stack.physical(table))["Table"]
        assert made["DeletionProtectionEnabled"]


def test_a_small_artifact_passes_through_a_function(api: Api) -> None:
    headers = {"x-artifact-tag": "YSB0YWc=", "x-artifact-duration": "1200"}
    put = api("PUT", "/v8/artifacts/small", content=b"small artifact", headers=headers)
    assert put.status_code == 202, put.text
    got = api("GET", "/v8/artifacts/small")
    assert (got.content, got.headers["x-artifact-duration"]) == (b"small artifact", "1200")


def test_a_large_artifact_goes_to_s3_and_the_event_publishes_it(api: Api, cloud: DeployedCloud) -> None:
    offered = api("OPTIONS", "/v8/artifacts/large", headers=ANNOUNCED)
    assert offered.status_code == 204, offered.text
    sent = httpx.put(offered.headers["location"], content=LARGE, trust_env=False, timeout=TIMEOUT_S)
    assert sent.status_code == 200, sent.text
    # No request asks for it meanwhile. The bucket's event reaches CommitUpload by its rule.
    eventually(lambda: "large" in stored(cloud)["artifacts"])
    reads_everything(api)


def test_the_bucket_refuses_requests_without_tls(api: Api, cloud: DeployedCloud, stack: Stack) -> None:
    """Its policy does. The cloud removes it for all other tests, because there is no TLS on one machine."""
    bucket, s3 = stack.physical("ArtifactsBucket"), stack.emulator.client("s3")
    s3.put_bucket_policy(Bucket=bucket, Policy=cloud.bucket_policy)
    try:
        offered = api("OPTIONS", "/v8/artifacts/refused", headers=ANNOUNCED)
        sent = httpx.put(offered.headers["location"], content=LARGE, trust_env=False, timeout=TIMEOUT_S)
    finally:
        s3.delete_bucket_policy(Bucket=bucket)
    assert sent.status_code == 403
    assert "explicit deny in a resource-based policy" in sent.text


def test_after_a_sign_up_another_function_sends_mail(cloud: DeployedCloud) -> None:
    ada = {"email": "ada@acme.example", "password": PASSWORD, "name": "Ada"}
    page = {"origin": cloud.url}
    with httpx.Client(base_url=cloud.url, headers=page, trust_env=False, timeout=TIMEOUT_S) as browser:
        signed_up = browser.post("/api/auth/sign-up/email", json=ada)
        assert signed_up.status_code == 200, signed_up.text
        (message,) = mail_to(cloud, ada["email"])
        assert browser.get(link_in(message)).status_code in (200, 302)
        session = browser.get("/api/auth/get-session").json()
    assert session["user"]["emailVerified"] is True


def test_events_are_counted(api: Api, cloud: DeployedCloud) -> None:
    event = valid("POST /v8/artifacts/events", hash="small").json[0]
    assert api("POST", "/v8/artifacts/events", json=[event]).status_code == 200
    usage = cloud.items("LARDER_USAGE_TABLE")
    (day,) = [one for one in usage if one["day"].startswith("day#")]
    assert (day["events"], day["hits"]) == (1, 1)


def test_the_keys_of_a_function_allow_only_what_its_role_allows(stack: Stack) -> None:
    lambda_, sts = stack.emulator.client("lambda"), stack.emulator.client("sts")
    tables = {name: stack.physical(name) for name in ("TeamsTable", "IdentityTable")}

    def reads(function: str, table: str) -> bool:
        made = lambda_.get_function_configuration(FunctionName=stack.physical(function))
        role = sts.assume_role(RoleArn=made["Role"], RoleSessionName="test")["Credentials"]
        dynamodb = boto3.client(
            "dynamodb",
            endpoint_url=stack.emulator.url,
            region_name=REGION,
            aws_access_key_id=role["AccessKeyId"],
            aws_secret_access_key=role["SecretAccessKey"],
            aws_session_token=role["SessionToken"],
        )
        key = {"pk": {"S": "nobody"}, "sk": {"S": "nothing"}}
        try:
            dynamodb.batch_get_item(RequestItems={tables[table]: {"Keys": [key]}})
        except ClientError as error:
            return error.response["Error"]["Code"] != "AccessDeniedException"
        return True

    assert reads("GetStatus", "TeamsTable")
    assert not reads("GetOk", "TeamsTable")
    assert not reads("GetOk", "IdentityTable")


def test_an_event_that_keeps_failing_goes_to_the_queue(stack: Stack) -> None:
    stack.emulator.client("lambda").invoke(
        FunctionName=stack.physical("RemoveArtifacts"), InvocationType="Event", Payload=b'{"no": "job"}'
    )
    queue = stack.physical("RemoveArtifactsFailures")

    def arrived() -> Any:
        received = stack.emulator.client("sqs").receive_message(QueueUrl=queue)
        return received.get("Messages")

    (message,) = eventually(arrived, within_s=TIMEOUT_S)
    assert json.loads(message["Body"])["requestPayload"] == {"no": "job"}


HOURLY = ("SweepArtifacts", "SweepExpiredKeys", "SweepDeletedUsers", "SweepDeletedTeams")


@pytest.mark.parametrize("function", HOURLY)
def test_a_rule_runs_the_function_every_hour(stack: Stack, function: str) -> None:
    """An hour is too long for a test. So this checks the rule and starts the run that it would start."""
    events = stack.emulator.client("events")
    rule = stack.physical(f"{function}{function}")
    assert events.describe_rule(Name=rule)["ScheduleExpression"] == "rate(1 hour)"
    (target,) = events.list_targets_by_rule(Rule=rule)["Targets"]
    assert target["Arn"].endswith(f":{stack.physical(function)}")
    payload = json.dumps(scheduled_event(rule, datetime.now(tz=UTC))).encode()
    reply = stack.emulator.client("lambda").invoke(FunctionName=target["Arn"], Payload=payload)
    assert "FunctionError" not in reply, reply["Payload"].read()


def test_a_rule_keeps_the_functions_of_builds_warm(stack: Stack) -> None:
    events, group = stack.emulator.client("events"), stack.physical("ArtifactsLogGroup")
    rule = stack.physical("KeepWarmKeepWarm")
    assert events.describe_rule(Name=rule)["ScheduleExpression"] == "rate(5 minutes)"
    (target,) = events.list_targets_by_rule(Rule=rule)["Targets"]
    kept = [name for names in json.loads(target["Input"])["functions"].values() for name in names]

    def is_kept() -> bool:
        """A start can take longer here than a call waits. The next run finds what has started."""
        reply = stack.emulator.client("lambda").invoke(FunctionName=target["Arn"], Payload=target["Input"].encode())
        assert "FunctionError" not in reply, reply["Payload"].read()
        lines = stack.emulator.client("logs").filter_log_events(logGroupName=group)["events"]
        runs = [json.loads(line["message"]) for line in lines if '"kept warm"' in line["message"]]
        assert {run["calls"] for run in runs} == {len(kept)}
        return runs[-1]["failed"] == 0

    assert eventually(is_kept, within_s=TIMEOUT_S)


def test_the_logs_are_in_the_groups_of_the_template(stack: Stack) -> None:
    logs = stack.emulator.client("logs")
    group = stack.physical("ArtifactsLogGroup")
    lines = logs.filter_log_events(logGroupName=group)["events"]
    assert any('"swept"' in line["message"] for line in lines)
    groups = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    assert [one["retentionInDays"] for one in groups if one["logGroupName"] == group] == [90]


# ------------------------------------------------------------------------------------- the same deployment again


def test_the_same_deployment_again_changes_nothing(cloud: DeployedCloud, stack: Stack, api: Api) -> None:
    before, resources = stored(cloud), stack.resources()
    updated = stack.described().get("LastUpdatedTime")
    output = stack.deploy(PROD)
    assert "Nothing changes" in output
    assert stack.described().get("LastUpdatedTime") == updated
    assert {name: one["PhysicalResourceId"] for name, one in stack.resources().items()} == {
        name: one["PhysicalResourceId"] for name, one in resources.items()
    }
    assert stored(cloud) == before
    reads_everything(api)


# -------------------------------------------------------------------------------- changed option


def test_a_changed_option_updates_the_functions_in_place(cloud: DeployedCloud, stack: Stack, api: Api) -> None:
    before, resources = stored(cloud), stack.resources()
    stack.deploy({**PROD, "OverQuota": "evict", "MaxUploadBytes": "1000000"})
    assert stack.described()["StackStatus"] == "UPDATE_COMPLETE"
    kept = {name: one["PhysicalResourceId"] for name, one in stack.resources().items()}
    assert kept == {name: one["PhysicalResourceId"] for name, one in resources.items()}
    assert stack.variables()["LARDER_OVER_QUOTA"] == "evict"
    refused = api("PUT", "/v8/artifacts/other", content=bytes(1_000_001))
    assert refused.status_code in (400, 413), refused.text
    assert stored(cloud) == before
    reads_everything(api)


# --------------------------------------------------------------------------- another version of the code


def test_another_version_reads_the_data_of_this_version(
    cloud: DeployedCloud, stack: Stack, api: Api, tmp_path: Path
) -> None:
    before, layer, code = stored(cloud), layers_of(stack), code_of(stack)
    built, next_version = stack.folder.with_name(f"{stack.folder.name}-build"), tmp_path / "next"
    (built / CODE_LAYER / "python" / "larder" / "of_the_next_version.py").touch()
    package(built, next_version)
    complete(next_version)
    Stack(stack.emulator, next_version).deploy({**PROD, "OverQuota": "evict"})
    assert layers_of(stack) != layer
    # CloudFormation replaces the zip only if this differs. Lambda would do so in a second call.
    assert code_of(stack) == code
    assert stored(cloud) == before
    reads_everything(api)


def code_of(stack: Stack) -> dict[str, Any]:
    """The address of each function's zip in the deployed template."""
    functions = {
        name: one["Properties"]["Code"]
        for name, one in stack.template()["Resources"].items()
        if one["Type"] == "AWS::Lambda::Function"
    }
    assert len({json.dumps(code, sort_keys=True) for code in functions.values()}) == 1
    return functions


def layers_of(stack: Stack) -> list[str]:
    """The layer versions of a function. SAM creates a resource for each."""
    functions = stack.emulator.client("lambda")
    name = stack.physical("GetStatus")
    configuration = functions.get_function_configuration(FunctionName=name)
    return [layer["Arn"] for layer in configuration["Layers"]]


# ---------------------------------------------------------------------------------------------- deletion


def test_a_deletion_leaves_nothing(stack: Stack) -> None:
    """As docs/deploy.md says: end the protection, empty the bucket, then delete the stack."""
    resources = stack.resources()
    stack.deploy({**PROD, "ProtectData": "false"})
    s3 = stack.emulator.client("s3")
    bucket = resources["ArtifactsBucket"]["PhysicalResourceId"]
    for one in s3.list_object_versions(Bucket=bucket)["Versions"]:
        s3.delete_object(Bucket=bucket, Key=one["Key"], VersionId=one["VersionId"])
    deleted = stack.delete()
    assert deleted.status == 0, deleted.text[-2_000:]
    assert bucket not in {one["Name"] for one in s3.list_buckets()["Buckets"]}
    assert stack.emulator.client("dynamodb").list_tables()["TableNames"] == []
    assert stack.emulator.client("lambda").list_functions()["Functions"] == []
    logs = stack.emulator.client("logs").describe_log_groups()["logGroups"]
    assert [log["logGroupName"] for log in logs if "larder" in log["logGroupName"]] == []
