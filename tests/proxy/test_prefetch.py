"""What `larder run` fetches before turbo asks for it, and how many requests it sends at a time."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from larder_proxy.credentials import Target
from larder_proxy.lists import MOST_FILES, LastRun, dry_run, listed, may_have_own_artifacts
from larder_proxy.memory import AHEAD_SECONDS
from larder_proxy.places import FIRST, MOST, NEAR, Places
from larder_proxy.prefetch import HELD_BYTES, LARGEST
from larder_proxy.settings import Settings

from .deployment import Deployment, Running, sidecar

HASHES = [f"{number:016x}" for number in range(250)]
TARGET = Target("https://cache.example.com", team="acme")
FAR_SECONDS = 0.164


def get(turbo: httpx.Client, hash: str) -> httpx.Response:
    return turbo.get(f"/v8/artifacts/{hash}?slug=acme")


def lacks(running: Running, hash: str) -> bool:
    return running.sidecar.cache.memory.is_missing((hash, ""))


def test_what_is_there_is_fetched_once_and_what_is_not_is_known(
    turbo: httpx.Client, running: Running, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However busy the computer is.
    monkeypatch.setattr("larder_proxy.memory.AHEAD_SECONDS", 60)
    there, missing = HASHES[:100], HASHES[100:]
    for hash in there:
        deployment.artifacts[hash] = hash.encode() * 10
        deployment.headers[hash] = {"x-artifact-duration": "5"}
    running.sidecar.cache.prefetch.expect(HASHES)
    running.until(lambda: len(deployment.sent("GET")) >= len(there))
    running.until(lambda: lacks(running, missing[-1]))
    for hash in there:
        found = get(turbo, hash)
        assert found.content == hash.encode() * 10
        assert found.headers["x-artifact-duration"] == "5"
    for hash in missing:
        assert get(turbo, hash).status_code == 404
    asked = [one.path.rpartition("/")[2] for one in deployment.sent("GET")]
    assert len(asked) == len(set(asked))
    assert set(there) <= set(asked)
    # One for each hundred hashes, at most a hundred in one.
    queries = [json.loads(one.body)["hashes"] for one in deployment.sent("POST")]
    assert sorted(map(len, queries)) == [50, 100, 100]
    counts = running.sidecar.cache.counts
    running.until(lambda: (counts.hits, counts.misses) == (100, 150))


def test_a_list_is_used_only_if_turbo_asks_for_something_on_it(
    turbo: httpx.Client, running: Running, deployment: Deployment
) -> None:
    """On a computer, turbo has most of the last run in its own folder."""
    deployment.artifacts = dict.fromkeys(HASHES, b"x")
    running.sidecar.cache.prefetch.expect_if_asked(HASHES[:50])
    assert get(turbo, HASHES[60]).content == b"x"
    assert len(deployment.sent("GET")) == 1
    assert get(turbo, HASHES[0]).content == b"x"
    running.until(lambda: len(deployment.sent("GET")) == 51)


def test_what_turbo_never_asks_for_is_no_hit_and_is_bounded(deployment: Deployment, tmp_path: Path) -> None:
    # As much as may wait, and those on their way, which are the most if answers take long.
    size = 4_000_000
    most = HELD_BYTES // size + MOST
    hashes = [f"{number:016x}" for number in range(most + 10)]
    deployment.artifacts = dict.fromkeys(hashes, b"x" * size)
    with sidecar(deployment, tmp_path) as one:
        one.sidecar.cache.prefetch.expect(hashes)
        one.until(lambda: len(deployment.sent("GET", "/v8/artifacts/")) >= HELD_BYTES // size)
        counts = one.sidecar.cache.counts
    assert (counts.hits, counts.misses) == (0, 0)
    assert len(deployment.sent("GET", "/v8/artifacts/")) <= most
    assert deployment.events() == []


def test_a_large_artifact_waits_until_turbo_asks(turbo: httpx.Client, running: Running, deployment: Deployment) -> None:
    large = HASHES[-1]
    deployment.artifacts = dict.fromkeys(HASHES, b"x")
    deployment.artifacts[large] = b"y" * (LARGEST + 1)
    running.sidecar.cache.prefetch.expect(HASHES)
    running.until(lambda: len(deployment.sent("GET")) == len(HASHES) - 1)
    assert get(turbo, large).content == b"y" * (LARGEST + 1)


def test_an_upload_ends_a_known_miss(turbo: httpx.Client, running: Running, deployment: Deployment) -> None:
    running.sidecar.cache.prefetch.expect(HASHES[:1])
    running.until(lambda: lacks(running, HASHES[0]))
    turbo.put(f"/v8/artifacts/{HASHES[0]}?slug=acme", content=b"new")
    running.uploaded()
    assert get(turbo, HASHES[0]).content == b"new"


@pytest.mark.parametrize("running", [400_000], indirect=True)
def test_an_upload_gets_the_room_of_what_turbo_has_not_asked_for(
    turbo: httpx.Client, running: Running, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("larder_proxy.spool.HELD_BACK_SECONDS", 0)
    deployment.artifacts = {HASHES[0]: b"x" * 240_000}
    running.sidecar.cache.prefetch.expect(HASHES[:1])
    running.until(lambda: running.sidecar.cache.memory.held_bytes > 0)
    for hash in HASHES[:2]:
        turbo.put(f"/v8/artifacts/{hash}?slug=acme", content=b"y" * 240_000)
        running.uploaded()
    assert running.lines == []
    assert get(turbo, HASHES[0]).content == b"y" * 240_000


def test_what_another_job_stores_soon_afterwards_is_found(
    turbo: httpx.Client, running: Running, deployment: Deployment
) -> None:
    """Two jobs of one commit: this one has looked all of it up as the other one had stored nothing."""
    running.sidecar.cache.prefetch.expect(HASHES[:1])
    running.until(lambda: lacks(running, HASHES[0]))
    deployment.artifacts[HASHES[0]] = b"of the other job"
    time.sleep(AHEAD_SECONDS)
    assert get(turbo, HASHES[0]).content == b"of the other job"


def test_what_was_missing_a_moment_ago_is_asked_for_with_what_comes_next(
    turbo: httpx.Client, running: Running, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build of many misses costs a request for many tasks, not for each."""
    hashes = HASHES[:80]
    running.sidecar.cache.prefetch.expect(hashes)
    running.until(lambda: all(lacks(running, hash) for hash in hashes))
    time.sleep(AHEAD_SECONDS)
    deployment.asked.clear()
    # However busy the computer is.
    monkeypatch.setattr("larder_proxy.memory.AHEAD_SECONDS", 60)
    deployment.artifacts[HASHES[70]] = b"of the other job"
    found = [hash for hash in hashes if get(turbo, hash).status_code == 200]
    assert found == [HASHES[70]]
    # The first is asked for alone: a slow build asks for one at a time.
    asked = [one.path.rpartition("/")[2] for one in deployment.sent("GET")]
    assert asked == [HASHES[0], HASHES[70]]
    queries = [json.loads(one.body)["hashes"] for one in deployment.sent("POST", "/v8/artifacts")]
    assert sorted(hash for query in queries for hash in query) == hashes[1:]
    assert len(queries) <= 5


