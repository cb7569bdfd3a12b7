"""turbo's remote cache API on the sidecar."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import httpx
import pytest
from larder_proxy.listener import TEAM_OF_THE_TOKEN
from larder_proxy.upstream import INLINE

from .deployment import KEY, Deployment, Running, sidecar, variables

HASH = "08e4547d5347b63f"
ARTIFACT = f"/v8/artifacts/{HASH}?slug=acme"
DESCRIBED = {
    "x-artifact-duration": "1234",
    "x-artifact-tag": "c2lnbmVk",
    "x-artifact-sha": "a" * 40,
    "x-artifact-dirty-hash": "b" * 16,
    "x-artifact-client-ci": "GITHUB_ACTIONS",
}


@pytest.mark.parametrize("size", [100, 200_000, INLINE])
def test_an_artifact_keeps_its_hash_and_its_headers(
    turbo: httpx.Client, running: Running, deployment: Deployment, size: int
) -> None:
    """So that builds with and without the sidecar share artifacts."""
    assert turbo.get(ARTIFACT).status_code == 404
    assert turbo.put(ARTIFACT, content=b"x" * size, headers=DESCRIBED).status_code == 202
    running.uploaded()
    assert deployment.artifacts == {HASH: b"x" * size}
    assert deployment.headers[HASH] == DESCRIBED
    (upload,) = deployment.sent("PUT")
    assert upload.query == {"slug": ["acme"]}
    assert upload.headers["authorization"] == f"Bearer {KEY}"
    found = turbo.get(ARTIFACT)
    assert found.content == b"x" * size
    assert DESCRIBED.items() <= dict(found.headers).items()


@pytest.mark.parametrize("has_edge", [False, True])
def test_a_large_signed_artifact_keeps_its_signature_through_the_edge(
    turbo: httpx.Client, running: Running, deployment: Deployment, has_edge: bool
) -> None:
    """S3 alone drops it, as for a turbo that uploads there."""
    deployment.has_edge = has_edge
    content = b"z" * (INLINE + 1)
    assert turbo.put(ARTIFACT, content=content, headers=DESCRIBED).status_code == 202
    running.uploaded()
    found = turbo.get(ARTIFACT)
    assert found.content == content
    assert found.headers.get("x-artifact-tag") == (DESCRIBED["x-artifact-tag"] if has_edge else None)
    (upload,) = deployment.sent("PUT")
    assert upload.path == f"/storage/{HASH}"
    assert upload.headers["authorization"] is None


def test_turbo_before_2_2_sends_chunks(turbo: httpx.Client, running: Running, deployment: Deployment) -> None:
    blocks = [b"one", b"two" * 100_000, b"three"]
    assert turbo.put(ARTIFACT, content=iter(blocks)).status_code == 202
    running.uploaded()
    assert deployment.artifacts == {HASH: b"".join(blocks)}
    assert turbo.get("/v8/artifacts/status").status_code == 200


def test_preflight_is_answered_here(turbo: httpx.Client, deployment: Deployment) -> None:
    asked = {"access-control-request-method": "PUT"}
    reply = turbo.options(ARTIFACT, headers=asked)
    assert reply.status_code == 200
    assert "authorization" in reply.headers["access-control-allow-headers"].lower()
    assert "location" not in reply.headers
    assert deployment.asked == []


def test_head_and_the_query_of_a_dry_run_are_no_lookups(
    turbo: httpx.Client, running: Running, deployment: Deployment
) -> None:
    deployment.artifacts[HASH] = b"content"
    reply = turbo.head(ARTIFACT)
    assert (reply.status_code, reply.headers["content-length"]) == (200, "7")
    assert turbo.head(f"/v8/artifacts/{'0' * 16}").status_code == 404
    asked = turbo.post("/v8/artifacts?slug=acme", json={"hashes": [HASH, "0" * 16]})
    assert asked.json() == {HASH: {"size": 7, "taskDurationMs": 7}, "0" * 16: None}
    assert deployment.sent("GET") == []
    counts = running.sidecar.cache.counts
    assert (counts.hits, counts.misses) == (0, 0)


def test_the_status_is_that_of_larder(turbo: httpx.Client) -> None:
    assert turbo.get("/v8/artifacts/status?slug=acme").json() == {"status": "over_limit"}


@pytest.mark.parametrize("is_failing", [False, True])
def test_the_status_is_asked_for_as_soon_as_turbo_starts(
    turbo: httpx.Client, running: Running, deployment: Deployment, tmp_path: Path, is_failing: bool
) -> None:
    """turbo asks for no artifact until it has it."""
    program = tmp_path / "turbo"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    if is_failing:
        deployment.failing["GET"] = [(500, "internal")] * 2
    environment = variables(deployment, tmp_path)
    running.sidecar.expect(["make", "build"], environment, str(tmp_path))
    running.sidecar.expect([str(program), "run", "build"], environment, str(tmp_path))
    running.until(lambda: len(deployment.sent("GET")) == 1 + is_failing)
    status = "enabled" if is_failing else "over_limit"
    assert turbo.get("/v8/artifacts/status?slug=acme").json() == {"status": status}
    assert len(deployment.sent("GET")) == 1 + is_failing
    # The next one is of another moment.
    assert turbo.get("/v8/artifacts/status?slug=acme").json() == {"status": "over_limit"}
    assert len(deployment.sent("GET")) == 2 + is_failing


def test_the_status_is_asked_for_once_if_turbo_is_first(
    turbo: httpx.Client, running: Running, deployment: Deployment, tmp_path: Path
) -> None:
    program = tmp_path / "turbo"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    turbo.get("/v8/artifacts/status?slug=acme")
    running.sidecar.expect([str(program), "run", "build"], variables(deployment, tmp_path), str(tmp_path))
    time.sleep(0.2)
    assert len(deployment.sent("GET")) == 1


def test_events_of_turbo_are_forwarded_and_not_counted_twice(deployment: Deployment, tmp_path: Path) -> None:
    event = {"sessionId": "s", "source": "REMOTE", "event": "HIT", "hash": HASH, "duration": 9}
    deployment.artifacts[HASH] = b"content"
    with sidecar(deployment, tmp_path) as one:
        headers = {"Authorization": f"Bearer {one.sidecar.listener.token}"}
        url = one.sidecar.listener.url
        assert httpx.get(f"{url}{ARTIFACT}", headers=headers, trust_env=False).content == b"content"
        ci = {**headers, "x-artifact-client-ci": "VENDOR"}
        events = f"{url}/v8/artifacts/events?slug=acme"
        assert httpx.post(events, headers=ci, json=[event], trust_env=False).status_code == 200
    assert deployment.events() == [event]
    assert deployment.sent("POST")[0].headers["x-artifact-client-ci"] == "VENDOR"


def test_another_team_of_turbo_is_asked(turbo: httpx.Client, deployment: Deployment) -> None:
    """`turbo run build --team=other`."""
    turbo.get(f"/v8/artifacts/{HASH}?slug=other")
    turbo.get(f"/v8/artifacts/{HASH}?slug=acme")
    teams = [one.query["slug"] for one in deployment.sent("GET")]
    assert teams == [["other"], ["acme"]]


def test_without_a_team_the_token_decides(deployment: Deployment, tmp_path: Path) -> None:
    with sidecar(deployment, tmp_path, TURBO_TEAM="") as one:
        headers = {"Authorization": f"Bearer {one.sidecar.listener.token}"}
        url = f"{one.sidecar.listener.url}/v8/artifacts/{HASH}?slug={TEAM_OF_THE_TOKEN}"
        httpx.get(url, headers=headers, trust_env=False)
    assert [one.query for one in deployment.sent("GET")] == [{}]


def test_larder_why_works_within_a_build(turbo: httpx.Client, deployment: Deployment) -> None:
    assert turbo.post("/v1/causes?slug=acme", json={}).status_code == 200
    assert turbo.post("/v1/causes", content=gzip.compress(b"{}")).status_code == 200
    kinds = [one.headers["content-type"] for one in deployment.asked]
    assert kinds == ["application/json", "application/octet-stream"]
    deployment.asked.clear()
    assert turbo.get("/v1/runs?slug=acme&limit=1").status_code == 404
    assert [one.path for one in deployment.asked] == ["/v1/runs"]


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_an_error_of_larder_is_an_empty_cache(
    turbo: httpx.Client, running: Running, deployment: Deployment, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """turbo pauses its cache for 30 seconds after three errors."""
    methods = ("GET", "HEAD", "PUT", "POST")
    deployment.failing = {method: [(status, "forbidden")] * 100 for method in methods}
    assert turbo.get("/v8/artifacts/status").json() == {"status": "enabled"}
    assert turbo.get(ARTIFACT).status_code == 404
    assert turbo.head(ARTIFACT).status_code == 404
    assert turbo.post("/v8/artifacts", json={"hashes": [HASH]}).json() == {HASH: None}
    assert turbo.post("/v8/artifacts/events", json=[]).status_code == 200
    assert turbo.put(ARTIFACT, content=b"x").status_code == 202
    running.uploaded()
    assert deployment.artifacts == {}
    assert len(running.lines) == (2 if status == 403 else 1)
    assert turbo.get("/larder/status").json()["said"] == running.lines
    monkeypatch.setattr("larder_proxy.upstream._RECENT_SECONDS", 0)
    assert turbo.get("/larder/status").json()["said"] == []
