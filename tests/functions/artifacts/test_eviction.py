"""A full quota with eviction enabled, in each function that stores or removes artifacts."""

from datetime import timedelta
from typing import Any

import pytest

from larder import clock
from larder.artifacts import removals, uploads
from larder.artifacts.models import UNPROTECTED, ArtifactHash, CacheRequest, Totals
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import read_totals
from larder.audit.models import Action
from larder.audit.service import read_entries
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import announce, put_object, upload
from tests.requests import Cloud, Sender, invoke

HOUR = timedelta(hours=1)
QUOTA = 1_000


@pytest.fixture
def full(cloud: Cloud, option: SetOption, removal_jobs: list[dict[str, Any]]) -> Cloud:
    """A team with a quota of 1,000 bytes that stores nine artifacts of 100 bytes."""
    option("over_quota", "evict")
    change_state(cloud.team.id, quota_bytes=QUOTA)
    for number in range(9):
        assert cloud.send("PUT", f"/v8/artifacts/{number}", body=b"x" * 100).status == 202
    assert removal_jobs == []
    return cloud


def is_stored(cloud: Cloud, hash: str) -> bool:
    return cloud.send("HEAD", f"/v8/artifacts/{hash}").status == 200


def test_an_upload_evicts_enough_for_itself_and_starts_the_rest(
    full: Cloud, removal_jobs: list[dict[str, Any]]
) -> None:
    assert full.send("PUT", "/v8/artifacts/new", body=b"x" * 200).status == 202
    assert is_stored(full, "new")
    assert not is_stored(full, "0")
    assert read_totals(full.team.id).size_bytes <= QUOTA
    assert [job["kind"] for job in removal_jobs] == ["least_recently_used"]


def test_the_function_evicts_until_a_tenth_is_free(full: Cloud, removal_jobs: list[dict[str, Any]]) -> None:
    assert full.send("PUT", "/v8/artifacts/new", body=b"x" * 100).status == 202
    assert read_totals(full.team.id) == Totals(size_bytes=QUOTA, artifacts=10)
    (job,) = removal_jobs
    invoke("artifacts.remove_artifacts.handler", job)
    assert read_totals(full.team.id) == Totals(size_bytes=900, artifacts=9)


def test_the_event_of_a_direct_upload_evicts_too(full: Cloud, removal_jobs: list[dict[str, Any]]) -> None:
    announce(upload(full.send, "new", b"x" * 200))
    assert is_stored(full, "new")
    assert read_totals(full.team.id).size_bytes <= QUOTA
    assert [job["kind"] for job in removal_jobs] == ["least_recently_used"]


def test_the_sweep_evicts_for_an_upload_whose_event_was_lost(full: Cloud, removal_jobs: list[dict[str, Any]]) -> None:
    yesterday, hash = clock.now() - 25 * HOUR, ArtifactHash("new")
    full.offer(hash, now=yesterday)
    offered = read_entry(full.team.id, hash).pending
    assert offered is not None
    put_object(offered.upload.object_key, b"x" * 200)
    invoke("artifacts.sweep_artifacts.handler", {})
    assert is_stored(full, "new")
    assert read_totals(full.team.id).size_bytes <= QUOTA
    assert [job["kind"] for job in removal_jobs] == ["least_recently_used"]


def test_the_sweep_audits_what_it_evicts(cloud: Cloud, removal_jobs: list[dict[str, Any]]) -> None:
    now = clock.now()
    cloud.store("abc", now=now - 2 * HOUR)
    removals.ask_removal(cloud.team.id, cloud.key.id, by=cloud.writer, now=now - HOUR)
    invoke("artifacts.sweep_artifacts.handler", {})
    assert read_totals(cloud.team.id) == Totals()
    kept = read_entries(cloud.team.id, limit=10, now=now).entries
    assert Action.REMOVAL_DONE in [entry.action for entry in kept]


def test_a_users_own_cache_evicts_like_a_teams(
    cloud: Cloud, personal: Sender, option: SetOption, removal_jobs: list[dict[str, Any]]
) -> None:
    option("over_quota", "evict")
    owner, yesterday = cloud.user.id, clock.now() - 25 * HOUR
    change_state(owner, quota_bytes=QUOTA)
    for number in range(9):
        assert personal("PUT", f"/v8/artifacts/{number}", body=b"x" * 100).status == 202
    uploads.offer_upload(
        CacheRequest(owner=owner, hash=ArtifactHash("new"), writer=cloud.writer, view=UNPROTECTED, now=yesterday)
    )
    offered = read_entry(owner, ArtifactHash("new")).pending
    assert offered is not None
    put_object(offered.upload.object_key, b"x" * 200)
    invoke("artifacts.sweep_artifacts.handler", {})
    assert personal("HEAD", "/v8/artifacts/new").status == 200
    assert read_totals(owner) == Totals(size_bytes=QUOTA, artifacts=9)
    (job,) = removal_jobs
    invoke("artifacts.remove_artifacts.handler", job)
    assert read_totals(owner).size_bytes <= 900