def test_what_another_job_stores_while_an_answer_is_late_is_found(
    turbo: httpx.Client, running: Running, deployment: Deployment
) -> None:
    late = threading.Event()

    def answer(to: Any) -> None:
        late.wait(10)
        to.answer(404)

    deployment.broken = answer
    running.sidecar.cache.prefetch.expect(HASHES[:1])
    running.until(lambda: bool(deployment.sent("GET", "/v8/artifacts/")))
    deployment.artifacts[HASHES[0]] = b"of the other job"
    time.sleep(AHEAD_SECONDS)
    deployment.broken = None
    late.set()
    assert get(turbo, HASHES[0]).content == b"of the other job"


def test_a_query_names_what_is_uploading(turbo: httpx.Client, running: Running, deployment: Deployment) -> None:
    deployment.failing["PUT"], deployment.retry_after = [(503, "x")] * 3, "1"
    turbo.put(f"/v8/artifacts/{HASHES[0]}?slug=acme", content=b"new")
    asked = turbo.post("/v8/artifacts?slug=acme", json={"hashes": HASHES[:2]})
    assert asked.json() == {HASHES[0]: {"size": 3, "taskDurationMs": 0}, HASHES[1]: None}


def test_a_refused_request_comes_again(turbo: httpx.Client, running: Running, deployment: Deployment) -> None:
    """503 is what API Gateway says if no function is free."""
    deployment.artifacts = {HASHES[0]: b"x"}
    deployment.failing["GET"], deployment.retry_after = [(503, "x")] * 3, ""
    assert get(turbo, HASHES[0]).content == b"x"


