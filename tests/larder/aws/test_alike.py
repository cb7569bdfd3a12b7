"""The two clients of AWS are alike: the same requests, results and errors, also when the service or the network fails.

Where they differ on purpose, a test at the end says so.
"""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
import time_machine
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import HealthCheck, assume, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from larder import aws
from larder.aws import boto
from larder.errors import TryAgain
from larder.settings import region, s3_endpoint, settings
from tests.larder.aws.scripted_server import (
    LOST,
    RESET,
    Recorded,
    Scripted,
    ScriptedServer,
    damaged,
    json_reply,
    scripted_server,
)

REGION = "eu-central-1"
KEY, SECRET, TOKEN = "AKIDEXAMPLE", "the-secret-key", "the+session/token=="
UNREAD = {
    *("accept-encoding", "amz-sdk-request", "amz-sdk-invocation-id", "authorization"),
    *("connection", "expect", "user-agent", "x-amz-date"),
}
"""Headers that differ. The date and the signature have tests of their own. With `expect`, botocore waits for S3's
permission to send a body; Larder's bodies are small enough to send them at once."""


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running, pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ACCESS_KEY_ID", KEY)
        patched.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patched.setenv("AWS_SESSION_TOKEN", TOKEN)
        patched.setenv("AWS_REGION", REGION)
        for service in ("DYNAMODB", "S3", "SECRETS_MANAGER", "LAMBDA"):
            patched.setenv(f"AWS_ENDPOINT_URL_{service}", running.url)
        # The pauses between tries. test_wire.py has them.
        patched.setattr("time.sleep", lambda _: None)
        _forget()
        yield running
    _forget()


def _forget() -> None:
    aws.reset()
    for cached in (region, s3_endpoint):
        cached.cache_clear()


def by_wire(service: str) -> Any:
    return aws._wire(service)


CLIENTS = {"wire": by_wire, "boto3": boto.client}


