"""A full quota with eviction enabled: the least recently used artifacts are deleted, with exact totals."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import clock
from larder.artifacts import eviction, publish, reads, rebuild_index, sweep
from larder.artifacts.breakdown import sum_index
from larder.artifacts.models import Artifact, ArtifactHash, Totals, View
from larder.artifacts.repository import index
from larder.artifacts.repository.eviction import least_recently_used
from larder.artifacts.repository.totals import read_totals
from larder.errors import EvictionInProgress, LargerThanQuota, TryAgain
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys, offer, put_object, upload
from tests.faults import about, answering, error, just_before, unreachable
from tests.requests import Cloud, Context, invoke

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
QUOTA = 1000


@pytest.fixture
def jobs(removal_jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The eviction jobs that uploads of this test start."""
    return removal_jobs


@pytest.fixture
def team(cloud: Cloud, option: SetOption, jobs: list[dict[str, Any]]) -> Iterator[Cloud]:
    """A team with a quota of 1,000 bytes and eviction enabled."""
    option("over_quota", "evict")
    change_state(cloud.team.id, quota_bytes=QUOTA)
    yield cloud
    check_books(cloud)


def check_books(cloud: Cloud) -> None:
    """Check that the totals match the index and are within the quota."""
    totals = read_totals(cloud.team.id)
    assert totals == sum_index(cloud.team.id).totals


def store(cloud: Cloud, hash: str, size: int = 100, *, now: datetime | None = None) -> Artifact:
    return cloud.store(hash, b"x" * size, view=View(quota_bytes=QUOTA), now=now)


def fill(cloud: Cloud, *, count: int = 9, size: int = 100) -> datetime:
    """Store artifacts a0 to a8 (900 bytes), one hour apart, the last one hour ago. Return the current time."""
    now = clock.now()
    for number in range(count):
        store(cloud, f"a{number}", size, now=now - (count - number) * HOUR)
    return now


def hashes(cloud: Cloud) -> list[str]:
    return sorted(one.upload.hash for one in index.stored_by(cloud.team.id))


def size(cloud: Cloud) -> int:
    return read_totals(cloud.team.id).size_bytes


def use(cloud: Cloud, hash: str, now: datetime) -> None:
    entry = index.read_entry(cloud.team.id, ArtifactHash(hash))
    reads.find_for_use(entry, view=View(quota_bytes=QUOTA), now=now)


def free_space(cloud: Cloud, **more: Any) -> eviction.EvictionReport:
    return eviction.free_space(cloud.team.id, quota_bytes=QUOTA, now=clock.now(), **more)


# Uploads ------------------------------------------------------------------------------------------


def test_the_least_recently_used_artifacts_are_evicted_for_an_upload(team: Cloud) -> None:
    fill(team)
    store(team, "b", 200)
    # 900 bytes are stored and 200 arrive: at least 100 must go, and a tenth of the quota must be free.
    assert hashes(team) == ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "b"]
    store(team, "c", 200)
    assert hashes(team) == ["a3", "a4", "a5", "a6", "a7", "a8", "b", "c"]
    assert size(team) == 1000


def test_an_evicted_object_is_deleted_after_its_last_reader(team: Cloud) -> None:
    fill(team)
    store(team, "b", 200)
    sweep.sweep(now=clock.now())
    assert len(object_keys()) == 10
    sweep.sweep(now=clock.now() + HOUR)
    assert len(object_keys()) == 9


def test_recently_used_artifacts_stay(team: Cloud) -> None:
    now = fill(team)
    use(team, "a0", now + DAY)
    use(team, "a2", now + DAY)
    store(team, "b", 300, now=now + DAY)
    assert hashes(team) == ["a0", "a2", "a4", "a5", "a6", "a7", "a8", "b"]


def test_storing_an_artifact_again_counts_as_use(team: Cloud) -> None:
    fill(team)
    store(team, "a0")
    store(team, "b", 200)
    assert "a0" in hashes(team)
    assert "a1" not in hashes(team)