# Places -------------------------------------------------------------------------------------------


def test_places_grow_with_success_and_are_halved_once_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    places = Places()
    assert places.most == FIRST
    for _ in range(200):
        places.succeeded(FAR_SECONDS)
    assert places.most == MOST
    for _ in range(20):
        places.refused()
    assert places.most == MOST // 2
    now = 0.6
    places.refused()
    assert places.most == MOST // 4
    for _ in range(MOST // 4 + 1):
        places.succeeded(FAR_SECONDS)
    assert places.most == MOST // 4 + 1


def test_a_deployment_far_away_has_more_places_than_one_nearby() -> None:
    for fastest, most in ((0.016, NEAR + 16), (0.05, NEAR + 50), (FAR_SECONDS, MOST)):
        places = Places()
        for seconds in (fastest, *[10.0] * 200):
            places.succeeded(seconds)
        assert places.most == most, fastest


def test_places_begin_with_those_of_the_last_run() -> None:
    for remembered, most in ((64, 64), (10, 10), (0, 1), (1_000, MOST)):
        places = Places()
        places.expect(remembered)
        assert places.most == most


def test_what_a_tool_waits_for_goes_first() -> None:
    places, order = Places(), []
    held = [places.one() for _ in range(FIRST)]
    for one in held:
        one.__enter__()

    def wait(name: str, *, is_urgent: bool) -> None:
        with places.one(is_urgent=is_urgent):
            order.append(name)

    threads = [
        threading.Thread(target=wait, args=(name,), kwargs={"is_urgent": name == "tool"})
        for name in ("prefetch", "prefetch", "tool")
    ]
    for thread in threads:
        thread.start()
    while places._waiting == 0:
        pass
    held[0].__exit__(None, None, None)
    for thread in threads:
        thread.join(10)
    assert order == ["tool", "prefetch", "prefetch"]


# Lists --------------------------------------------------------------------------------------------


def test_the_last_run_is_a_private_file_of_folder_team_and_command(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path)}
    build = ["turbo", "run", "build"]
    last = LastRun(environment, TARGET, str(tmp_path), build)
    assert last.read() == ([], FIRST)
    last.write(["b", "a", "b"], 40)
    assert last.read() == (["b", "a"], 40)
    (file,) = (tmp_path / ".cache" / "larder" / "turbo").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    for other in (
        LastRun(environment, Target(TARGET.url, team="other"), str(tmp_path), build),
        LastRun(environment, TARGET, str(tmp_path / "x"), build),
        LastRun(environment, TARGET, str(tmp_path), [*build, "test"]),
    ):
        assert other.read() == ([], FIRST)
    for damaged in ("damaged", "[]", '{"hashes": ["a"]}'):
        file.write_text(damaged)
        assert last.read() == ([], FIRST)
    for number in range(MOST_FILES + 5):
        LastRun(environment, TARGET, str(tmp_path), [str(number)]).write(["a"], FIRST)
    assert len(list(file.parent.iterdir())) == MOST_FILES


