"""The gateway has the limits and error messages of the cloud's."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.local.stub_service import StubCloud, eventually

OCTETS = {"content-type": "application/octet-stream"}


@pytest.fixture
def client(cloud: StubCloud) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=cloud.url, trust_env=False, timeout=40) as client:
        yield client


def echo(reply: httpx.Response) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


def on_screen(cloud: StubCloud, text: str) -> bool:
    return eventually(lambda: text in cloud.screen)


def respond(client: httpx.Client, reply: object) -> httpx.Response:
    content = json.dumps(reply)
    return client.post("/respond", content=content, headers={"content-type": "application/json"})


def raw_exchange(cloud: StubCloud, request: bytes, *, then_body: bytes = b"") -> bytes:
    """Send raw bytes and read until the server closes the connection or is silent for a while."""
    address = urlsplit(cloud.url)
    place = (address.hostname or "", address.port or 0)
    with socket.create_connection(place, timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        if then_body:
            answer = connection.recv(65536)
            connection.sendall(then_body)
        connection.settimeout(3)
        try:
            while chunk := connection.recv(65536):
                answer += chunk
                if b"\r\n\r\n" in answer and b"HTTP/1.1 100" not in answer[:12]:
                    break
        except TimeoutError:
            pass
        return answer


def test_passes_the_request_to_the_function_of_its_route(client: httpx.Client) -> None:
    seen = echo(client.get("/echo/a%20b?x=1&x=2"))
    event = seen["event"]
    assert event["routeKey"] == "ANY /echo/{name}"
    assert event["rawPath"] == "/echo/a%20b"
    assert event["pathParameters"] == {"name": "a b"}
    assert event["queryStringParameters"] == {"x": "1,2"}
    assert event["headers"]["x-forwarded-for"] == "127.0.0.1"
    assert event["requestContext"]["http"]["sourceIp"] == "127.0.0.1"
    assert seen["function"] == "Echo"
    assert 1000 < seen["left_ms"] <= 5000


def test_the_request_id_header_matches_the_functions(client: httpx.Client) -> None:
    reply = client.get("/echo/a")
    assert reply.headers["apigw-requestid"] == echo(reply)["request_id"]


def test_functions_see_overridden_settings_but_not_the_callers_aws_variables(client: httpx.Client) -> None:
    seen = echo(client.get("/echo/a"))
    assert seen["greeting"] == "good day"
    assert seen["aws_profile"] is None


def test_accepts_a_path_with_two_leading_slashes(client: httpx.Client, cloud: StubCloud) -> None:
    reply = client.get(f"{cloud.url}//echo/a")
    assert echo(reply)["event"]["rawPath"] == "/echo/a"


@pytest.mark.parametrize(("method", "path"), [("GET", "/nowhere"), ("GET", "/echo/a/b"), ("DELETE", "/respond")])
def test_passes_a_request_without_a_route_to_the_default_route(client: httpx.Client, method: str, path: str) -> None:
    reply = client.request(method, path)
    assert (reply.status_code, reply.text) == (404, "$default")
    assert reply.headers["x-route"] == "$default"


def test_rejects_bodies_too_large_for_the_default_routes_function(client: httpx.Client) -> None:
    large = client.post("/nowhere", content=bytes(4_720_000), headers=OCTETS)
    assert (large.status_code, large.json()) == (413, {"message": "Request Entity Too Large"})
    assert client.get("/nowhere", headers={"x-a": "a" * 10_500}).status_code == 431


def test_passes_a_binary_body_as_base64(client: httpx.Client) -> None:
    body = bytes(range(256))
    event = echo(client.put("/echo/a", content=body, headers=OCTETS))["event"]
    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == body


def test_accepts_a_chunked_body(client: httpx.Client) -> None:
    pieces = (b"one", b"two")
    event = echo(client.put("/echo/a", content=iter(pieces), headers=OCTETS))["event"]
    assert base64.b64decode(event["body"]) == b"onetwo"
    assert "transfer-encoding" not in event["headers"]


def test_accepts_the_largest_body_for_a_function_and_rejects_a_larger_one(client: httpx.Client) -> None:
    assert client.put("/echo/a", content=bytes(4_700_000), headers=OCTETS).status_code == 200
    reply = client.put("/echo/a", content=bytes(4_720_000), headers=OCTETS)
    assert (reply.status_code, reply.json()) == (413, {"message": "Request Entity Too Large"})


@pytest.mark.parametrize("size", [5_000_000, 10_000_001, 40_000_000])
def test_a_client_sees_413_after_sending_a_body_of_any_size(client: httpx.Client, cloud: StubCloud, size: int) -> None:
    reply = client.put(f"/v8/artifacts/abc{size}", content=bytes(size), headers=OCTETS)
    assert (reply.status_code, reply.json()) == (413, {"message": "Request Entity Too Large"})
    # The connection stays usable: the rest of the old body is not read as a request.
    assert client.get("/echo/a").status_code == 200
    assert on_screen(cloud, f"/v8/artifacts/abc{size}  413")
    line = next(line for line in cloud.screen.splitlines() if f"abc{size}" in line)
    assert "--preflight" in line


def test_an_endless_chunked_body_is_rejected_at_the_limit(client: httpx.Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(300):
            yield bytes(100_000)

    reply = client.put("/echo/a", content=pieces(), headers=OCTETS)
    assert reply.status_code == 413


def test_a_client_with_expect_100_does_not_send_a_body_that_is_too_large(cloud: StubCloud) -> None:
    head = b"PUT /echo/a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 20000000\r\n\r\n"
    assert raw_exchange(cloud, head).startswith(b"HTTP/1.1 413 ")


def test_a_client_with_expect_100_gets_continue(cloud: StubCloud) -> None:
    head = (
        b"PUT /echo/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    )
    answer = raw_exchange(cloud, head, then_body=b"abc")
    assert answer.startswith(b"HTTP/1.1 100 Continue")
    assert b"HTTP/1.1 200 OK" in answer


def test_rejects_headers_over_10_kb(client: httpx.Client) -> None:
    assert client.get("/echo/a", headers={"x-a": "a" * 9_500}).status_code == 200
    reply = client.get("/echo/a", headers={"x-a": "a" * 10_500})
    assert reply.status_code == 431
    assert reply.json() == {"message": "Request Header Fields Too Large"}


@pytest.mark.parametrize(
    ("how", "status", "expected"),
    [
        ("raise", 500, "ValueError: a reason"),
        ("exit", 500, "exit status 3"),
        ("sleep", 500, "took longer than its 5 s"),
        ("large", 500, "at most 6 MB"),
        ("nonsense", 500, "is not a valid response"),
    ],
)
def test_a_failing_function_is_a_500_with_the_reason_on_the_screen(
    client: httpx.Client, cloud: StubCloud, how: str, status: int, expected: str
) -> None:
    reply = client.get(f"/misbehave/{how}")
    assert (reply.status_code, reply.json()) == (status, {"message": "Internal Server Error"})
    request_id = reply.headers["apigw-requestid"]
    assert on_screen(cloud, f"(request {request_id})")
    line = next(line for line in cloud.screen.splitlines() if f"(request {request_id})" in line)
    assert expected in line
    assert client.get("/echo/a").status_code == 200


def test_an_error_that_a_function_logs_is_shown_on_the_screen(client: httpx.Client, cloud: StubCloud) -> None:
    reply = client.get("/misbehave/log")
    assert reply.status_code == 204
    expected = f"Misbehave: shown on the screen (request {reply.headers['apigw-requestid']})"
    assert on_screen(cloud, expected)


def test_an_answer_without_a_body_arrives(cloud: StubCloud) -> None:
    answer = raw_exchange(cloud, b"HEAD /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 404 ")
    last = b"HEAD /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert raw_exchange(cloud, last).startswith(b"HTTP/1.1 404 ")


def test_many_requests_at_once_are_all_answered(cloud: StubCloud) -> None:
    statuses: list[int] = []

    def ask() -> None:
        for number in range(20):
            content = bytes(number * 1000)
            reply = httpx.put(f"{cloud.url}/echo/a", content=content, headers=OCTETS, timeout=30)
            statuses.append(reply.status_code)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 160


def test_sends_status_headers_cookies_and_binary_body(client: httpx.Client) -> None:
    reply = respond(
        client,
        {
            "statusCode": 207,
            "headers": {"X-Artifact-Tag": "t", "Content-Type": "image/png", "Content-Length": 99},
            "cookies": ["a=1; Secure", "b=2"],
            "body": base64.b64encode(b"\x00\xff").decode(),
            "isBase64Encoded": True,
        },
    )
    assert (reply.status_code, reply.content) == (207, b"\x00\xff")
    assert reply.headers["x-artifact-tag"] == "t"
    assert reply.headers["content-type"] == "image/png"
    assert reply.headers["content-length"] == "2"
    assert reply.headers.get_list("set-cookie") == ["a=1; Secure", "b=2"]


@pytest.mark.parametrize("value", [{"a": 1}, "plain", None])
def test_a_value_without_a_status_is_the_body_of_a_200(client: httpx.Client, value: object) -> None:
    reply = respond(client, value)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    assert reply.text == (value if isinstance(value, str) else json.dumps(value))


def test_a_bodyless_status_sends_no_body(client: httpx.Client) -> None:
    reply = respond(client, {"statusCode": 204, "headers": {"x-a": "b"}, "body": "ignored"})
    assert (reply.status_code, reply.content, reply.headers["x-a"]) == (204, b"", "b")


def test_a_header_that_would_end_the_line_is_a_500(client: httpx.Client) -> None:
    reply = respond(client, {"statusCode": 200, "headers": {"x-a": "b\r\nx-c: d"}})
    assert reply.status_code == 500


def test_head_carries_the_length_that_the_function_tells(client: httpx.Client) -> None:
    reply = client.head("/respond")
    assert reply.headers["content-length"] == "1234"
    assert reply.headers["x-artifact-tag"] == "t"
    assert client.get("/echo/a").status_code == 200


def test_the_log_shows_where_a_redirect_leads_without_its_signature(client: httpx.Client, cloud: StubCloud) -> None:
    location = "http://bucket.example/a/key?X-Amz-Signature=secret"
    assert respond(client, {"statusCode": 302, "headers": {"location": location}}).is_redirect
    shown = cloud.whole_screen()
    assert "-> bucket.example/a/key" in shown
    assert "secret" not in shown


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /echo/\xff HTTP/1.1", b"GET /echo/\x1b[2J HTTP/1.1", b"GET  /echo/a HTTP/1.1", b"NONSENSE",
        b"OPTIONS * HTTP/1.1", b"GET http://other/echo/a HTTP/1.1", b"GET /echo/%00%ff%c3%28%2e%2e%2f HTTP/1.1",
        b"POST /echo/a HTTP/1.1\r\nContent-Length: -1",
        b"POST /echo/a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 0",
        b"POST /echo/a HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: xchunked",
        b"GET /echo/a HTTP/1.1\r\nX-\xff: \xe9\x01",
    ],
)  # fmt: skip
def test_a_strange_request_line_or_header_does_no_harm(
    client: httpx.Client, cloud: StubCloud, request_line: bytes
) -> None:
    answer = raw_exchange(cloud, request_line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer[9:12] in (b"200", b"400", b"404")
    assert "\x1b" not in cloud.whole_screen()
    assert client.get("/echo/a").status_code == 200


# Host header -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "cache.localhost", "127.0.0.1", "127.1.2.3:80", "[::1]:3000"]
)
def test_loopback_names_are_accepted_with_any_port(client: httpx.Client, host: str) -> None:
    event = echo(client.get("/echo/a", headers={"host": host}))["event"]
    assert event["requestContext"]["domainName"] == host


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:3000", "localhost.evil.example", "127.0.0.1@evil.example",
        "127.0.0.1:3000@evil.example", "evil.example@localhost", "localhost/evil", "127.0.0.1.evil.example",
        "192.0.2.7", "[::2]", "[", "",
    ],
)  # fmt: skip
def test_other_hosts_get_403_that_names_the_option(cloud: StubCloud, client: httpx.Client, host: str) -> None:
    reply = client.get("/echo/a", headers={"host": host})
    assert reply.status_code == 403
    assert "PUBLIC_HOST" in reply.json()["message"]
    assert on_screen(cloud, "GET /echo/a  403  the Host header does not name this machine")


def test_two_host_headers_are_refused(cloud: StubCloud) -> None:
    request = b"GET /echo/a HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert b" 200 " not in raw_exchange(cloud, request).splitlines()[0]


def test_the_public_host_and_the_address_of_the_connection_are_accepted(tmp_path: Path) -> None:
    cloud = StubCloud(tmp_path, HOST="0.0.0.0", PUBLIC_HOST="cache.example.com")
    try:
        port = urlsplit(cloud.url).port
        for host, status in (("Cache.Example.com", 200), ("127.0.0.1", 200), ("192.0.2.7", 403)):
            url = f"http://127.0.0.1:{port}/echo/a"
            reply = httpx.get(url, headers={"host": host}, trust_env=False, timeout=40)
            assert reply.status_code == status, host
    finally:
        cloud.stop()