def test_a_replacement_does_not_evict_the_artifact_that_it_replaces(team: Cloud) -> None:
    fill(team)
    store(team, "a0", 300)
    assert hashes(team) == ["a0", "a2", "a3", "a4", "a5", "a6", "a7", "a8"]


@pytest.mark.slow
def test_many_small_artifacts_are_evicted_for_a_large_one(team: Cloud) -> None:
    now = clock.now()
    for number in range(95):
        store(team, f"a{number:02}", 10, now=now - (100 - number) * HOUR)
    store(team, "b", 900, now=now)
    assert size(team) <= QUOTA
    assert hashes(team)[-1] == "b"
    assert len(hashes(team)) == 11


@pytest.mark.parametrize("size_bytes", [1000, 1001])
def test_an_artifact_can_fill_the_quota_but_not_exceed_it(team: Cloud, size_bytes: int) -> None:
    fill(team)
    reply = team.send("PUT", "/v8/artifacts/b", body=b"x" * size_bytes)
    if size_bytes == QUOTA:
        assert reply.status == 202
        assert hashes(team) == ["b"]
    else:
        # 413, not 403, so that the client still uploads smaller artifacts.
        assert (reply.status, reply.code) == (403, "larger_than_quota")
        assert len(hashes(team)) == 9
        assert len(object_keys()) == 9


def test_status_and_preflight_never_report_over_limit(team: Cloud) -> None:
    fill(team)
    store(team, "b")
    assert size(team) == QUOTA
    assert team.send("GET", "/v8/artifacts/status").json == {"status": "enabled"}
    offer(team.send, "c")
    assert team.send("PUT", "/v8/artifacts/c", body=b"x" * 100).status == 202


def test_without_a_quota_nothing_is_evicted(cloud: Cloud, option: SetOption, jobs: list[dict[str, Any]]) -> None:
    option("over_quota", "evict")
    for number in range(5):
        assert cloud.send("PUT", f"/v8/artifacts/{number}", body=b"x" * 1000).status == 202
    assert jobs == []
    assert read_totals(cloud.team.id).artifacts == 5


def test_the_quota_can_be_lowered_below_the_stored_size(team: Cloud) -> None:
    fill(team)
    change_state(team.team.id, quota_bytes=300)
    assert team.send("PUT", "/v8/artifacts/b", body=b"x" * 100).status == 202
    assert hashes(team) == ["a7", "a8", "b"]


# Concurrent uploads -------------------------------------------------------------------------------


def test_an_upload_evicts_again_if_others_took_the_space(team: Cloud) -> None:
    fill(team)
    with just_before("dynamodb", "TransactWriteItems", lambda: store(team, "b", 200)):
        store(team, "c", 200)
    assert hashes(team)[-2:] == ["b", "c"]
    assert size(team) <= QUOTA