def outcome(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
    """What the caller sees: the parts of the reply that Larder reads, or the error."""
    try:
        reply = getattr(client, operation)(**arguments)
    except TryAgain:
        return "try again"
    except aws.Throttled:
        return "throttled"
    except aws.ClientError as error:
        refusal = {
            name: error.response[name] for name in ("Error", "Item", "CancellationReasons") if name in error.response
        }
        return "refused", {**refusal, "Error": _code_and_message(refusal["Error"])}
    reply.pop("ResponseMetadata", None)
    if "Payload" in reply:
        # Of boto3 alone: Larder reads no reply of a function.
        assert reply["Payload"].read() == b""
    if "Body" in reply:
        try:
            reply["Body"] = reply["Body"].read()
        except TryAgain:
            return "try again while reading"
    return {name: value for name, value in reply.items() if name in _READ[operation]}


_DESCRIPTION = {"VersionId", "ContentLength", "LastModified", "Metadata", "Body"}
_READ = {
    "get_item": {"Item"},
    "batch_get_item": {"Responses", "UnprocessedKeys"},
    "query": {"Items", "LastEvaluatedKey"},
    "put_item": {"Attributes"},
    "update_item": {"Attributes"},
    "delete_item": {"Attributes"},
    "transact_get_items": {"Responses"},
    "transact_write_items": set[str](),
    "put_object": {"VersionId"},
    "get_object": _DESCRIPTION,
    "head_object": _DESCRIPTION,
    "delete_object": set[str](),
    "get_secret_value": {"SecretString", "CreatedDate"},
    "invoke": {"StatusCode"},
}
"""The parts of each operation's reply that Larder reads."""


def _code_and_message(error: dict[str, Any]) -> tuple[str, str]:
    return error.get("Code", ""), error.get("Message", "")


def sent(request: Recorded) -> tuple[Any, ...]:
    """A request without what differs from one request to another of the same client."""
    headers = {name: value for name, value in request.headers.items() if name not in UNREAD}
    body: Any = request.body
    if "x-amz-target" in headers:
        body = json.loads(request.body)
        if "ClientRequestToken" in body:
            assert 1 <= len(body["ClientRequestToken"]) <= 36
            body["ClientRequestToken"] = "some token"
        del headers["content-length"]
    return request.method, request.path, request.query, headers, body


def compare(server: ScriptedServer, service: str, operation: str, arguments: dict[str, Any], *script: Scripted) -> Any:
    """Make the call with both clients, and return what the caller sees of either."""
    if len(script) > 1:
        # Retries have a quota for all calls of a client. The failures of other examples must not use it up.
        aws.reset()
    seen = {}
    for name, client in CLIENTS.items():
        server.plays(*script)
        result = outcome(client(service), operation, arguments)
        seen[name] = result, [sent(request) for request in server.requests]
        ids = {request.headers["amz-sdk-invocation-id"] for request in server.requests}
        assert len(ids) == 1
        if operation == "transact_write_items":
            # A retry has the same token, by which DynamoDB recognizes it.
            tokens = {json.loads(one.body)["ClientRequestToken"] for one in server.requests}
            assert len(tokens) == 1
    assert seen["wire"] == seen["boto3"]
    return seen["wire"][0]


def many(number: int) -> examples:
    """`MACHINE_ROUNDS` multiplies the examples."""
    rounds = int(os.environ.get("MACHINE_ROUNDS") or 1)
    return examples(max_examples=number * rounds, suppress_health_check=[HealthCheck.function_scoped_fixture])


TEXTS = st.text(max_size=20)
NAMES = st.text(min_size=1, max_size=10)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(TEXTS, st.integers(), st.booleans(), st.sets(NAMES, min_size=1, max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
ITEMS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=4).map(aws.serialize)
TABLE, BUCKET = "larder-teams", "larder-artifacts"


def _one_item(item: dict[str, Any]) -> dict[str, Any]:
    return {"TableName": TABLE, "Key": item}


def _writes(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "TransactItems": [
            {"Put": {"TableName": TABLE, "Item": item, "ConditionExpression": "#a = :b"}} for item in items
        ]
    }


def _updated(item: dict[str, Any]) -> dict[str, Any]:
    return {
        **_one_item(item),
        "UpdateExpression": "SET #a = :b",
        "ExpressionAttributeNames": {"#a": "ä"},
        "ExpressionAttributeValues": {":b": {"S": "\u2028'\"\\"}},
        "ReturnValues": "ALL_NEW",
    }


DYNAMODB_CALLS = st.one_of(
    st.tuples(st.just("get_item"), ITEMS.map(_one_item)),
    st.tuples(st.just("delete_item"), ITEMS.map(_one_item)),
    st.tuples(st.just("update_item"), ITEMS.map(_updated)),
    st.tuples(st.just("put_item"), ITEMS.map(lambda item: {"TableName": TABLE, "Item": item})),
    st.tuples(st.just("query"), ITEMS.map(lambda item: {"TableName": TABLE, "Limit": 3, "ExclusiveStartKey": item})),
    st.tuples(
        st.just("batch_get_item"),
        st.lists(ITEMS, min_size=1, max_size=3).map(
            lambda keys: {"RequestItems": {TABLE: {"Keys": keys, "ConsistentRead": True}}}
        ),
    ),
    st.tuples(st.just("transact_write_items"), st.lists(ITEMS, min_size=1, max_size=3).map(_writes)),
    st.tuples(st.just("transact_get_items"), ITEMS.map(lambda item: {"TransactItems": [{"Get": _one_item(item)}]})),
)

CODES = st.sampled_from(
    [
        *("ConditionalCheckFailedException", "ResourceNotFoundException", "ValidationException"),
        *("AccessDeniedException", "ExpiredTokenException", "UnrecognizedClientException"),
        # The clock is wrong.
        *("InvalidSignatureException", "ThrottlingException", "InternalServerError"),
        *("ProvisionedThroughputExceededException", "RequestLimitExceeded"),
        *("TransactionConflictException", "TransactionInProgressException"),
    ]
)
REASONS = st.lists(
    st.sampled_from(
        [
            *("None", "ConditionalCheckFailed", "TransactionConflict"),
            *("ThrottlingError", "ProvisionedThroughputExceeded", "ValidationError"),
        ]
    ).map(lambda code: {"Code": code}),
    min_size=1,
    max_size=3,
)
ERRORS = st.one_of(
    st.builds(
        lambda code, status, prefix, message: json_reply(
            status, {"__type": f"{prefix}{code}", message: "What is wrong: <ä>"}
        ),
        CODES,
        st.sampled_from([400, 500, 503]),
        st.sampled_from(["", "com.amazonaws.dynamodb.v20120810#", "com.amazon.coral.service#"]),
        st.sampled_from(["message", "Message"]),
    ),
    st.builds(
        lambda reasons: json_reply(
            400,
            {
                "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
                "Message": "Transaction cancelled",
                "CancellationReasons": reasons,
            },
        ),
        REASONS,
    ),
    st.builds(
        lambda item: json_reply(400, {"__type": "x#ConditionalCheckFailedException", "message": "no", "Item": item}),
        ITEMS,
    ),
    st.sampled_from([500, 502, 503, 504]).map(Scripted),
    st.sampled_from([502, 503]).map(lambda status: Scripted(status, b"<html>Unavailable</html>")),
    st.sampled_from([301, 307, 401, 403, 404, 413, 429]).map(lambda status: json_reply(status, {})),
)
DONE = st.one_of(
    ITEMS.map(lambda item: json_reply(200, {"Item": item})),
    ITEMS.map(lambda item: json_reply(200, {"Attributes": item, "ConsumedCapacity": {}})),
    ITEMS.map(lambda item: json_reply(200, {"Items": [item], "LastEvaluatedKey": item})),
    ITEMS.map(lambda item: json_reply(200, {"Responses": {TABLE: [item]}, "UnprocessedKeys": {}})),
    st.just(json_reply(200, {})),
)
CUT = DONE.map(lambda reply: Scripted(reply.status, reply.body, reply.headers, sent=1))


@many(10)
@given(call=DYNAMODB_CALLS, reply=DONE, closes=st.booleans())
def test_dynamodb_gets_the_same_requests(
    server: ScriptedServer, call: tuple[str, dict[str, Any]], reply: Scripted, closes: bool
) -> None:
    if "Responses" in json.loads(reply.body) and call[0] == "transact_get_items":
        reply = json_reply(200, {"Responses": [{}]})
    compare(server, "dynamodb", *call, Scripted(200, reply.body, reply.headers, closes=closes))


@many(10)
@given(
    call=DYNAMODB_CALLS,
    script=st.lists(st.one_of(ERRORS, CUT, DONE.map(damaged), st.sampled_from([LOST, RESET])), min_size=1, max_size=2),
    end=st.one_of(st.just(json_reply(200, {})), ERRORS, st.just(LOST)),
)
def test_failures_of_dynamodb_are_met_alike(
    server: ScriptedServer, call: tuple[str, dict[str, Any]], script: list[Scripted], end: Scripted
) -> None:
    # botocore cannot parse the reply to a batch as that to a transaction.
    batches = [reply for reply in (*script, end) if b'"Responses"' in reply.body]
    assume(not (call[0] == "transact_get_items" and batches))
    compare(server, "dynamodb", *call, *script, end)


VERSIONS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
KEYS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1, max_size=20).map(
    lambda end: f"artifacts/{end}"
)
OBJECTS = st.builds(lambda key: {"Bucket": BUCKET, "Key": key}, KEYS)
METADATA = st.dictionaries(
    st.sampled_from(["duration-ms", "tag", "sha", "writer"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20),
)
UPLOADS = st.builds(
    lambda where, body, metadata: {
        **where,
        "Body": body,
        "ContentType": "application/octet-stream",
        "Metadata": metadata,
    },
    OBJECTS,
    st.one_of(st.binary(max_size=50), st.just(bytes(100_000))),
    METADATA,
)
VERSIONED = st.builds(lambda where, version: {**where, "VersionId": version}, OBJECTS, VERSIONS)
S3_CALLS = st.one_of(
    st.tuples(st.just("put_object"), UPLOADS),
    st.tuples(st.just("get_object"), VERSIONED),
    st.tuples(st.just("head_object"), st.one_of(OBJECTS, VERSIONED)),
    st.tuples(st.just("delete_object"), VERSIONED),
)


def _s3_error(status: int, code: str) -> Scripted:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>a &lt; b</Message></Error>"
    return Scripted(status, body.encode(), (("Content-Type", "application/xml"),))


S3_ERRORS = st.one_of(
    st.sampled_from(
        [
            *(_s3_error(404, "NoSuchKey"), _s3_error(404, "NoSuchVersion")),
            *(_s3_error(403, "AccessDenied"), _s3_error(403, "RequestTimeTooSkewed")),
            *(_s3_error(400, "ExpiredToken"), _s3_error(400, "RequestTimeout")),
            *(_s3_error(503, "SlowDown"), _s3_error(500, "InternalError")),
            *(_s3_error(409, "OperationAborted"), _s3_error(405, "MethodNotAllowed")),
            *(Scripted(503, b"<html>"), Scripted(500), Scripted(404), Scripted(403)),
        ]
    )
)
DESCRIBED = st.builds(
    lambda body, metadata, version: Scripted(
        200,
        body,
        (
            ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            *((f"x-amz-meta-{name}", value) for name, value in metadata.items()),
            *([("x-amz-version-id", version)] if version else []),
        ),
    ),
    st.binary(max_size=50),
    METADATA,
    st.one_of(st.none(), VERSIONS),
)


@many(10)
@given(call=S3_CALLS, reply=DESCRIBED)
def test_s3_gets_the_same_requests(server: ScriptedServer, call: tuple[str, dict[str, Any]], reply: Scripted) -> None:
    compare(server, "s3", *call, _fitting(call, reply))


@pytest.mark.slow
@many(10)
@given(
    call=S3_CALLS,
    script=st.lists(st.one_of(S3_ERRORS, st.sampled_from([LOST, RESET])), min_size=1, max_size=2),
    end=st.one_of(DESCRIBED, S3_ERRORS, st.just(LOST)),
)
def test_failures_of_s3_are_met_alike(
    server: ScriptedServer, call: tuple[str, dict[str, Any]], script: list[Scripted], end: Scripted
) -> None:
    # After such a reply, botocore looks for the bucket in another region.
    assume(not (call[0] == "head_object" and 400 in [reply.status for reply in [*script, end]]))
    compare(server, "s3", *call, *script, _fitting(call, end))


def _fitting(call: tuple[str, dict[str, Any]], reply: Scripted) -> Scripted:
    """The reply without a body if the operation's reply has none."""
    if call[0] == "get_object" or reply.status != 200:
        return reply
    return Scripted(reply.status, b"", reply.headers)


def test_a_body_that_breaks_off_is_not_read_again(server: ScriptedServer) -> None:
    arguments = {"Bucket": BUCKET, "Key": "artifacts/a", "VersionId": "v"}
    cut = Scripted(200, b"0123456789", sent=4)
    seen = compare(server, "s3", "get_object", arguments, cut)
    assert seen == "try again while reading"


def test_secrets_are_read_alike(server: ScriptedServer) -> None:
    stored = {"SecretString": "ä", "CreatedDate": 1_700_000_000.125}
    seen = compare(*(server, "secretsmanager", "get_secret_value", {"SecretId": "arn:aws:x"}), json_reply(200, stored))
    made = datetime(2023, 11, 14, 22, 13, 20, 125_000, UTC)
    assert seen == {"SecretString": "ä", "CreatedDate": made}


INVOCATION = {
    "FunctionName": "larder-prod-send_account_email",
    "InvocationType": "Event",
    "Payload": '{"kind": "verify", "name": "ä"}'.encode(),
}


def _lambda_error(status: int, code: str, message: str = "message") -> Scripted:
    body = json.dumps({"Type": "User", message: "What is wrong"}).encode()
    return Scripted(status, body, (("x-amzn-ErrorType", code), ("Content-Type", "application/json")))


LAMBDA_ERRORS = st.sampled_from(
    [
        _lambda_error(404, "ResourceNotFoundException", "Message"),
        _lambda_error(403, "AccessDeniedException", "Message"),
        _lambda_error(413, "RequestTooLargeException:http://internal.amazon.com/coral/"),
        _lambda_error(429, "TooManyRequestsException"),
        _lambda_error(500, "ServiceException", "Message"),
        *(json_reply(403, {"message": "no"}), Scripted(503, b"<html>"), Scripted(500), LOST, RESET),
    ]
)


@many(10)
@given(
    script=st.lists(LAMBDA_ERRORS, max_size=2),
    end=st.one_of(st.sampled_from([Scripted(202), Scripted(204)]), LAMBDA_ERRORS),
)
def test_functions_are_invoked_alike(server: ScriptedServer, script: list[Scripted], end: Scripted) -> None:
    compare(server, "lambda", "invoke", INVOCATION, *script, end)


@pytest.mark.parametrize("service", ["dynamodb", "s3", "lambda"])
def test_calls_of_a_function_name_its_invocation(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "larder-prod-get_status")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=a:1|b:2")
    operation, arguments, reply = {
        "dynamodb": ("get_item", _one_item({"pk": {"S": "a"}}), json_reply(200, {})),
        "s3": ("head_object", {"Bucket": BUCKET, "Key": "artifacts/a"}, Scripted(200)),
        "lambda": ("invoke", INVOCATION, Scripted(202)),
    }[service]
    compare(server, service, operation, arguments, reply)
    (request,) = server.requests
    assert "%7C" in request.headers["x-amzn-trace-id"]
    server.plays(reply)
    outcome(by_wire(service), operation, arguments)
    assert "trace" not in server.requests[-1].headers["authorization"]


def expected_signature(request: Recorded, url: str, service: str) -> str:
    """The signature that botocore computes for the request as it was received."""
    signed = request.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
    query = "&".join(f"{name}={value}" for name, (value,) in request.query.items())
    copy = AWSRequest(
        method=request.method,
        url=f"{url}{request.path}",
        params={name: value for name, (value,) in request.query.items()},
        data=request.body,
        headers={name: request.headers[name] for name in signed.split(";")},
    )
    assert bool(query) == bool(copy.params)
    copy.context["timestamp"] = request.headers["x-amz-date"]
    signer = SigV4Auth(Credentials(KEY, SECRET, TOKEN), service, REGION)
    # S3 signs the path as it is, DynamoDB has none.
    signer._normalize_url_path = lambda path: path  # type: ignore[attr-defined]
    text = signer.string_to_sign(copy, signer.canonical_request(copy))
    return str(signer.signature(text, copy))


@many(10)
@given(
    asked=st.one_of(
        DYNAMODB_CALLS.map(lambda call: ("dynamodb", *call)),
        S3_CALLS.map(lambda call: ("s3", *call)),
        st.just(("lambda", "invoke", INVOCATION)),
    )
)
def test_signatures_are_those_of_botocore(server: ScriptedServer, asked: tuple[str, str, dict[str, Any]]) -> None:
    service, operation, arguments = asked
    server.plays(json_reply(200, {}))
    outcome(by_wire(service), operation, arguments)
    (request,) = server.requests
    _, _, signature = request.headers["authorization"].partition("Signature=")
    assert signature == expected_signature(request, server.url, service)
    assert request.headers["x-amz-security-token"] == TOKEN
    unsigned = {"authorization", "content-length"}
    signed = request.headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
    assert set(request.headers) - unsigned == set(signed.split(";"))


@many(10)
@given(key=KEYS, version=VERSIONS, token=st.sampled_from(["", TOKEN]), expires_s=st.integers(1, 604_800))
def test_presigned_urls_are_those_of_botocore(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, key: str, version: str, token: str, expires_s: int
) -> None:
    parameters = f"response-cache-control=no-store&versionId={quote(version, safe='')}"
    url = f"https://{BUCKET}.s3.{REGION}.amazonaws.com/{quote(key)}?{parameters}"
    urls = set()
    with time_machine.travel("2026-01-02T03:04:05Z", tick=False), monkeypatch.context() as patched:
        patched.setenv("AWS_SESSION_TOKEN", token)
        for client in ("wire", "boto3"):
            patched.setenv("LARDER_AWS_CLIENT", client)
            settings.cache_clear()
            aws.reset()
            urls.add(aws.presign("GET", url, expires_s=expires_s))
    settings.cache_clear()
    aws.reset()
    assert len(urls) == 1