def test_a_fresh_clone_has_no_own_artifacts(tmp_path: Path) -> None:
    root, build = tmp_path / "clone", ["turbo", "run", "build"]
    folder = root / "packages" / "web"
    folder.mkdir(parents=True)
    # Without a repository, nobody knows where turbo keeps them.
    assert may_have_own_artifacts(build, {}, str(folder))
    (root / ".git").mkdir()
    (root / "turbo.json").write_text("{}")
    assert not may_have_own_artifacts(build, {}, str(folder))
    assert may_have_own_artifacts([*build, "--cache-dir=/elsewhere"], {}, str(folder))
    assert may_have_own_artifacts(build, {"TURBO_CACHE_DIR": "/elsewhere"}, str(folder))
    for own in (".turbo/cache", "node_modules/.cache/turbo"):
        (root / own).mkdir(parents=True)
        # turbo makes it as soon as it starts.
        assert not may_have_own_artifacts(build, {}, str(folder))
        artifact = root / own / "08e4547d5347b63f.tar.zst"
        artifact.touch()
        assert may_have_own_artifacts(build, {}, str(folder))
        artifact.unlink()
    (root / "turbo.json").write_text('{"cacheDir": "elsewhere"}')
    assert may_have_own_artifacts(build, {}, str(folder))
    (root / "turbo.json").unlink()
    (root / ".git").rmdir()
    (root / ".git").write_text("gitdir: /first/.git/worktrees/clone")
    assert may_have_own_artifacts(build, {}, str(folder))


def test_a_dry_run_is_of_turbo_run_only(tmp_path: Path) -> None:
    program = tmp_path / "node_modules" / ".bin" / "turbo"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "packages").mkdir()
    own, environment = str(program), {"PATH": "/usr/bin:/bin"}
    commands = {
        "npx turbo run build --filter=web -- --watch": "run build --filter=web --dry=json -- --watch",
        "pnpm exec turbo build": "build --dry=json",
        "npx turbo prune web": None,
        "npx turbo run build --dry": None,
        "npm run build": None,
        "make": None,
    }
    for command, wanted in commands.items():
        found = dry_run(command.split(), environment, str(tmp_path / "packages"))
        assert found == (None if wanted is None else [own, *wanted.split()]), command


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_files_of_another_user_in_a_folder_above_are_not_used(tmp_path: Path) -> None:
    """In /tmp, everyone could name the address that gets the token, and the program to run."""
    settings = tmp_path / ".turbo" / "config.json"
    program = tmp_path / "node_modules" / ".bin" / "turbo"
    clone = tmp_path / "clone"
    for folder in (settings.parent, program.parent, clone):
        folder.mkdir(parents=True)
    settings.write_text('{"apiUrl": "https://mallory.example"}')
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    build, environment = ["npx", "turbo", "build"], {"PATH": "/bin", "HOME": str(clone)}

    assert Settings(str(clone), environment).api == "https://mallory.example"
    assert dry_run(build, environment, str(clone)) is not None
    os.chown(settings, 1, 1)
    os.chown(program, 1, 1)
    assert dry_run(build, environment, str(clone)) is None
    assert Settings(str(clone), environment).api is None
    # A container of root has the files of the one who started it.
    os.chown(clone, 1, 1)
    assert Settings(str(clone), environment).api == "https://mallory.example"
    assert dry_run(build, environment, str(clone)) is not None


def test_a_dry_run_names_what_turbo_lacks_and_gets_no_token(tmp_path: Path) -> None:
    tasks = [{"hash": "a", "cache": {"local": True}}, {"hash": "b", "cache": {"local": False}}]
    program = tmp_path / "turbo"
    program.write_text(
        f"#!/bin/sh\n[ -z \"$TURBO_TOKEN$TURBO_TEAM$LARDER_TOKEN\" ] && echo '{json.dumps({'tasks': tasks})}'\n"
    )
    program.chmod(0o755)
    secret = {"TURBO_TOKEN": "secret", "LARDER_TOKEN": "secret"}
    environment = {"PATH": "/usr/bin:/bin", "TURBO_TEAM": "acme", **secret}
    assert listed([str(program)], environment, str(tmp_path)) == ["b"]
    assert listed(["/bin/false"], environment, str(tmp_path)) == []
    assert listed(["/not/there"], environment, str(tmp_path)) == []