@pytest.mark.slow
def test_429_if_uploads_arrive_faster_than_evictions(team: Cloud, jobs: list[dict[str, Any]]) -> None:
    fill(team)
    conflict = error("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}])

    with (
        answering("dynamodb", "TransactWriteItems", conflict, only=about("#totals")),
        pytest.raises(EvictionInProgress),
    ):
        store(team, "b", 200)
    assert len(hashes(team)) == 9
    assert jobs == [{"kind": "least_recently_used", "owner": team.team.id, "target": None}]


def test_the_refusal_has_retry_after_and_leaves_no_visible_object(team: Cloud) -> None:
    fill(team)
    with answering("dynamodb", "Query", error("InternalServerError", 500)):
        reply = team.send("PUT", "/v8/artifacts/b", body=b"x" * 200)
    assert (reply.status, reply.code) == (429, "making_room")
    assert reply.headers["retry-after"] == "2"
    for key in object_keys():
        announce(key)
    assert "b" not in hashes(team)


def test_an_upload_that_conflicts_with_an_eviction_is_retried(team: Cloud) -> None:
    conflict = error("TransactionConflictException")
    with answering("dynamodb", "UpdateItem", conflict, times=3):
        store(team, "b", 200)
    assert hashes(team) == ["b"]


# Evictions ----------------------------------------------------------------------------------------


def test_an_eviction_frees_a_tenth_of_the_quota(team: Cloud) -> None:
    fill(team, count=10)
    report = free_space(team)
    assert (report.artifacts, report.size_bytes, report.finished) == (1, 100, True)
    assert size(team) == 900
    assert free_space(team).artifacts == 0


def test_two_concurrent_evictions_free_no_more_than_one(team: Cloud) -> None:
    fill(team, count=10)
    with just_before("dynamodb", "TransactWriteItems", lambda: free_space(team, needed_bytes=300)):
        free_space(team, needed_bytes=300)
    assert size(team) == 700


def test_an_eviction_that_others_did_in_part_does_the_rest(team: Cloud) -> None:
    fill(team, count=10)
    with just_before("dynamodb", "TransactWriteItems", lambda: free_space(team, needed_bytes=300)):
        free_space(team, needed_bytes=500)
    assert size(team) == 500


def test_an_artifact_used_during_the_eviction_stays(team: Cloud) -> None:
    now = fill(team, count=10)
    with just_before("dynamodb", "TransactWriteItems", lambda: use(team, "a0", now + DAY)):
        free_space(team)
    assert hashes(team) == [f"a{number}" for number in (0, 2, 3, 4, 5, 6, 7, 8, 9)]


def test_an_artifact_replaced_during_the_eviction_stays(team: Cloud) -> None:
    fill(team, count=10)
    with just_before("dynamodb", "TransactWriteItems", lambda: store(team, "a0")):
        free_space(team)
    assert "a0" in hashes(team)
    assert size(team) == 900


def test_an_artifact_deleted_during_the_eviction_is_subtracted_once(team: Cloud) -> None:
    fill(team, count=10)
    first = index.read_entry(team.team.id, ArtifactHash("a0")).artifact
    assert first is not None
    with just_before("dynamodb", "TransactWriteItems", lambda: publish.delete_from_index(first, now=clock.now())):
        free_space(team)
    # The other removal has freed enough space.
    assert size(team) == 900


def test_a_transaction_conflict_is_retried(team: Cloud) -> None:
    fill(team, count=10)
    reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}, {"Code": "None"}]
    conflict = error("TransactionCanceledException", CancellationReasons=reasons)
    with answering("dynamodb", "TransactWriteItems", conflict, times=3):
        assert free_space(team).artifacts == 1


@pytest.mark.slow
def test_an_interrupted_eviction_has_subtracted_what_it_deleted(team: Cloud) -> None:
    now = clock.now()
    for number in range(95):
        store(team, f"a{number:02}", 10, now=now - (100 - number) * HOUR)
    looks = iter([True, False])
    report = free_space(team, needed_bytes=900, has_time=lambda: next(looks))
    assert (report.artifacts, report.finished) == (eviction.AT_ONCE, False)
    assert size(team) == 950 - eviction.AT_ONCE * 10


# The function -------------------------------------------------------------------------------------


def do(jobs: list[dict[str, Any]]) -> None:
    while jobs:
        invoke("artifacts.remove_artifacts.handler", jobs.pop(0))


def test_the_upload_that_passes_95_percent_starts_one_eviction_job(team: Cloud, jobs: list[dict[str, Any]]) -> None:
    fill(team)
    store(team, "b", 50)
    assert jobs == []
    store(team, "c", 1)
    store(team, "d", 1)
    assert jobs == [{"kind": "least_recently_used", "owner": team.team.id, "target": None}]
    do(jobs)
    assert size(team) == 852
    # The next upload over 95 % starts a job again.
    store(team, "e", 98)
    store(team, "f", 1)
    assert len(jobs) == 1


