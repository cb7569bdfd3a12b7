"""Why a task was built although a run before had its hash, in the reply of POST /v1/runs"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.artifacts import eviction
from larder.artifacts.models import ArtifactHash
from larder.artifacts.records import Unused
from larder.artifacts.repository import index
from larder.artifacts.repository.eviction import evict, read_eviction
from larder.clock import to_ms
from larder.teams.models import CachingStatus, Unsigned
from larder.teams.protection import ProtectionChange, change_protection
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import offer
from tests.larder.why.summaries import task_record
from tests.requests import Cloud, Sender
from tests.trust.scene import Scene, make_scene, new_key, protected, session

from .reports import LIB, keep, later, report, send

HASH = LIB["hash"]
LOCAL, REMOTE = ("LOCAL", "MISS"), ("REMOTE", "MISS")


def looked_up(sender: Sender, *found: tuple[str, str], hash: str = HASH) -> None:
    events = [
        {
            "sessionId": "0d9d9a0e-6e5b-4c39-9d3e-5a3f5d8f6f10",
            "source": source,
            "event": event,
            "hash": hash,
            "duration": 0,
        }
        for source, event in found
    ]
    assert sender("POST", "/v8/artifacts/events", json_body=events).status == 200


def store(sender: Sender, hash: str = HASH) -> None:
    assert sender("PUT", f"/v8/artifacts/{hash}", body=b"artifact").status == 202


def built(sender: Sender, **changes: Any) -> dict[str, Any]:
    """The reason of a run that has built lib."""
    body = report(LIB)
    body["tasks"][0] |= changes
    reply = send(sender, body)
    assert reply.status == 200, reply.body
    (found,) = reply.json["causes"]["sameHash"]
    assert (found["task"], found["hash"]) == ("lib#build", HASH)
    assert reply.json["causes"]["sameHashCount"] == 1
    return dict(found)


def reason(found: dict[str, Any]) -> tuple[str, bool, list[str]]:
    return found["reason"], found["certain"], found["evidence"]


@pytest.fixture
def first(cloud: Cloud) -> Cloud:
    """The team, after a run that has built lib."""
    keep(cloud)
    send(cloud.send, report(LIB))
    return cloud


def test_a_forced_run_uploads_and_asks_for_nothing(first: Cloud) -> None:
    store(first.send)
    with later():
        store(first.send)
        found = built(first.send)
    assert reason(found) == ("not_asked", True, ["no_event", "uploaded"])


def test_without_an_event_and_an_upload_nothing_is_certain(first: Cloud) -> None:
    store(first.send)
    with later():
        assert reason(built(first.send)) == ("not_asked", False, ["no_event"])


def test_turbo_had_another_credential_than_the_report(first: Cloud) -> None:
    with later():
        store(new_key(first))
        assert reason(built(first.send)) == ("unknown", False, ["no_event", "uploaded"])


def test_events_of_another_credential_and_of_another_time_do_not_count(first: Cloud) -> None:
    looked_up(first.send, LOCAL, REMOTE)
    with later():
        looked_up(new_key(first), LOCAL, REMOTE)
        assert reason(built(first.send)) == ("unknown", False, ["no_event"])


def test_turbo_could_not_use_the_answer(first: Cloud) -> None:
    store(first.send)
    with later():
        looked_up(first.send, LOCAL)
        assert reason(built(first.send)) == ("unusable", False, ["local_miss", "stored"])
        store(first.send)
        assert reason(built(first.send)) == ("unusable", False, ["local_miss", "uploaded"])


def test_turbo_asked_no_remote_cache(first: Cloud) -> None:
    with later():
        looked_up(first.send, LOCAL)
        assert reason(built(first.send)) == ("not_asked", False, ["local_miss", "not_stored"])


def test_caching_was_paused(first: Cloud) -> None:
    store(first.send)
    with later():
        change_state(first.team.id, caching=CachingStatus.PAUSED)
        looked_up(first.send, LOCAL)
        found = built(first.send)
    assert reason(found) == ("caching_off", True, ["local_miss", "audit"])
    assert found["at"]


def test_another_run_built_it_at_the_same_time(cloud: Cloud) -> None:
    keep(cloud)
    started = to_ms(clock.now() - timedelta(minutes=5))
    long = {"startTime": started, "endTime": started + 10 * 60_000, "exitCode": 0}
    send(cloud.send, report(LIB, execution=long))
    looked_up(cloud.send, LOCAL, REMOTE)
    assert reason(built(cloud.send)) == ("at_once", True, ["remote_miss", "overlap"])


def test_it_was_deleted(first: Cloud) -> None:
    store(first.send)
    with later():
        assert session(first)("DELETE", f"/v1/artifacts/{HASH}").status == 200
    with later(2):
        looked_up(first.send, LOCAL, REMOTE)
        found = built(first.send)
    assert reason(found) == ("deleted", True, ["remote_miss", "audit"])
    assert found["at"]


def test_it_has_expired(first: Cloud, option: SetOption) -> None:
    option("retention_days", "1")
    with later(2 * 24 * 60):
        looked_up(first.send, LOCAL, REMOTE)
        found = built(first.send)
    assert reason(found) == ("expired", True, ["remote_miss", "retention"])


def test_it_was_evicted(first: Cloud, option: SetOption) -> None:
    option("over_quota", "evict")
    with later():
        store(first.send)
        artifact = index.read_entry(first.team.id, ArtifactHash(HASH)).artifact
        assert artifact is not None
        used_at = artifact.last_used_at or artifact.created_at
        unused = Unused(upload=artifact.upload, size_bytes=artifact.size_bytes, last_used_ms=to_ms(used_at))
        evicted_at = clock.now()
        assert evict(first.team.id, [unused], above_bytes=0, now=evicted_at) == frozenset()
    with later(2):
        looked_up(first.send, LOCAL, REMOTE)
        found = built(first.send)
        assert reason(found) == ("evicted", True, ["remote_miss", "evicted_before"])
        assert found["at"] == to_ms(evicted_at)
        assert eviction.last_eviction(first.team.id, scoped=True) is None
        assert read_eviction(first.team.id, scoped=False) == (evicted_at, used_at)
    with later(3):
        looked_up(first.send, LOCAL, REMOTE)
        after = built(first.send)
    assert after["reason"] == "unknown", "the run before used it after the eviction"


def test_what_an_eviction_took_was_used_while_the_run_ran(cloud: Cloud, option: SetOption) -> None:
    """turbo uploads before a run ends, so the last use alone does not say which of its artifacts are gone."""
    option("over_quota", "evict")
    keep(cloud)
    started = to_ms(clock.now())
    times = {"startTime": started, "endTime": started + 30_000, "exitCode": 0}
    store(cloud.send)
    send(cloud.send, report(LIB, execution=times))
    with later():
        change_state(cloud.team.id, quota_bytes=20)
        assert cloud.send("PUT", "/v8/artifacts/other", body=b"a" * 18).status == 202
    with later(2):
        looked_up(cloud.send, LOCAL, REMOTE)
        found = built(cloud.send)
    assert reason(found) == ("evicted", False, ["remote_miss", "evicted_before"])
    assert found["at"]


def test_it_is_too_large_without_preflight(first: Cloud) -> None:
    with later():
        looked_up(first.send, LOCAL, REMOTE)
        assert built(first.send, bytes=4_500_000)["reason"] == "unknown"
    with later(2):
        looked_up(first.send, LOCAL, REMOTE)
        found = built(first.send, bytes=5_000_000)
    assert reason(found) == ("too_large", True, ["remote_miss", "bytes", "not_stored"])


def test_the_quota_is_full(first: Cloud, option: SetOption) -> None:
    option("over_quota", "refuse")
    store(first.send, "other")
    with later():
        looked_up(first.send, LOCAL, REMOTE)
        change_state(first.team.id, quota_bytes=len("artifact"))
        found = built(first.send)
    assert reason(found) == ("refused", False, ["remote_miss", "not_stored", "quota_full"])
    assert found["at"]


def test_the_quota_is_too_small_for_the_artifact(first: Cloud, option: SetOption) -> None:
    option("over_quota", "refuse")
    store(first.send, "other")
    change_state(first.team.id, quota_bytes=1_000)
    with later():
        looked_up(first.send, LOCAL, REMOTE)
        assert built(first.send, bytes=992)["reason"] == "unknown"
    with later(2):
        looked_up(first.send, LOCAL, REMOTE)
        assert built(first.send, bytes=993)["evidence"][-1] == "quota_full"
    with later(3):
        looked_up(first.send, LOCAL, REMOTE)
        store(first.send)
        assert built(first.send, bytes=993)["reason"] == "unknown", "it is stored"


def test_no_eviction_makes_space_for_an_artifact_above_the_quota(first: Cloud) -> None:
    store(first.send, "other")
    change_state(first.team.id, quota_bytes=1_000)
    with later():
        looked_up(first.send, LOCAL, REMOTE)
        assert built(first.send, bytes=1_000)["reason"] == "unknown"
    with later(2):
        looked_up(first.send, LOCAL, REMOTE)
        assert built(first.send, bytes=1_001)["evidence"][-1] == "quota_full"


def test_an_upload_that_was_offered_is_not_refused(first: Cloud) -> None:
    offer(first.send, HASH)
    with later():
        looked_up(first.send, LOCAL, REMOTE)
        change_state(first.team.id, quota_bytes=1)
        assert built(first.send)["reason"] == "unknown"


def test_the_team_requires_signatures(first: Cloud) -> None:
    change = ProtectionChange(protected=False, unsigned=Unsigned.REFUSE)
    change_protection(first.team.id, change, by=None)
    with later():
        looked_up(first.send, LOCAL, REMOTE)
        found = built(first.send)
    assert reason(found) == ("refused", False, ["remote_miss", "not_stored", "signature_required"])


def test_without_another_reason_it_is_unknown(first: Cloud) -> None:
    store(first.send)
    with later():
        looked_up(first.send, LOCAL, REMOTE)
        assert reason(built(first.send)) == ("unknown", False, ["remote_miss"])


def test_tasks_that_were_restored_or_are_never_cached_have_no_reason(first: Cloud) -> None:
    definition = {**LIB["resolvedTaskDefinition"], "cache": False}
    with later():
        for task in (
            LIB | {"cache": {"status": "HIT", "timeSaved": 5}},
            LIB | {"resolvedTaskDefinition": definition},
            task_record("lib#build", "9" * 16),
        ):
            reply = send(first.send, report(task))
            assert reply.json["causes"]["sameHash"] == []


@pytest.fixture
def scene(cloud: Cloud) -> Scene:
    keep(cloud)
    return make_scene(cloud)


def test_only_another_scope_has_it(scene: Scene) -> None:
    with protected(scene.cloud):
        send(scene.main, report(task_record("ui#build", "2" * 16)))
        send(scene.other_pr, report(LIB))
        with later():
            looked_up(scene.main, LOCAL, REMOTE)
            body = report(LIB, task_record("ui#build", "2" * 16))
            (found, _) = send(scene.main, body).json["causes"]["sameHash"]
    assert reason(found) == ("other_scope", True, ["remote_miss"])


def test_it_was_stored_before_the_team_was_protected(scene: Scene) -> None:
    send(scene.main, report(LIB))
    with later(), protected(scene.cloud), later():
        looked_up(scene.main, LOCAL, REMOTE)
        found = built(scene.main)
    assert reason(found) == ("hidden", True, ["remote_miss", "trusted_from"])
