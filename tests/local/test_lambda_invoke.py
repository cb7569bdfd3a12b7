"""Lambda's Invoke on one machine: asynchronous invocations between functions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.exceptions import ClientError

from tests.local.stub_service import StubCloud, eventually

# Each starts processes, and waits for them.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubCloud]:
    """A cloud for this module only, because its function receives events that other tests do not expect."""
    cloud = StubCloud(tmp_path_factory.mktemp("invocations"), workers=2)
    yield cloud
    cloud.stop()


def event(key: str) -> dict[str, Any]:
    return {"detail": {"object": {"key": key}}}


def invoke(cloud: StubCloud, payload: Any, **changes: str) -> dict[str, Any]:
    arguments = {"FunctionName": "larder-arrived", "InvocationType": "Event", **changes}
    return dict(cloud.lambda_().invoke(**arguments, Payload=payload))


def waiting(cloud: StubCloud) -> list[Path]:
    return list((cloud.data / "invocations").glob("*.json"))


def refusal(cloud: StubCloud, payload: Any, **changes: str) -> tuple[int, str]:
    with pytest.raises(ClientError) as refused:
        invoke(cloud, payload, **changes)
    response = refused.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def test_an_invocation_is_accepted_at_once_and_done_afterwards(cloud: StubCloud) -> None:
    reply = invoke(cloud, json.dumps(event("by invocation")))
    assert (reply["StatusCode"], reply["Payload"].read()) == (202, b"")
    assert eventually(lambda: event("by invocation") in cloud.arrived())
    assert eventually(lambda: not waiting(cloud))


def test_a_failed_invocation_is_retried(cloud: StubCloud) -> None:
    handed = event("by invocation, fails-once")
    invoke(cloud, json.dumps(handed))
    assert eventually(lambda: cloud.arrived().count(handed) == 2)
    assert eventually(lambda: "Arrived failed on invocation" in cloud.screen)
    assert eventually(lambda: not waiting(cloud))


def test_an_invocation_that_keeps_failing_is_moved_to_failed(cloud: StubCloud) -> None:
    invoke(cloud, json.dumps({"no": "key"}))
    failed = cloud.data / "invocations" / "failed"
    assert eventually(lambda: failed.exists() and list(failed.iterdir()))
    (file,) = failed.iterdir()
    assert json.loads(file.read_text())["payload"] == {"no": "key"}
    assert waiting(cloud) == []


def test_an_unknown_function_is_not_found(cloud: StubCloud) -> None:
    error = refusal(cloud, "{}", FunctionName="larder-nobody")
    assert error == (404, "ResourceNotFoundException")


def test_synchronous_invocations_are_rejected(cloud: StubCloud) -> None:
    error = refusal(cloud, "{}", InvocationType="RequestResponse")
    assert error == (400, "InvalidParameterValueException")


def test_a_payload_is_json_of_at_most_256_kb(cloud: StubCloud) -> None:
    assert refusal(cloud, "{") == (400, "InvalidRequestContentException")
    invoke(cloud, json.dumps(event("x" * 260_000)))
    assert refusal(cloud, json.dumps(event("x" * 270_000))) == (413, "RequestTooLargeException")


def test_invoke_needs_the_credentials(cloud: StubCloud) -> None:
    environment = cloud.description["environment"]
    where = environment["AWS_ENDPOINT_URL_LAMBDA"]
    assert where.startswith("http://127.0.0.1:")
    path = "/2015-03-31/functions/larder-arrived/invocations"
    unsigned = httpx.post(where + path, content="{}", headers={"x-amz-invocation-type": "Event"}, trust_env=False)
    assert unsigned.status_code == 403
    stranger = boto3.client(
        "lambda",
        endpoint_url=where,
        region_name=environment["AWS_REGION"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key="guessed",
    )
    with pytest.raises(ClientError, match="UnrecognizedClientException"):
        stranger.invoke(FunctionName="larder-arrived", InvocationType="Event", Payload=b"{}")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/2015-03-31/functions/larder-arrived/invocations"), ("POST", "/2015-03-31/functions")]
)
def test_other_lambda_operations_are_not_supported(cloud: StubCloud, method: str, path: str) -> None:
    where = cloud.description["environment"]["AWS_ENDPOINT_URL_LAMBDA"]
    assert httpx.request(method, where + path, trust_env=False).status_code == 404


def test_an_accepted_invocation_is_done_after_a_crash(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path)
    arrived = tmp_path / "functions" / "things" / "arrived.py"
    working = arrived.read_text()
    arrived.write_text("import time\ndef handler(event, context):\n    time.sleep(30)\n")
    cloud.stop()
    cloud.start()
    try:
        invoke(cloud, json.dumps(event("before the crash")))
        assert len(waiting(cloud)) == 1
        cloud.kill()
        arrived.write_text(working)
        cloud.start()
        assert eventually(lambda: event("before the crash") in cloud.arrived())
    finally:
        cloud.stop()
