"""The upload of an earlier run was refused: what POST /v1/runs says later, when there is space again"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from larder import clock, instance
from larder.artifacts import sweep
from larder.clock import to_ms
from larder.conditions import begins_with, equals
from larder.tables import ARTIFACTS, Item
from larder.teams.models import People, Unsigned
from larder.teams.protection import ProtectionChange, change_protection
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import PREFLIGHT, announce, upload
from tests.requests import Cloud, Sender
from tests.trust.scene import make_scene, new_key, protected, seconds_later

from .reports import LIB, keep, later, report, send
from .test_same_hash import HASH, LOCAL, REMOTE, built, looked_up, reason, store

REFUSED = ["remote_miss", "refusal"]


@pytest.fixture(autouse=True)
def full_quotas_refuse(option: SetOption) -> None:
    option("over_quota", "refuse")


def refused(sender: Sender, code: str, hash: str = HASH) -> None:
    reply = sender("PUT", f"/v8/artifacts/{hash}", body=b"artifact")
    assert (reply.status, reply.code) == (403, code)


def built_later(sender: Sender, minutes: float = 2) -> dict[str, Any]:
    with later(minutes):
        looked_up(sender, LOCAL, REMOTE)
        return built(sender)


def hit(sender: Sender, source: str) -> None:
    body = report(LIB)
    body["tasks"][0]["cache"] = {"status": "HIT", "source": source, "timeSaved": 5}
    assert send(sender, body).status == 200


def notes(cloud: Cloud) -> list[Item]:
    of_owner = equals(owner=cloud.team.id) & begins_with(hash="#refused#")
    return list(ARTIFACTS.query(of_owner))


def test_the_quota_was_full(cloud: Cloud) -> None:
    keep(cloud)
    change_state(cloud.team.id, quota_bytes=5)
    refused_at = clock.now()
    refused(cloud.send, "remote_caching_over_limit")
    send(cloud.send, report(LIB))
    change_state(cloud.team.id, quota_bytes=1_000)
    found = built_later(cloud.send)
    assert reason(found) == ("refused", False, [*REFUSED, "quota_full"])
    assert to_ms(refused_at) <= found["at"] <= to_ms(clock.now())


def test_no_eviction_could_make_space(cloud: Cloud, option: SetOption) -> None:
    option("over_quota", "evict")
    keep(cloud)
    change_state(cloud.team.id, quota_bytes=5)
    refused(cloud.send, "larger_than_quota")
    send(cloud.send, report(LIB))
    change_state(cloud.team.id, quota_bytes=1_000)
    assert built_later(cloud.send)["evidence"] == [*REFUSED, "quota_full"]


def test_the_deployment_was_full(cloud: Cloud, option: SetOption) -> None:
    keep(cloud)
    option("max_stored_bytes", 5)
    assert sweep.sweep(now=clock.now()).failed == 0
    refused(cloud.send, "storage_full")
    send(cloud.send, report(LIB))
    option("max_stored_bytes", 10**12)
    assert built_later(cloud.send)["evidence"] == [*REFUSED, "storage_full"]


def test_the_space_for_own_scopes_was_full(cloud: Cloud) -> None:
    keep(cloud)
    change_state(cloud.team.id, quota_bytes=20)
    with protected(cloud):
        job = make_scene(cloud).pr
        refused(job, "remote_caching_over_limit")
        send(job, report(LIB))
        change_state(cloud.team.id, quota_bytes=10_000)
        assert built_later(job)["evidence"] == [*REFUSED, "scopes_full"]


def test_the_team_required_signatures(cloud: Cloud) -> None:
    keep(cloud)
    change = ProtectionChange(protected=False, unsigned=Unsigned.REFUSE)
    change_protection(cloud.team.id, change, by=None)
    refused(cloud.send, "signature_required")
    send(cloud.send, report(LIB))
    change_protection(cloud.team.id, ProtectionChange(protected=False, unsigned=Unsigned.ACCEPT), by=None)
    assert built_later(cloud.send)["evidence"] == [*REFUSED, "signature_required"]


def test_people_only_read(cloud: Cloud) -> None:
    keep(cloud)
    laptop = make_scene(cloud).laptop
    change_protection(cloud.team.id, ProtectionChange(protected=True, people=People.READ), by=None)
    with seconds_later():
        offer = laptop("OPTIONS", f"/v8/artifacts/{HASH}", headers=PREFLIGHT)
        assert (offer.status, offer.code) == (403, "read_only")
        send(laptop, report(LIB))
        assert built_later(laptop)["evidence"] == [*REFUSED, "read_only"]


def test_a_direct_upload_was_too_large_for_the_quota(cloud: Cloud) -> None:
    keep(cloud)
    change_state(cloud.team.id, quota_bytes=5)
    announce(upload(cloud.send, HASH, b"artifact"))
    send(cloud.send, report(LIB))
    change_state(cloud.team.id, quota_bytes=1_000)
    assert built_later(cloud.send)["evidence"] == [*REFUSED, "quota_full"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_read_discards_a_direct_upload_that_no_eviction_makes_space_for(
    cloud: Cloud, option: SetOption, method: str
) -> None:
    option("over_quota", "evict")
    keep(cloud)
    change_state(cloud.team.id, quota_bytes=5)
    upload(cloud.send, HASH, b"artifact")
    if method == "POST":
        found = cloud.send("POST", "/v8/artifacts", json_body={"hashes": [HASH]})
        assert found.json == {HASH: None}
    else:
        assert cloud.send(method, f"/v8/artifacts/{HASH}").status == 404
    send(cloud.send, report(LIB))
    change_state(cloud.team.id, quota_bytes=1_000)
    assert built_later(cloud.send)["evidence"] == [*REFUSED, "quota_full"]


def test_refusals_of_another_credential_or_another_time_do_not_count(cloud: Cloud) -> None:
    keep(cloud)
    change_state(cloud.team.id, quota_bytes=5)
    refused(new_key(cloud), "remote_caching_over_limit")
    with later(10):
        send(cloud.send, report(LIB))
    with later(20):
        refused(cloud.send, "remote_caching_over_limit")
    change_state(cloud.team.id, quota_bytes=1_000)
    assert built_later(cloud.send, 30)["reason"] == "unknown"
    assert len(notes(cloud)) == 2


def test_a_run_that_restored_it_since_shows_that_it_was_stored(cloud: Cloud) -> None:
    keep(cloud)
    change_state(cloud.team.id, quota_bytes=5)
    refused(cloud.send, "remote_caching_over_limit")
    send(cloud.send, report(LIB))
    change_state(cloud.team.id, quota_bytes=1_000)
    with later():
        hit(cloud.send, "LOCAL")
    assert built_later(cloud.send)["reason"] == "refused", "a local hit uploads nothing"
    with later(3):
        hit(cloud.send, "REMOTE")
    assert built_later(cloud.send, 4)["reason"] == "unknown"


def test_an_hour_has_one_note_of_each_reason(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=5)
    refused(cloud.send, "remote_caching_over_limit")
    (first,) = notes(cloud)
    noted_at = first["quota_full"]
    assert first["hash"].startswith(f"#refused#{cloud.key.id}#20")
    assert first["expires_at"] - noted_at // 1000 == timedelta(days=31).total_seconds()
    refused(cloud.send, "remote_caching_over_limit", "other")
    instance.restart()
    refused(cloud.send, "remote_caching_over_limit", "other")
    assert notes(cloud) == [first]
    change = ProtectionChange(protected=False, unsigned=Unsigned.REFUSE)
    change_protection(cloud.team.id, change, by=None)
    refused(cloud.send, "signature_required")
    (both,) = notes(cloud)
    assert both["quota_full"] == noted_at < both["signature_required"]
    with later(60):
        refused(cloud.send, "signature_required")
        assert len(notes(cloud)) == 2


def test_a_stored_upload_notes_nothing(cloud: Cloud) -> None:
    store(cloud.send)
    assert notes(cloud) == []
