"""What the sidecar answers build tools, and what it asks of Larder."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import re
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest
from larder_proxy.clients import CLIENTS, TOOLS, find_entry
from larder_proxy.memory import ANSWERED_SECONDS, Memory, Upload
from larder_proxy.spool import Body, NoRoom, Spool
from larder_proxy.upstream import _REFUSED_SECONDS, INLINE, _message

from larder.usage import events

from .deployment import DIRECT, KEY, Deployment, Running, sidecar

FORMATS = "layers/larder/src/larder/web/html/console/format.js"
SHA = hashlib.sha256(b"content").hexdigest()
NX = "/v1/cache/15803998449929193174"
ENTRIES = {
    "nx": (NX, "nx-15803998449929193174", 200),
    "gradle": (f"/gradle/{'a' * 32}", f"gradle-{'a' * 32}", 200),
    "sccache": (f"/sccache/a/b/c/{'abc' + 'd' * 61}", f"sccache-{'abc' + 'd' * 61}", 201),
    "ccache": ("/ccache/ab/cdef0123", "ccache-abcdef0123", 200),
    "moon-ac": (f"/moon/main/ac/{SHA}", f"moon-ac-{SHA}", 200),
    "moon-cas": (f"/moon/main/cas/{SHA}", f"moon-cas-{SHA}", 200),
    "rush": ("/rush/my-project_build-abc", "rush-my-project_build-abc", 200),
    "bazel-ac": (f"/bazel/ac/{SHA}", f"bazel-ac-{SHA}", 200),
    "bazel-cas": (f"/bazel/cas/{SHA}", f"bazel-cas-{SHA}", 200),
    "plain": ("/plain/metro/key-1", "metro-key-1", 200),
}
"""A path of each tool, the hash in Larder, and the status of an upload."""

TIMED = ("gradle", "sccache", "moon-ac")
"""The tools whose requests say how long a task took."""


@pytest.fixture
def tool(running: Running) -> Iterator[httpx.Client]:
    """A build tool that knows the sidecar's token."""
    headers = {"Authorization": f"Bearer {running.sidecar.listener.token}"}
    with httpx.Client(base_url=running.sidecar.listener.url, headers=headers, trust_env=False) as client:
        yield client


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_is_missed_stored_and_found(
    name: str, tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    path, hash, stored = ENTRIES[name]
    assert tool.get(path).status_code == 404
    assert tool.put(path, content=b"content").status_code == stored
    running.uploaded()
    assert deployment.artifacts == {hash: b"content"}
    found = tool.get(path)
    assert (found.status_code, found.content) == (200, b"content")
    (upload,) = deployment.sent("PUT")
    assert upload.query == {"slug": ["acme"]}
    assert upload.headers["authorization"] == f"Bearer {KEY}"


def test_every_tool_has_a_path_here() -> None:
    assert {name.partition("-")[0] for name in ENTRIES} == {*TOOLS, "plain"}


def test_usage_and_the_console_name_the_same_tools(pytestconfig: pytest.Config) -> None:
    assert set(TOOLS) == events.TOOLS
    script = (pytestconfig.rootpath / FORMATS).read_text()
    (line,) = re.findall(r"^const TOOLS = (.+);$", script, re.MULTILINE)
    assert json.loads(line) == TOOLS


def test_a_key_that_larder_refuses_is_stored_by_its_digest() -> None:
    key = "a.b/../c" + "d" * 200
    entry = find_entry(f"/plain/metro/{key.replace('/', '%2F')}")
    assert entry is not None
    assert entry.hash.startswith("metro-x")
    assert find_entry("/v1/cache/../../etc/passwd") is None
    for path in ("/v1/cache/v1-a.b", "/gradle/A.b", "/ccache/ab/c.d", "/sccache/a.b", "/rush/a!"):
        entry = find_entry(path)
        assert entry is not None, path
        assert re.fullmatch(r"[a-z]+-(x[0-9a-f]{64}|[0-9A-Za-z_-]+)", entry.hash), path
    assert find_entry("/plain/Metro/x") is None


# Who is answered ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic !"}, 401),
        ({"Authorization": f"Bearer {KEY}"}, 401),
        ({"Authorization": "{token}", "Origin": "https://evil.example"}, 403),
        ({"Authorization": "{token}", "Host": "evil.example"}, 403),
        ({"Authorization": "{token}", "Host": "127.0.0.1:1"}, 403),
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "PROPFIND", "MKCOL", "POST"])
def test_pages_and_other_users_get_nothing_and_nothing_is_forwarded(
    running: Running, deployment: Deployment, headers: dict[str, str], status: int, method: str
) -> None:
    token = f"Bearer {running.sidecar.listener.token}"
    sent = {name: token if value == "{token}" else value for name, value in headers.items()}
    reply = httpx.request(method, f"{running.sidecar.listener.url}{NX}", headers=sent, content=b"x", trust_env=False)
    assert reply.status_code == status
    assert reply.headers["content-type"].startswith("text/plain")
    assert deployment.asked == []


