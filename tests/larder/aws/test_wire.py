"""Connections, time limits and damaged replies of the client without botocore. test_alike.py compares it with boto3."""

import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from larder import aws
from larder.aws import connections, wire
from larder.aws.boto import client
from larder.aws.connections import Endpoint
from larder.aws.wire import S3, DynamoDb
from larder.deadline import KEPT_BACK_S, one_try, request_deadline
from larder.errors import TryAgain
from larder.settings import settings
from tests.larder.aws.scripted_server import LOST, Scripted, ScriptedServer, damaged, json_reply, scripted_server
from tools.benchmarks.cold.tls import self_signed

KEY = {"TableName": "larder-teams", "Key": {"pk": {"S": "a"}}}
FOUND = json_reply(200, {"Item": {"pk": {"S": "a"}}})
BUSY = json_reply(400, {"__type": "x#ThrottlingException"})


@pytest.fixture
def server(environment: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


@pytest.fixture
def dynamodb(server: ScriptedServer) -> Iterator[DynamoDb]:
    made = DynamoDb(server.url, "eu-central-1", lambda: client("dynamodb"))
    yield made
    made.close()


@pytest.fixture
def s3(server: ScriptedServer) -> Iterator[S3]:
    made = S3(server.url, "eu-central-1", lambda: client("s3"))
    yield made
    made.close()


def test_calls_share_a_connection(server: ScriptedServer, dynamodb: DynamoDb) -> None:
    server.plays(FOUND)
    for _ in range(3):
        assert dynamodb.get_item(**KEY)["Item"] == {"pk": {"S": "a"}}
    assert {request.connection for request in server.requests} == {1}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_connections_over_tls_from_before_carry_the_calls_also_after_a_close(
    version: ssl.TLSVersion, tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    """With TLS 1.3, each has tickets to read before its first request."""
    certificate, key = self_signed("localhost")
    own = tmp_path / "own.pem"
    own.write_bytes(key + certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own)
    context.maximum_version = version
    environment.setattr(connections, "_tls", lambda: ssl.create_default_context(cafile=str(own)))
    shaken, used = threading.Semaphore(0), Counter[int]()

    def serve(number: int) -> None:
        with closing(context.wrap_socket(listening.accept()[0], server_side=True)) as one:
            shaken.release()
            one.settimeout(10)
            while one.recv(65_536):
                used[number] += 1
                one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")

    with closing(socket.create_server(("127.0.0.1", 0))) as listening, ThreadPoolExecutor(4) as threads:
        listening.settimeout(10)
        served = threads.map(serve, range(4))
        endpoint = Endpoint(f"https://localhost:{listening.getsockname()[1]}", read_timeout_s=10)
        for _ in range(2):
            for _ in range(2):
                endpoint.connect()
                assert shaken.acquire(timeout=30)
            # Begun together, so that each has a connection of its own.
            for reply in [endpoint.send("GET", "/", {}, b"") for _ in range(2)]:
                assert reply.read() == b"x"
            endpoint.close()
        assert list(served) == [None] * 4
    assert [used[number] for number in range(4)] == [1] * 4


@pytest.fixture
def opened(environment: pytest.MonkeyPatch) -> list[str]:
    """The hosts that further connections are opened to. All of them are refused."""
    hosts: list[str] = []

    def refuse(address: tuple[str, int], *_: object) -> None:
        hosts.append(address[0])
        raise ConnectionRefusedError

    environment.setattr("socket.create_connection", refuse)
    return hosts


def test_a_connection_from_the_start_of_an_instance_carries_its_first_call(
    server: ScriptedServer, dynamodb: DynamoDb, request: pytest.FixtureRequest
) -> None:
    server.plays(FOUND)
    dynamodb.connect()
    opened = request.getfixturevalue("opened")
    assert dynamodb.get_item(**KEY)["Item"] == {"pk": {"S": "a"}}
    assert opened == []


@pytest.fixture
def starting(environment: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment of an instance that starts."""
    environment.setenv("LARDER_AWS_CLIENT", "wire")
    aws.reset()
    return environment


def test_an_instance_connects_to_its_tables_while_it_starts_and_starts_without_them(
    starting: pytest.MonkeyPatch, opened: list[str]
) -> None:
    starting.delenv("AWS_ENDPOINT_URL_DYNAMODB", raising=False)
    aws.connect()
    assert opened == ["dynamodb.eu-central-1.amazonaws.com"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:8000"),  # workers of `make serve` fork
        ("LARDER_AWS_CLIENT", "boto3"),
        ("LARDER_AWS_CLIENT", "neither"),  # each request reports it
    ],
)
def test_an_instance_leaves_connections_to_its_calls(
    variable: str, value: str, starting: pytest.MonkeyPatch, opened: list[str]
) -> None:
    starting.setenv(variable, value)
    settings.cache_clear()
    aws.connect()
    assert opened == []


def test_a_connection_that_the_service_closed_is_replaced_without_a_retry(
    server: ScriptedServer, dynamodb: DynamoDb
) -> None:
    server.plays(FOUND)
    dynamodb.get_item(**KEY)
    server.close_connections()
    dynamodb.get_item(**KEY)
    attempts = [request.headers["amz-sdk-request"] for request in server.requests]
    assert attempts == ["attempt=1", "attempt=1"]


def test_a_kept_connection_that_had_ended_unnoticed_is_replaced_without_a_pause(
    server: ScriptedServer, dynamodb: DynamoDb, environment: pytest.MonkeyPatch
) -> None:
    """As after a thaw: the end of the connection arrives only when a request is sent."""
    environment.setattr("random.random", lambda: 1.0)  # the longest pauses: 1 s, then 2 s
    pauses: list[float] = []
    environment.setattr("time.sleep", pauses.append)
    server.plays(FOUND, LOST, FOUND)
    dynamodb.get_item(**KEY)
    assert dynamodb.get_item(**KEY)["Item"] == {"pk": {"S": "a"}}
    assert pauses == []
    assert [request.connection for request in server.requests] == [1, 1, 2]
    # A new connection that ends is no such case, nor is a reply that breaks off.
    for reply in (Scripted(200, FOUND.body, sent=3), LOST):
        server.plays(reply, FOUND)
        dynamodb.get_item(**KEY)
        assert pauses.pop() == 1
        dynamodb.close()


def test_after_one_kept_connection_had_ended_no_other_kept_one_is_tried(
    server: ScriptedServer, dynamodb: DynamoDb
) -> None:
    both = threading.Barrier(2)
    server.plays(Scripted(200, FOUND.body, waits_for=both))
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(dynamodb.get_item, **KEY) for _ in range(2)]:
            done.result()
    server.plays(LOST, FOUND)
    dynamodb.get_item(**KEY)
    assert server.requests[0].connection in {1, 2}
    assert server.requests[1].connection == 3


def test_a_reply_with_connection_close_ends_the_connection(server: ScriptedServer, dynamodb: DynamoDb) -> None:
    server.plays(Scripted(200, FOUND.body, closes=True))
    dynamodb.get_item(**KEY)
    dynamodb.get_item(**KEY)
    assert [request.headers["amz-sdk-request"] for request in server.requests] == ["attempt=1"] * 2


def test_a_connection_in_use_is_closed_after_its_client(server: ScriptedServer, s3: S3) -> None:
    server.plays(Scripted(200, b"stored"))
    body = s3.get_object(Bucket="b", Key="artifacts/a")["Body"]
    s3.close()
    assert body.read() == b"stored"
    assert body._reply._connection._socket.fileno() == -1
    server.plays(Scripted(204))
    s3.delete_object(Bucket="b", Key="artifacts/a")
    assert [request.connection for request in server.requests] == [2]


def test_calls_of_several_threads_have_a_connection_each(server: ScriptedServer, dynamodb: DynamoDb) -> None:
    server.plays(FOUND)
    threads = [threading.Thread(target=dynamodb.get_item, kwargs=KEY) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 5


def test_a_body_in_chunks_is_read(server: ScriptedServer, dynamodb: DynamoDb) -> None:
    body = FOUND.body
    chunks = b"5;name=x\r\n" + body[:5] + b"\r\n" + f"{len(body) - 5:x}\r\n".encode() + body[5:]
    headers = (("Transfer-Encoding", "chunked"), ("Content-Length", ""))
    server.plays(Scripted(200, chunks + b"\r\n0\r\nTrailer: x\r\n\r\n", headers))
    for _ in range(2):
        assert dynamodb.get_item(**KEY)["Item"] == {"pk": {"S": "a"}}
    assert {request.connection for request in server.requests} == {1}


@pytest.mark.parametrize(
    "reply",
    [
        damaged(FOUND),
        Scripted(200, b"<html>a page</html>"),
        Scripted(200, FOUND.body, sent=3),
        Scripted(200, b"", (("Content-Length", "some"),)),
        LOST,
    ],
    ids=["checksum", "page", "cut", "length", "lost"],
)
def test_a_damaged_reply_is_requested_again_and_then_an_error(
    server: ScriptedServer, dynamodb: DynamoDb, reply: Scripted
) -> None:
    """botocore returns a damaged reply if its last attempt gets one, and takes a page for an empty reply."""
    server.plays(reply)
    with pytest.raises(TryAgain):
        dynamodb.get_item(**KEY)
    assert len(server.requests) == 3
    server.plays(reply, FOUND)
    assert dynamodb.get_item(**KEY)["Item"] == {"pk": {"S": "a"}}


def test_a_silent_service_is_asked_three_times(server: ScriptedServer) -> None:
    server.plays(Scripted(200, b"{}", (("Content-Length", "10"),)))
    quick = DynamoDb(server.url, "eu-central-1", lambda: None, read_timeout_s=0.05)
    with pytest.raises(TryAgain):
        quick.get_item(**KEY)
    # The client can give up before the server has read its last request.
    server.received(3)


def test_an_unreachable_service_is_reported_as_try_again(server: ScriptedServer) -> None:
    with scripted_server() as gone:
        url = gone.url
    with pytest.raises(TryAgain) as raised:
        DynamoDb(url, "eu-central-1", lambda: None).get_item(**KEY)
    assert isinstance(raised.value.__cause__, ConnectionError)


def test_no_call_starts_when_the_time_is_over(server: ScriptedServer, dynamodb: DynamoDb) -> None:
    server.plays(FOUND)
    with request_deadline(round(KEPT_BACK_S * 1000)), pytest.raises(TryAgain):
        dynamodb.get_item(**KEY)
    assert server.requests == []


def test_work_that_can_be_left_out_is_tried_once(server: ScriptedServer, dynamodb: DynamoDb) -> None:
    server.plays(BUSY)
    with one_try(), pytest.raises(TryAgain):
        dynamodb.get_item(**KEY)
    assert len(server.requests) == 1


def test_retries_end_while_the_service_is_down(server: ScriptedServer, dynamodb: DynamoDb) -> None:
    """The quota has 500 units, a retry takes 5, and only a success returns some."""
    server.plays(BUSY)
    for _ in range(60):
        with pytest.raises(TryAgain):
            dynamodb.get_item(**KEY)
    assert len(server.requests) == 60 + 100
    server.plays(FOUND)
    for _ in range(5):
        dynamodb.get_item(**KEY)
    server.plays(BUSY, FOUND)
    assert dynamodb.get_item(**KEY)["Item"] == {"pk": {"S": "a"}}


def test_the_body_of_an_object_of_another_size_need_not_be_read(server: ScriptedServer, s3: S3) -> None:
    server.plays(Scripted(200, b"0123456789"))
    reply = s3.get_object(Bucket="b", Key="artifacts/a", VersionId="v")
    assert reply["ContentLength"] == 10
    reply["Body"].close()
    assert s3.get_object(Bucket="b", Key="artifacts/a")["Body"].read() == b"0123456789"
    assert [request.connection for request in server.requests] == [1, 2]


def test_a_bucket_in_another_region_is_an_error(server: ScriptedServer, s3: S3) -> None:
    """botocore looks for its region. Larder's bucket is in the region of its functions."""
    moved = b"<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>"
    server.plays(Scripted(301, moved))
    with pytest.raises(aws.ClientError, match="PermanentRedirect"):
        s3.get_object(Bucket="b", Key="artifacts/a")
    assert len(server.requests) == 1


def test_other_calls_are_those_of_boto3(server: ScriptedServer, dynamodb: DynamoDb) -> None:
    assert dynamodb.scan.__self__ is client("dynamodb")


LAMBDA = {"AWS_LAMBDA_FUNCTION_NAME": "larder-GetStatus"}


@pytest.mark.parametrize(
    ("variables", "by_wire"),
    [
        ({}, False),
        (LAMBDA, True),
        ({**LAMBDA, "LARDER_AWS_CLIENT": "boto3"}, False),
        ({"LARDER_AWS_CLIENT": "wire"}, False),
        ({**LAMBDA, "HTTPS_PROXY": "http://proxy:3128"}, False),
        ({**LAMBDA, "AWS_USE_FIPS_ENDPOINT": "true"}, False),
        ({**LAMBDA, "AWS_ACCESS_KEY_ID": None}, False),
    ],
    ids=str,
)
def test_functions_use_the_wire_unless_only_boto3_can(
    environment: pytest.MonkeyPatch, variables: dict[str, str | None], by_wire: bool
) -> None:
    # A developer's machine may have a proxy.
    for name in ("AWS_LAMBDA_FUNCTION_NAME", *aws.ONLY_BOTO3_KNOWS):
        environment.delenv(name, raising=False)
    environment.setenv("LARDER_AWS_CLIENT", "")
    for name, value in variables.items():
        if value is None:
            environment.delenv(name)
        else:
            environment.setenv(name, value)
    settings.cache_clear()
    aws.reset()
    assert isinstance(aws.dynamodb(), DynamoDb) == by_wire
    environment.undo()
    settings.cache_clear()
    aws.reset()


def test_the_endpoints_are_those_of_the_region(environment: pytest.MonkeyPatch) -> None:
    for name in ("DYNAMODB", "S3", "SECRETS_MANAGER"):
        environment.delenv(f"AWS_ENDPOINT_URL_{name}", raising=False)
    assert aws._url("dynamodb") == "https://dynamodb.eu-central-1.amazonaws.com"
    assert aws._url("s3") == "https://{bucket}.s3.eu-central-1.amazonaws.com"
    assert aws._url("secretsmanager") == "https://secretsmanager.eu-central-1.amazonaws.com"
    environment.setenv("URL_SUFFIX", "amazonaws.eu")
    assert aws._url("s3") == "https://{bucket}.s3.eu-central-1.amazonaws.eu"


def test_a_bucket_has_a_host_of_its_own(server: ScriptedServer) -> None:
    """Here `{bucket}` is the port, because each bucket would need a name on loopback."""
    server.plays(Scripted(204))
    s3 = S3("http://127.0.0.1:{bucket}", "eu-central-1", lambda: client("s3"))
    s3.delete_object(Bucket=str(server.port), Key="artifacts/a", VersionId="v 1")
    s3.close()
    (request,) = server.requests
    assert (request.path, request.query) == ("/artifacts/a", {"versionId": ["v 1"]})


def test_threads_that_make_a_client_at_once_share_it(environment: pytest.MonkeyPatch) -> None:
    aws.reset()
    both = threading.Barrier(2)
    make_client, make_endpoint = aws._made_wire, Endpoint

    def make_client_with_another(service: str) -> Any:
        both.wait(timeout=30)
        return make_client(service)

    def make_endpoint_with_another(*args: Any, **kwargs: Any) -> Endpoint:
        both.wait(timeout=30)
        return make_endpoint(*args, **kwargs)

    environment.setattr(aws, "_made_wire", make_client_with_another)
    environment.setattr(wire, "Endpoint", make_endpoint_with_another)

    def endpoint(_: int) -> tuple[Any, Endpoint]:
        made = aws._wire("dynamodb")
        return made, made._endpoint()

    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(endpoint, range(2))
    assert one[0] is other[0]
    assert one[1] is other[1]
    aws.reset()