def test_two_concurrent_uploads_over_95_percent_start_one_job(team: Cloud, jobs: list[dict[str, Any]]) -> None:
    fill(team)
    eviction.start_eviction(team.team.id, now=clock.now())
    store(team, "b", 60)
    assert len(jobs) == 1
    # The first job can be lost.
    later = clock.now() + HOUR
    eviction.start_eviction(team.team.id, now=later)
    assert len(jobs) == 2


def test_an_upload_succeeds_even_if_the_job_cannot_be_started(cloud: Cloud, option: SetOption) -> None:
    option("over_quota", "evict")
    change_state(cloud.team.id, quota_bytes=QUOTA)
    with unreachable("lambda", "Invoke"):
        assert cloud.send("PUT", "/v8/artifacts/b", body=b"x" * 960).status == 202


def test_artifacts_from_before_eviction_was_enabled_go_by_their_upload_time(
    team: Cloud, option: SetOption, jobs: list[dict[str, Any]]
) -> None:
    option("over_quota", "refuse")
    now = fill(team, count=10)
    option("over_quota", "evict")
    assert sum_index(team.team.id).unlisted == 10
    use(team, "a0", now)
    change_state(team.team.id, quota_bytes=500)
    invoke("artifacts.remove_artifacts.handler", {"kind": "least_recently_used", "owner": team.team.id, "target": None})
    # Only a0 was listed, so it was the first to go.
    assert hashes(team) == ["a6", "a7", "a8", "a9"]


def test_a_late_job_has_nothing_to_do(team: Cloud, option: SetOption) -> None:
    fill(team)
    job = {"kind": "least_recently_used", "owner": team.team.id, "target": None}
    invoke("artifacts.remove_artifacts.handler", job)
    option("over_quota", "refuse")
    change_state(team.team.id, quota_bytes=1)
    invoke("artifacts.remove_artifacts.handler", job)
    assert len(hashes(team)) == 9


def test_the_function_stops_in_time(team: Cloud) -> None:
    fill(team, count=10)
    job = {"kind": "least_recently_used", "owner": team.team.id, "target": None}
    invoke("artifacts.remove_artifacts.handler", job, Context(remaining_ms=1_000))
    assert len(hashes(team)) == 10


def test_the_function_never_makes_the_totals_wait_and_a_crash_leaves_them_too_high(team: Cloud) -> None:
    fill(team, count=10)
    job = {"kind": "least_recently_used", "owner": team.team.id, "target": None}
    with (
        answering("dynamodb", "UpdateItem", error("InternalServerError", 500), only=about("#totals"), times=1),
        answering(
            "dynamodb", "TransactWriteItems", error("InternalServerError", 500), only=about("#totals")
        ) as together,
        pytest.raises(TryAgain),
    ):
        invoke("artifacts.remove_artifacts.handler", job)
    assert (together, len(hashes(team)), size(team)) == ([], 9, 1000)
    for hours in (0, 1):
        sweep.sweep(now=clock.now() + hours * HOUR)
    assert size(team) == 900


# Direct uploads -----------------------------------------------------------------------------------


def test_the_event_of_a_direct_upload_evicts(team: Cloud) -> None:
    fill(team)
    announce(upload(team.send, "b", b"x" * 200))
    assert hashes(team) == ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "b"]


def test_a_read_evicts_nothing_and_leaves_the_upload_to_its_event(team: Cloud) -> None:
    fill(team)
    key = upload(team.send, "b", b"x" * 200)
    assert team.send("GET", "/v8/artifacts/b").status == 404
    assert len(hashes(team)) == 10
    assert size(team) == 900
    announce(key)
    assert team.send("GET", "/v8/artifacts/b").status == 200


def test_an_event_without_space_is_retried(team: Cloud) -> None:
    fill(team)
    key = upload(team.send, "b", b"x" * 200)
    with answering("dynamodb", "Query", error("InternalServerError", 500)), pytest.raises(EvictionInProgress):
        announce(key)
    announce(key)
    assert "b" in hashes(team)


def test_a_direct_upload_larger_than_the_quota_is_never_visible(team: Cloud) -> None:
    fill(team)
    announce(upload(team.send, "b", b"x" * 1001))
    assert len(hashes(team)) == 9
    assert team.send("GET", "/v8/artifacts/b").status == 404