def test_basic_authorization_has_any_user(running: Running) -> None:
    auth = ("larder", running.sidecar.listener.token)
    reply = httpx.get(f"{running.sidecar.listener.url}{NX}", auth=auth, trust_env=False)
    assert reply.status_code == 404


# Lookups ------------------------------------------------------------------------------------------


def test_a_miss_is_remembered_until_the_entry_is_stored(
    tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    """Nx 22 asks for each waiting task again and again."""
    assert tool.get(NX).status_code == 404
    entry = find_entry(NX)
    assert entry is not None
    until = running.sidecar.cache.memory._entries[entry.key].until
    assert until < time.monotonic() + ANSWERED_SECONDS
    for _ in range(50):
        assert tool.get(NX).status_code == 404
    # A tool that never pauses asks Larder once a minute.
    assert running.sidecar.cache.memory._entries[entry.key].until == until
    assert len(deployment.sent("GET")) == 1
    tool.put(NX, content=b"x")
    running.uploaded()
    assert tool.get(NX).status_code == 200
    counts = running.sidecar.cache.counts
    # A hit counts when all of it is sent.
    running.until(lambda: (counts.hits, counts.misses) == (1, 1))


def test_a_large_entry_comes_from_storage_without_the_key(tool: httpx.Client, deployment: Deployment) -> None:
    content = bytes(range(256)) * 4_000
    deployment.artifacts["nx-15803998449929193174"] = content
    assert tool.get(NX).content == content
    (direct,) = deployment.sent("GET", "/storage/")
    assert direct.headers["authorization"] is None


@pytest.mark.parametrize("path", [NX, f"/gradle/{'a' * 32}"])
def test_a_cut_download_goes_on_where_it_was_cut(tool: httpx.Client, deployment: Deployment, path: str) -> None:
    entry = find_entry(path)
    assert entry is not None
    content = bytes(range(256)) * 4_000
    deployment.artifacts[entry.hash] = content
    deployment.cuts = 3
    assert tool.get(path).content == content


@pytest.mark.parametrize("size", [100, DIRECT + 1], ids=["from a function", "from storage"])
def test_a_download_that_stays_cut_is_a_miss(
    tool: httpx.Client, running: Running, deployment: Deployment, size: int
) -> None:
    deployment.artifacts["nx-15803998449929193174"] = b"x" * size
    deployment.cuts = 10
    assert tool.get(NX).status_code == 404
    assert running.sidecar.cache.counts.hits == 0
    assert running.lines == ["a download was cut; its task runs again"]


def test_a_large_entry_streams_to_tools_that_wait_for_the_first_byte(
    tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    path = f"/gradle/{'a' * 32}"
    content = b"y" * 20_000_000
    deployment.artifacts[f"gradle-{'a' * 32}"] = content
    assert tool.get(path).content == content
    deployment.cuts = 10
    with pytest.raises(httpx.RemoteProtocolError):
        tool.get(path)
    assert (running.sidecar.cache.counts.hits, running.sidecar.cache.counts.misses) == (1, 1)


def test_blobs_have_the_bytes_of_their_name(tool: httpx.Client, running: Running, deployment: Deployment) -> None:
    path = f"/bazel/cas/{SHA}"
    assert tool.put(path, content=b"other").status_code == 400
    deployment.artifacts[f"bazel-cas-{SHA}"] = b"damaged"
    assert tool.get(path).status_code == 404
    assert tool.put(path, content=b"content").status_code == 200
    running.uploaded()
    assert tool.get(path).content == b"content"


def test_head_has_the_size(tool: httpx.Client, deployment: Deployment) -> None:
    deployment.artifacts[f"bazel-ac-{SHA}"] = b"content"
    reply = tool.head(f"/bazel/ac/{SHA}")
    assert (reply.status_code, reply.headers["content-length"]) == (200, "7")


# Uploads ------------------------------------------------------------------------------------------


def test_a_large_entry_goes_to_storage_without_the_key(
    tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    content = b"z" * (INLINE + 1)
    assert tool.put(NX, content=content).status_code == 200
    running.uploaded()
    assert deployment.artifacts == {"nx-15803998449929193174": content}
    (offer,), (upload,) = deployment.sent("OPTIONS"), deployment.sent("PUT")
    assert offer.headers["access-control-request-method"] == "PUT"
    assert (upload.path, upload.headers["authorization"]) == ("/storage/nx-15803998449929193174", None)


def test_an_upload_is_repeated_from_the_spool(tool: httpx.Client, running: Running, deployment: Deployment) -> None:
    """No task waits for it, so it outlives more refusals than a download."""
    deployment.failing["PUT"] = [(503, "unavailable")] * 6
    tool.put(NX, content=b"content")
    running.uploaded()
    assert deployment.artifacts == {"nx-15803998449929193174": b"content"}


def test_uploads_over_connections_that_larder_has_closed_are_stored(
    tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    """As after minutes without a request. Ten requests at once need more connections than are kept."""
    deployment.idle_seconds = 0.2
    for first in (0, 10):
        for number in range(first, first + 10):
            assert tool.put(f"/v1/cache/{number}", content=b"x" * 100_000).status_code == 200
        running.uploaded()
        time.sleep(2 * deployment.idle_seconds)
    assert len(deployment.artifacts) == 20
    assert running.lines == []


def test_an_upload_in_chunks(tool: httpx.Client, running: Running, deployment: Deployment) -> None:
    tool.put(NX, content=iter([b"con", b"tent"]))
    running.uploaded()
    assert deployment.artifacts == {"nx-15803998449929193174": b"content"}


def test_the_time_of_a_task_is_that_from_its_miss_to_its_upload(
    tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    """Nx looks all tasks up first, so its times say nothing. A compile of ccache has two entries."""
    for path, _, _ in ENTRIES.values():
        tool.get(path)
        tool.put(path, content=b"content")
    running.uploaded()
    durations = {
        hash: deployment.headers[hash]["x-artifact-duration"]
        for hash in deployment.artifacts
        if "x-artifact-duration" in deployment.headers[hash]
    }
    assert durations.keys() == {ENTRIES[name][1] for name in TIMED}
    assert all(0 <= int(duration) < 10_000 for duration in durations.values())


@pytest.mark.parametrize("running", [10], indirect=True)
def test_an_upload_without_room_goes_through_while_the_tool_waits(
    tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    content = b"x" * (INLINE + 1)
    assert tool.put(NX, content=content).status_code == 200
    assert deployment.artifacts == {"nx-15803998449929193174": content}
    assert tool.get(f"/gradle/{'b' * 32}").status_code == 404
    assert tool.put(f"/gradle/{'b' * 32}", content=b"y" * 100_000).status_code == 200
    assert tool.get(f"/gradle/{'b' * 32}").content == b"y" * 100_000
    # Without a length, or with a digest, the bytes must be here before the first one is sent.
    assert tool.put("/v1/cache/2", content=iter([b"x" * 100_000])).status_code == 403
    assert tool.put(f"/bazel/cas/{SHA}", content=b"x" * 100_000).status_code == 200
    deployment.failing["PUT"] = [(413, "artifact_too_large")]
    assert tool.put("/v1/cache/3", content=b"x" * 100_000).status_code == 403
    assert tool.get(NX).status_code == 404, "a cut answer would break Nx"
    counts = running.sidecar.cache.counts
    assert (counts.stored, counts.stored_bytes) == (2, INLINE + 100_001)
    assert counts.not_stored == {"no room for more entries": 2, "artifact_too_large": 1}
    assert running.lines == [
        "no room for more entries: the build waits for uploads",
        "Larder refuses an upload (artifact_too_large)",
    ]


@pytest.mark.parametrize("running", [10], indirect=True)
def test_an_upload_without_room_does_not_pass_an_older_one_of_its_entry(
    tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    """The older one would replace it later."""
    deployment.failing["PUT"], deployment.retry_after = [(503, "x")], "2"
    tool.put("/gradle/ab", content=b"older")
    while not deployment.sent("PUT"):
        time.sleep(0.01)
    tool.put("/gradle/ab", content=b"newer" * 20_000)
    running.uploaded()
    assert deployment.artifacts == {"gradle-ab": b"older"}
    assert running.sidecar.cache.counts.not_stored == {"no room for more entries": 1}


def test_a_full_disk_is_no_room(
    tool: httpx.Client, running: Running, deployment: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    assert tool.put("/gradle/ab", content=b"x" * 100_000).status_code == 200
    assert tool.get("/gradle/ab").content == b"x" * 100_000
    assert len(running.lines) == 1
    assert running.lines[0].startswith("no room in TMPDIR (")


def test_busy_answers_to_uploads_without_room_do_not_turn_the_cache_off(
    tool: httpx.Client, deployment: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """These uploads have no second try."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    deployment.failing["PUT"] = [(503, "unavailable")] * 5
    for _ in range(6):
        tool.put("/gradle/ab", content=b"x" * 100_000)
    assert tool.get("/gradle/ab").content == b"x" * 100_000


@pytest.mark.parametrize("sizes", [(30_000, 70_000), (100_000,), (30_000, 100_000, 100_000)])
@pytest.mark.parametrize("written", range(0, 250_000, 50_000))
def test_a_body_for_which_the_disk_has_no_room_is_whole(
    sizes: tuple[int, ...], written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much of it was written before the disk was full."""

    class Disk(io.BytesIO):
        def write(self, data: Any) -> int:
            room = written - len(self.getvalue())
            if room <= 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(bytes(data[:room]))

    monkeypatch.setattr("larder_proxy.spool._new_file", Disk)
    monkeypatch.setattr("larder_proxy.spool.HELD_BACK_SECONDS", 0)
    blocks = [bytes([number]) * size for number, size in enumerate(sizes)]
    try:
        found = Spool().take(blocks, sum(sizes)).blocks()
    except NoRoom as full:
        found = full.blocks
    assert b"".join(found) == b"".join(blocks)


def test_an_entry_is_found_while_it_is_uploading(tool: httpx.Client, running: Running, deployment: Deployment) -> None:
    deployment.failing["PUT"], deployment.retry_after = [(503, "x")] * 3, "1"
    for content in (b"first", b"second" * 100_000):
        assert tool.get("/gradle/ab").content in (b"", b"first")
        tool.put("/gradle/ab", content=content)
        assert tool.get("/gradle/ab").content == content
        assert tool.head("/gradle/ab").headers["content-length"] == str(len(content))
        assert running.sidecar.cache.is_uploading
    assert "gradle-ab" not in deployment.artifacts
    running.uploaded()
    # The one that was replaced meanwhile never comes last.
    assert deployment.artifacts["gradle-ab"] == content
    assert tool.get("/gradle/ab").content == content


def test_a_miss_that_was_on_its_way_as_the_entry_was_stored_is_not_remembered(
    tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    cache, entry = running.sidecar.cache, find_entry("/gradle/ab")
    assert entry is not None
    asked_at = time.monotonic()
    tool.put("/gradle/ab", content=b"x")
    running.uploaded()
    cache.miss(entry, asked_at)
    assert tool.get("/gradle/ab").content == b"x"


def test_what_is_known_of_many_entries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build of a large repository asks for more entries than anyone remembers."""
    monkeypatch.setattr("larder_proxy.memory._MOST", 1_000)
    memory, upload = Memory(), Upload(Body(b"x"), {})
    memory.upload(("sent", ""), upload)
    for number in range(20_000):
        memory.miss((f"{number}", ""), time.monotonic())
    assert len(memory._entries) <= 1_000
    assert memory.uploading(("sent", "")) is upload
    assert memory.is_missing(("19999", ""))


def test_an_empty_blob_needs_no_storage(tool: httpx.Client, running: Running, deployment: Deployment) -> None:
    """Of a task with an empty file. Larder stores nothing of no bytes."""
    path = f"/moon/main/cas/{hashlib.sha256(b'').hexdigest()}"
    assert tool.put(path, content=b"").status_code == 200
    found = tool.get(path)
    assert (found.status_code, found.content) == (200, b"")
    assert tool.head(path).status_code == 200
    assert tool.put("/plain/metro/a", content=b"").status_code == 200
    running.uploaded()
    assert deployment.asked == []
    assert running.sidecar.cache.counts.not_stored == {"empty": 1}


def check_large_bodies_are_read(tool: httpx.Client, deployment: Deployment) -> None:
    """Nx ends a build if it cannot send all of a body, whatever the answer is."""
    for number in range(1, 3):
        reply = tool.put(f"/v1/cache/{number}", content=b"x" * 40_000_000)
        assert (reply.status_code, reply.headers.get("connection")) == (403, None)
    assert deployment.artifacts == {}


def test_a_large_body_is_read_to_its_end_if_the_key_only_reads(
    tool: httpx.Client, running: Running, deployment: Deployment
) -> None:
    deployment.failing["PUT"] = [(403, "missing_permission")]
    tool.put("/v1/cache/0", content=b"x")
    running.uploaded()
    check_large_bodies_are_read(tool, deployment)


def test_nothing_is_left_in_the_spool(deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with sidecar(deployment, tmp_path) as one:
        headers = {"Authorization": f"Bearer {one.sidecar.listener.token}"}
        url = f"{one.sidecar.listener.url}{NX}"
        httpx.put(url, headers=headers, content=b"x" * 5_000_000, trust_env=False)
        assert [*temporary.iterdir()] == []
    assert [*temporary.iterdir()] == []


def test_the_room_of_a_body_is_given_back() -> None:
    spool = Spool(limit=10)
    for _ in range(3):
        spool.take([b"0123456789"], 10).close()


def test_a_download_that_outlasts_the_spool_makes_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("larder_proxy.spool._new_file", pytest.fail)
    spool = Spool()
    spool.close()
    with pytest.raises(ValueError, match="closed file"):
        spool.take([b"x" * 100_000], 100_000)


@pytest.mark.parametrize("running", [300_000], indirect=True)
def test_a_late_answer_gives_its_room_back(
    tool: httpx.Client, running: Running, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ccache,) = [client for client in CLIENTS if client.name == "ccache"]
    monkeypatch.setattr(ccache, "seconds", 0)
    deployment.artifacts = {"ccache-abcdef0123": b"x" * 200_000, "gradle-ab": b"x" * 200_000}
    assert tool.get("/ccache/ab/cdef0123").status_code == 404
    assert tool.get("/gradle/ab").status_code == 200
    assert running.lines == []


# What goes wrong ----------------------------------------------------------------------------------

ANSWERS = [(500, "internal"), (503, "x"), (429, "too_many_requests"), (403, "forbidden")]


@pytest.mark.parametrize(("status", "code"), ANSWERS)
@pytest.mark.parametrize("path", [NX, f"/gradle/{'a' * 32}", "/ccache/ab/cdef0123"])
def test_an_error_of_larder_is_a_miss_and_a_lost_upload(
    tool: httpx.Client, running: Running, deployment: Deployment, path: str, status: int, code: str
) -> None:
    deployment.failing = {method: [(status, code)] * 10 for method in ("GET", "PUT")}
    assert tool.get(path).status_code == 404
    assert tool.put(path, content=b"x").status_code == 200
    running.uploaded()
    assert deployment.artifacts == {}


def test_larder_is_left_alone_while_it_fails(tool: httpx.Client, running: Running, deployment: Deployment) -> None:
    deployment.failing["GET"] = [(500, "internal")] * 100
    for number in range(20):
        assert tool.get(f"/v1/cache/{number}").status_code == 404
    # Three lookups of two tries each.
    assert len(deployment.sent("GET")) == 6
    assert running.lines == ["Larder does not answer (status 500); the build goes on without it"]


def test_a_wrong_key_is_one_line_and_one_request(tool: httpx.Client, running: Running, deployment: Deployment) -> None:
    deployment.tokens.clear()
    for number in range(5):
        assert tool.get(f"/v1/cache/{number}").status_code == 404
    assert tool.put(NX, content=b"x").status_code == 403
    assert running.lines == ["no cache: Larder refuses the token (401)"]
    assert len(deployment.asked) == 1
    assert running.sidecar.cache.counts.not_stored == {"Larder refuses the token (401)": 1}
    # A minute later, it is tried again.
    deployment.tokens.add(KEY)
    deployment.artifacts["nx-7"] = b"x"
    running.sidecar.cache._upstream._off_until -= _REFUSED_SECONDS
    assert tool.get("/v1/cache/7").content == b"x"


@pytest.mark.parametrize("code", ["read_only", "missing_permission"])
def test_a_key_that_only_reads_uploads_once_and_still_reads(
    tool: httpx.Client, running: Running, deployment: Deployment, code: str
) -> None:
    deployment.failing["PUT"] = [(403, code)]
    deployment.artifacts["gradle-aa"] = b"there"
    assert tool.put(NX, content=b"x").status_code == 200
    running.uploaded()
    # Known from now on. Nx takes 403 for an answer, and Gradle would turn its cache off.
    assert tool.put("/v1/cache/2", content=b"x").status_code == 403
    assert tool.put("/gradle/ab", content=b"x").status_code == 200
    assert tool.put("/sccache/.sccache_check", content=b"x").status_code == 403
    assert tool.get("/gradle/aa").content == b"there"
    assert len(deployment.sent("PUT")) == 1
    assert running.lines == ["the token cannot store: nothing is uploaded"]


def test_a_refused_upload_does_not_stop_others(tool: httpx.Client, running: Running, deployment: Deployment) -> None:
    deployment.failing["PUT"] = [(413, "artifact_too_large")]
    tool.put("/v1/cache/1", content=b"x")
    running.uploaded()
    tool.put("/v1/cache/2", content=b"x")
    running.uploaded()
    assert deployment.artifacts == {"nx-2": b"x"}
    assert running.lines == ["Larder refuses an upload (artifact_too_large)"]


@pytest.mark.parametrize("size", [100, 5_000_000])
def test_a_damaged_entry_of_nx_is_a_miss(
    tool: httpx.Client, running: Running, deployment: Deployment, size: int
) -> None:
    """It would end the build."""
    hash, content = "nx-15803998449929193174", gzip.compress(os.urandom(size) * 2)
    deployment.artifacts[hash] = content
    assert tool.get(NX).content == content
    at = len(content) // 2
    for damaged in (content[:at] + b"damaged" + content[at + 7 :], content[:-1], content[:at]):
        deployment.artifacts[hash] = damaged
        assert tool.get(NX).status_code == 404
        assert tool.put(NX, content=b"another format").status_code == 200
        running.uploaded()
        assert tool.get(NX).content == b"another format"
    assert running.lines == ["a download is damaged; its task runs again"]


@pytest.mark.parametrize("status", [200, 404])
def test_another_site_is_no_cache(tool: httpx.Client, running: Running, deployment: Deployment, status: int) -> None:
    """Its page is not taken for an artifact."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("content-type", "text/html")
        handler.send_header("content-length", "4")
        handler.end_headers()
        handler.wfile.write(b"page")

    deployment.broken = answer
    assert tool.get(NX).status_code == 404
    tool.put(NX, content=b"x")
    running.uploaded()
    assert tool.put("/v1/cache/2", content=b"x").status_code == 403
    assert len(running.lines) == 1
    assert running.lines[0].startswith("no cache: TURBO_API is not the address of Larder")
    assert running.sidecar.cache.counts.stored == 0


def test_a_redirect_to_a_page_is_a_miss(tool: httpx.Client, running: Running, deployment: Deployment) -> None:
    """Networks send every request to their login page, until someone signs in there."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        is_page = handler.path == "/login"
        handler.send_response(200 if is_page else 302)
        if not is_page:
            handler.send_header("location", f"{deployment.url}/login")
        handler.send_header("content-type", "text/html; charset=utf-8")
        handler.send_header("content-length", "4")
        handler.end_headers()
        handler.wfile.write(b"page")

    deployment.broken = answer
    assert tool.get(f"/gradle/{'a' * 32}").status_code == 404
    assert running.lines == ["a download is a page of another site; its task runs again"]


def test_an_unreachable_larder_is_a_miss(tmp_path: Path) -> None:
    with sidecar(Deployment(url="http://127.0.0.1:1"), tmp_path) as one:
        headers = {"Authorization": f"Bearer {one.sidecar.listener.token}"}
        for number in range(5):
            url = f"{one.sidecar.listener.url}/v1/cache/{number}"
            assert httpx.get(url, headers=headers, trust_env=False).status_code == 404
        assert len(one.lines) == 1


def test_an_unknown_path_is_not_found(tool: httpx.Client, deployment: Deployment) -> None:
    assert tool.get("/v1/unknown").status_code == 404
    assert tool.put("/", content=b"x").status_code == 404
    # Nx ends the build for another status than this one, and Gradle turns its cache off.
    assert tool.put("/v1/cache/a/b", content=b"x").status_code == 403
    assert tool.put("/gradle/a/b", content=b"x").status_code == 200
    assert tool.post("/v1/cache/1", content=b"x").status_code == 404
    assert deployment.asked == []


def test_sccache_finds_folders(tool: httpx.Client, deployment: Deployment) -> None:
    assert tool.get("/sccache/.sccache_check").status_code == 404
    assert tool.put("/sccache/.sccache_check", content=b"x").status_code == 200
    folder = tool.request("PROPFIND", "/sccache/a/b/")
    assert (folder.status_code, "<D:collection/>" in folder.text) == (207, True)
    assert tool.request("MKCOL", "/sccache/a/b/").status_code == 201
    assert deployment.asked == []


# Figures ------------------------------------------------------------------------------------------


def test_events_count_hits_and_misses(deployment: Deployment, tmp_path: Path) -> None:
    with sidecar(deployment, tmp_path, GITHUB_ACTIONS="true") as one:
        headers = {"Authorization": f"Bearer {one.sidecar.listener.token}"}
        deployment.artifacts["nx-1"] = b"x"
        for number in range(100):
            url = f"{one.sidecar.listener.url}/v1/cache/{number}"
            httpx.get(url, headers=headers, trust_env=False)
    events = deployment.events()
    assert {(event["hash"], event["event"]) for event in events} == {
        (f"nx-{number}", "HIT" if number == 1 else "MISS") for number in range(100)
    }
    assert {event["source"] for event in events} == {"REMOTE"}
    assert deployment.sent("GET")[0].headers["x-artifact-client-ci"] == "GITHUB_ACTIONS"


def test_a_hit_reports_how_long_its_task_took_if_that_is_known(deployment: Deployment, tmp_path: Path) -> None:
    hashes = {name: hash for name, (_, hash, _) in ENTRIES.items()}
    with sidecar(deployment, tmp_path) as one:
        headers = {"Authorization": f"Bearer {one.sidecar.listener.token}"}
        with httpx.Client(headers=headers, trust_env=False) as tool:
            for path, hash, _ in ENTRIES.values():
                deployment.artifacts[hash] = b"content"
                deployment.headers[hash] = {"x-artifact-duration": "1500"}
                assert tool.get(f"{one.sidecar.listener.url}{path}").status_code == 200
        one.until(lambda: one.sidecar.cache.counts.hits == 8)
        moon, nx = hashes["moon-ac"], hashes["nx"]
        tasks = [{"hash": hash, "cache": {"status": "HIT"}} for hash in (moon, nx)]
        one.sidecar.report([{"client": "moon", "tasks": tasks}])
    durations = {event["hash"]: event["duration"] for event in deployment.events()}
    assert {hash for hash, ms in durations.items() if ms} == {hashes[name] for name in TIMED}
    assert set(durations.values()) == {0, 1_500}
    (sent,) = deployment.sent("POST", "/v1/runs")
    # A gateway reads JSON as text, which breaks compressed bytes.
    assert sent.headers["content-type"] == "application/octet-stream"
    run = json.loads(gzip.decompress(sent.body))
    assert [task["cache"] for task in run["tasks"]] == [{"status": "HIT", "timeSaved": 1_500}, {"status": "HIT"}]


@pytest.mark.parametrize(
    ("asked", "status", "is_cached", "is_used"),
    [
        (f"/v8/artifacts/{'1' * 16}", "MISS", True, True),
        ("/v8/artifacts/status", "MISS", True, False),
        ("/v8/artifacts/status", "HIT", True, True),
        ("/v8/artifacts/status", "MISS", False, True),
    ],
)
def test_a_build_that_asked_for_no_artifact_did_not_use_the_cache(
    deployment: Deployment, tmp_path: Path, asked: str, status: str, is_cached: bool, is_used: bool
) -> None:
    """Such as `turbo run build --cache=local:rw`, which asks for the status nevertheless."""
    task = {"hash": "1" * 16, "cache": {"status": status}, "execution": {"startTime": 1}}
    inputs = {"definitions": [{"cache": is_cached}], "tasks": [{"definition": 0}]}
    with sidecar(deployment, tmp_path) as one:
        headers = {"Authorization": f"Bearer {one.sidecar.listener.token}"}
        httpx.get(f"{one.sidecar.listener.url}{asked}", headers=headers, trust_env=False)
        # The script that CI runs knows no more than variables.
        one.sidecar.report([{"turboVersion": "2.11.11", "usedCache": False, "tasks": [task], "inputs": inputs}])
    (sent,) = deployment.sent("POST", "/v1/runs")
    assert json.loads(gzip.decompress(sent.body))["usedCache"] is is_used


def test_files_that_a_result_names_count_as_no_lookups(deployment: Deployment, tmp_path: Path) -> None:
    """A task of moon is one lookup, however many files it has."""
    with sidecar(deployment, tmp_path) as one:
        headers = {"Authorization": f"Bearer {one.sidecar.listener.token}"}
        deployment.artifacts[f"moon-ac-{SHA}"] = b"result"
        deployment.artifacts[f"moon-cas-{SHA}"] = b"content"
        with httpx.Client(headers=headers, trust_env=False) as tool:
            for path, status in ((f"ac/{SHA}", 200), (f"cas/{SHA}", 200), (f"cas/{'0' * 64}", 404)):
                assert tool.get(f"{one.sidecar.listener.url}/moon/main/{path}").status_code == status
        one.until(lambda: one.sidecar.cache.counts.hits == 1)
        assert one.sidecar.cache.counts.misses == 0
    assert [(event["hash"], event["event"]) for event in deployment.events()] == [(f"moon-ac-{SHA}", "HIT")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"error": {"code": "blocked", "message": "Ask Ada."}}', ": Ask Ada."),
        ('{"error": {"message": "a\\u001b[31m\\u202eb"}}', ": a [31m b"),
        ('{"error": {"code": "blocked"}}', ""),
        ("<html>", ""),
    ],
)
def test_the_line_about_a_refusal_has_what_larder_says(text: str, said: str) -> None:
    """Such as the operator's reason of a block. No control character of a server reaches the terminal."""
    assert _message(text) == said
