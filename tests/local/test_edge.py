"""The edge of the local cloud: the deployed functions in front of the bucket, with real signatures."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import time
from typing import Any

import httpx
import pytest
from nanio.auth import sigv4
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from local.edge.app import Edge
from local.edge.files import EdgeFiles
from local.edge.store import Store
from local.object_storage.server import object_storage
from local.template import EdgeCode, load_template
from tests.conftest import SetOption
from tests.edge.requests import KEY, PATH, TAG, signed

BUCKET = "artifacts-bucket"
DENIED = (403, "AccessDenied")


class Running:
    """The edge and the bucket behind it, in this process."""

    def __init__(self, folder: Path, code: EdgeCode | None = None) -> None:
        self.files = EdgeFiles(folder / "edge")
        self.files.folder.mkdir()
        self.keys({f"key-{KEY.id}": f"{KEY.key} once"})
        read_fd, self._wake_fd = os.pipe()
        os.close(read_fd)
        keys = (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
        events = folder / "events"
        self.s3 = object_storage(folder / "s3", [BUCKET], keys, events=events, wake_fd=self._wake_fd)
        code = code or load_template().edge
        assert code is not None
        self.app = Edge(self.s3, BUCKET, code, Store(self.files))

    def close(self) -> None:
        os.close(self._wake_fd)

    def keys(self, entries: dict[str, str]) -> None:
        self.files.keys.write_text(json.dumps(entries))

    def states(self, *names: str) -> None:
        self.files.states.write_text(json.dumps(names))

    def __call__(self, method: str, url: str, **more: Any) -> httpx.Response:
        return asyncio.run(self.send(method, url, **more))

    async def send(self, method: str, url: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.request(method, url, **more)


@pytest.fixture
def edge(tmp_path: Path, option: SetOption) -> Iterator[Running]:
    option("edge_url", "https://edge.example.com")
    running = Running(tmp_path)
    yield running
    running.close()


def put(edge: Running, body: bytes = b"body", tag: str = "") -> httpx.Response:
    headers = {"x-artifact-tag": tag} if tag else {}
    return edge("PUT", signed("PUT", most_bytes=10**6), content=body, headers=headers)


def refusal(reply: httpx.Response) -> tuple[int, str]:
    if reply.headers["content-type"] == "application/xml":
        return reply.status_code, reply.text.partition("<Code>")[2].partition("</Code>")[0]
    return reply.status_code, reply.json()["error"]["code"]


def test_an_artifact_comes_back_with_its_headers(edge: Running) -> None:
    sent = {"x-artifact-tag": TAG, "x-artifact-duration": "1831", "x-artifact-sha": "abc", "content-type": "text/html"}
    body = os.urandom(3_000_000)
    uploaded = edge("PUT", signed("PUT", most_bytes=10**7), content=body, headers=sent)
    assert uploaded.status_code == 200
    assert not any(name.startswith("x-amz-") for name in uploaded.headers)
    got = edge("GET", signed("GET"))
    assert (got.status_code, got.content) == (200, body)
    assert got.headers["x-artifact-tag"] == TAG
    assert got.headers["x-artifact-duration"] == "1831"
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"] == "attachment"
    assert not any(name.startswith("x-amz-") for name in got.headers)
    head = edge("HEAD", signed("GET"))
    assert (head.headers["x-artifact-tag"], head.content) == (TAG, b"")
    part = edge("GET", signed("GET"), headers={"range": "bytes=0-99"})
    assert (part.status_code, part.content, part.headers["x-artifact-tag"]) == (*(206, body[:100]), TAG)


def test_the_requests_to_the_bucket_are_signed(edge: Running, option: SetOption) -> None:
    seen: list[Scope] = []
    s3 = edge.app._origin

    async def spy(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await s3(scope, receive, send)

    edge.app._origin = spy
    assert put(edge, tag=TAG).status_code == 200
    (scope,) = seen
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    parts = sigv4.parse_authorization_header(headers["authorization"])
    assert {"host", "x-amz-content-sha256", "x-amz-meta-tag"} <= set(parts.signed_headers)
    assert headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"


def test_a_second_upload_to_an_address_changes_nothing(edge: Running) -> None:
    assert put(edge, b"first").status_code == 200
    assert refusal(put(edge, b"later")) == (412, "PreconditionFailed")
    assert edge("GET", signed("GET")).content == b"first"


def test_without_the_flag_a_second_upload_replaces_the_first(edge: Running) -> None:
    edge.keys({f"key-{KEY.id}": KEY.key})
    assert [put(edge, body).status_code for body in (b"first", b"later")] == [200, 200]
    assert edge("GET", signed("GET")).content == b"later"


def test_of_many_uploads_at_once_one_is_stored(edge: Running) -> None:
    async def all_at_once() -> list[httpx.Response]:
        sent = [edge.send("PUT", signed("PUT", most_bytes=10), content=bytes([number])) for number in range(16)]
        return await asyncio.gather(*sent)

    replies = asyncio.run(all_at_once())
    assert sorted(reply.status_code for reply in replies) == [200] + [412] * 15
    (winner,) = (number for number, reply in enumerate(replies) if reply.status_code == 200)
    assert edge("GET", signed("GET")).content == bytes([winner])


def test_a_version_is_fetched_by_its_id(edge: Running) -> None:
    edge.keys({f"key-{KEY.id}": KEY.key})
    put(edge, b"first")
    events = [json.loads(file.read_text()) for file in (edge.files.folder.parent / "events").iterdir()]
    (version,) = (event["detail"]["object"]["version-id"] for event in events)
    put(edge, b"later")
    assert edge("GET", signed("GET", version=version)).content == b"first"
    assert refusal(edge("GET", signed("GET", version="0" * 32))) == DENIED


def test_a_missing_object_is_403_as_without_permission_to_list(edge: Running) -> None:
    assert refusal(edge("GET", signed("GET"))) == DENIED
    assert edge("HEAD", signed("GET")).status_code == 403


@pytest.mark.parametrize("method", ["DELETE", "POST", "OPTIONS", "PATCH", "GET"])
def test_nothing_else_reaches_the_bucket(edge: Running, method: str) -> None:
    put(edge)
    for url in (signed("PUT", most_bytes=100), f"https://edge.example.com{PATH}", "https://edge.example.com/"):
        assert refusal(edge(method, url)) == (404, "no_such_address")
    assert edge("GET", signed("GET")).content == b"body"


def test_sizes_are_bound(edge: Running) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"body"

    url = signed("PUT", most_bytes=3)
    assert refusal(edge("PUT", url, content=b"body")) == (413, "too_large")
    assert refusal(edge("PUT", url, content=b"")) == (413, "too_large")
    assert refusal(edge("PUT", url, content=chunks())) == (411, "length_required")


def test_the_limits_of_cloudfront(edge: Running) -> None:
    long = signed("GET") + "&x=" + "y" * 8192
    assert edge("GET", long).status_code == 413
    assert edge("GET", signed("GET"), headers={"x-large": "y" * 20_480}).status_code == 413
    assert edge("GET", signed("GET"), content=b"body").status_code == 403


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("request.method = 'DELETE';", 502),
        ("request.headers.host = { value: 'other' };", 502),
        ("delete request.headers.host;", 502),
        ("request.headers['X-Upper'] = { value: '1' };", 502),
        ("request.headers['x-amz-cf-id'] = { value: '1' };", 502),
        ("request.headers.expect = { value: '1' };", 502),
        ("request.headers.number = { value: 1 };", 502),
        ("request.uri = 'no-slash';", 502),
        ("throw new Error('broken');", 503),
    ],
)
def test_what_a_function_must_not_change_is_an_error(tmp_path: Path, option: SetOption, code: str, status: int) -> None:
    option("edge_url", "https://edge.example.com")
    request = f"function handler(event) {{ const request = event.request; {code} return request; }}"
    running = Running(tmp_path, EdgeCode(request, "function handler(event) { return event.response; }"))
    assert running("GET", signed("GET")).status_code == status
    running.close()


def test_an_upload_that_breaks_off_stores_nothing(edge: Running) -> None:
    async def run() -> None:
        messages: list[Message] = [
            {"type": "http.request", "body": b"half", "more_body": True},
            {"type": "http.disconnect"},
        ]
        sent: list[Message] = []

        async def receive() -> Message:
            return messages.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        url = httpx.URL(signed("PUT", most_bytes=100))
        scope = {
            "type": "http",
            "method": "PUT",
            "path": url.path,
            "raw_path": url.path.encode(),
            "query_string": url.query,
            "headers": [(b"host", b"edge.example.com"), (b"content-length", b"10")],
            "http_version": "1.1",
            "scheme": "https",
            "root_path": "",
            "client": ("127.0.0.1", 50000),
        }
        with pytest.raises(ClientDisconnect):
            await edge.app(scope, receive, send)

    asyncio.run(run())
    assert refusal(edge("GET", signed("GET"))) == DENIED


# States ------------------------------------------------------------------------------------------


def test_needs_sha256_refuses_uploads_without_the_flag(edge: Running) -> None:
    edge.states("needs-sha256")
    assert refusal(put(edge)) == DENIED
    edge.keys({f"key-{KEY.id}": f"{KEY.key} once unsigned"})
    assert put(edge).status_code == 200


def test_meta_unsigned_refuses_uploads_with_metadata(edge: Running) -> None:
    edge.states("meta-unsigned")
    assert refusal(put(edge, tag=TAG)) == DENIED
    assert put(edge).status_code == 200


def test_meta_hidden_loses_the_tag(edge: Running) -> None:
    put(edge, tag=TAG)
    edge.states("meta-hidden")
    assert "x-artifact-tag" not in edge("GET", signed("GET")).headers


def test_no_content_length_refuses_every_upload(edge: Running) -> None:
    edge.states("no-content-length")
    assert refusal(put(edge)) == (411, "length_required")


def test_once_dropped_takes_a_second_upload(edge: Running) -> None:
    edge.states("once-dropped")
    assert [put(edge, body).status_code for body in (b"first", b"later")] == [200, 200]


def test_errors_cached_repeats_an_error_after_the_upload(edge: Running) -> None:
    edge.states("errors-cached")
    assert refusal(edge("GET", signed("GET"))) == DENIED
    assert put(edge).status_code == 200
    assert refusal(edge("GET", signed("GET"))) == DENIED
    edge.states()
    assert edge("GET", signed("GET")).content == b"body"


def test_slow_store_shows_a_new_key_later(edge: Running) -> None:
    def as_of(age_s: float) -> None:
        os.utime(edge.files.keys, (time() - age_s, time() - age_s))

    edge.states("slow-store=60")
    old, new = f"{KEY.key} once", f"{'f' * 64} once"
    edge.keys({f"key-{KEY.id}": old, "key-new": new})
    store = edge.app._store
    assert (store.get(f"key-{KEY.id}"), store.get("key-new")) == (old, None)
    store._changed_at.clear()
    as_of(61)
    assert store.get("key-new") == new
    edge.keys({"key-new": new})
    assert store.get(f"key-{KEY.id}") == old
    store._changed_at.clear()
    as_of(61)
    assert store.get(f"key-{KEY.id}") is None


def test_an_unknown_state_is_an_error(edge: Running) -> None:
    edge.states("grumpy")
    assert edge("GET", signed("GET")).status_code == 502


# Files ------------------------------------------------------------------------------------------


def test_the_first_start_switches_the_edge_on(tmp_path: Path) -> None:
    files = EdgeFiles(tmp_path / "edge")
    files.prepare()
    switch = json.loads(files.switch.read_text())
    assert json.loads(files.keys.read_text()) == {f"key-{switch['id']}": f"{switch['key']} once"}
    assert {oct(file.stat().st_mode)[-3:] for file in files.folder.iterdir()} == {"600"}


def test_a_later_start_leaves_it_as_it_is(tmp_path: Path) -> None:
    files = EdgeFiles(tmp_path / "edge")
    files.prepare()
    files.switch.unlink()
    files.prepare()
    assert not files.switch.exists()