def test_a_direct_upload_whose_event_was_lost_is_published_by_the_sweep(team: Cloud) -> None:
    fill(team)
    key = offer(team.send, "b")
    put_object(key, b"x" * 200)
    sweep.sweep(now=clock.now() + DAY + HOUR)
    assert hashes(team)[-1] == "b"
    assert size(team) <= QUOTA


def test_a_rebuild_refuses_and_evicts_nothing(team: Cloud) -> None:
    fill(team)
    change_state(team.team.id, quota_bytes=100)
    rebuild_index.rebuild_index(now=clock.now(), workers=1)
    assert len(hashes(team)) == 9


# Uses ---------------------------------------------------------------------------------------------


def last_use(cloud: Cloud, hash: str) -> datetime | None:
    artifact = index.read_entry(cloud.team.id, ArtifactHash(hash)).artifact
    assert artifact is not None
    return artifact.last_used_at


@pytest.mark.parametrize("after", [timedelta(0), HOUR, DAY - timedelta(seconds=1), DAY, 5 * DAY])
def test_a_use_is_recorded_once_a_day(team: Cloud, after: timedelta) -> None:
    stored = store(team, "b").created_at
    use(team, "b", stored + after)
    assert last_use(team, "b") == (stored if after < DAY else stored + after)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reads_and_existence_checks_count_as_use(team: Cloud, method: str) -> None:
    long_ago = clock.now() - 2 * DAY
    store(team, "b", now=long_ago)
    assert team.send(method, "/v8/artifacts/b").status == 200
    used = last_use(team, "b")
    assert used is not None
    assert used > long_ago + DAY


def test_queries_and_management_requests_do_not_count_as_use(team: Cloud) -> None:
    long_ago = clock.now() - 2 * DAY
    store(team, "b", now=long_ago)
    team.send("POST", "/v8/artifacts", json_body={"hashes": ["b"]})
    team.send("GET", "/v1/artifacts/b")
    assert last_use(team, "b") == long_ago


def test_a_use_that_cannot_be_recorded_does_not_fail_the_read(team: Cloud) -> None:
    store(team, "b", now=clock.now() - 2 * DAY)
    artifact = index.read_entry(team.team.id, ArtifactHash("b")).artifact
    assert artifact is not None
    with unreachable("dynamodb", "UpdateItem"):
        assert reads.fetch(artifact, now=clock.now()) == b"x" * 100


def test_a_use_of_a_replaced_artifact_is_not_recorded(team: Cloud) -> None:
    long_ago = clock.now() - 2 * DAY
    first = store(team, "b", now=long_ago)
    second = store(team, "b", now=clock.now() - HOUR)
    index.note_use(first, at=clock.now())
    assert last_use(team, "b") == second.created_at


@pytest.mark.usefixtures("refusing")
def test_without_eviction_no_use_is_recorded_and_no_artifact_listed(cloud: Cloud) -> None:
    cloud.store("b", now=clock.now() - 2 * DAY)
    cloud.send("GET", "/v8/artifacts/b")
    assert last_use(cloud, "b") is None
    assert list(least_recently_used(cloud.team.id, page=10)) == []


def test_the_daily_check_lists_artifacts_that_were_stored_before(
    team: Cloud, option: SetOption, jobs: list[dict[str, Any]]
) -> None:
    option("over_quota", "refuse")
    fill(team)
    option("over_quota", "evict")
    sweep.sweep(now=clock.now())
    listed = least_recently_used(team.team.id, page=2)
    assert [str(one.upload.hash) for one in listed] == [f"a{number}" for number in range(9)]


def test_an_artifact_larger_than_the_quota_is_refused_before_it_is_stored(team: Cloud) -> None:
    with pytest.raises(LargerThanQuota):
        store(team, "b", QUOTA + 1)
    assert object_keys() == []
    assert read_totals(team.team.id) == Totals()
