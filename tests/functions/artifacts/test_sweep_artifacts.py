"""The hourly schedule"""

import json
from collections import Counter
from datetime import timedelta
from functools import partial
from io import StringIO
from typing import Any

import pytest
import time_machine

from larder import aws, clock
from larder.artifacts import sweep
from larder.artifacts.models import ArtifactHash, Totals
from larder.artifacts.repository import checks
from larder.artifacts.repository.allotments import set_counted
from larder.artifacts.repository.index import discarded_put, read_entry
from larder.artifacts.repository.table import shard
from larder.artifacts.repository.totals import add_to_totals, read_totals
from larder.artifacts.sweep import SweepReport
from larder.artifacts.sweep_jobs import MOST_CHECKS, MOST_SWEEPS, CheckJob, SweepJob, hand_over
from larder.clock import to_ms
from larder.settings import settings
from larder.tables import Table, commit
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys, offer, put_object, upload, versions
from tests.faults import answering, error, reply
from tests.invocations import handed_over
from tests.proofs.aws_calls import counted
from tests.proofs.stored import index_keys
from tests.requests import Cloud, Context, invoke

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_an_expired_artifact_is_deleted_after_its_last_reader(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store("old", now=now - 30 * DAY - timedelta(minutes=10))
    cloud.store("young", now=now - 29 * DAY)
    assert sweep.sweep(now=now) == SweepReport()
    assert sweep.sweep(now=now + HOUR) == SweepReport(expired=1)
    assert read_entry(cloud.team.id, ArtifactHash("old")).artifact is None
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=1)
    assert len(object_keys()) == 1


@pytest.mark.slow
def test_artifacts_are_deleted_by_the_hundred(cloud: Cloud) -> None:
    now = clock.now()
    for number in range(120):
        cloud.store(f"a{number}", b"x" * (5_000 if number < 3 else 8), now=now - 31 * DAY)
    with counted() as calls:
        assert sweep.sweep(now=now).expired == 120
    made = Counter(call for step in calls.steps for call in step)
    assert (made["DeleteObjects"], made["ListObjectVersions"], made["TransactWriteItems"]) == (8, 0, 0), "one a shard"
    assert made["DeleteItem"] == 120, "bodies next to the index have ended by themselves"
    assert (object_keys(), read_totals(cloud.team.id)) == ([], Totals())


def test_what_a_store_did_not_delete_is_tried_again(cloud: Cloud) -> None:
    now = clock.now()
    for hash in ("a", "b"):
        cloud.store(hash, now=now - 31 * DAY)
    (stuck, _) = sorted(object_keys())
    refused = reply({"Errors": [{"Key": stuck, "Code": "InternalError"}]})
    with answering("s3", "DeleteObjects", refused):
        swept = sweep.sweep(now=now)
    assert (swept.expired, swept.failed) == (1, 1)
    with answering("dynamodb", "DeleteItem", error("InternalServerError", 500), times=1):
        swept = sweep.sweep(now=now)
    assert (swept.expired, swept.failed) == (0, 1)
    assert sweep.sweep(now=now).expired == 1
    assert read_totals(cloud.team.id) == Totals()


def test_a_replaced_object_is_deleted_after_its_last_reader(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"first")
    cloud.send("PUT", "/v8/artifacts/abc", body=b"second")
    now = clock.now()
    assert sweep.sweep(now=now) == SweepReport()
    assert sweep.sweep(now=now + HOUR) == SweepReport(objects_deleted=1)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"second"
    assert len(object_keys()) == 1


def test_an_upload_that_its_function_published_after_an_eviction_is_kept(cloud: Cloud) -> None:
    """S3's event published it first, and its eviction discarded the object."""
    now = clock.now()
    cloud.store("abc", body=b"x" * 5_000, now=now)
    artifact = read_entry(cloud.team.id, ArtifactHash("abc")).artifact
    assert artifact is not None
    commit(discarded_put(artifact.upload, now))
    sweep.sweep(now=now + DAY)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"x" * 5_000
    assert sweep.sweep(now=now + DAY) == SweepReport()


@pytest.mark.parametrize("replacing", [False, True])
def test_an_upload_that_never_arrives_is_deleted_after_a_day(cloud: Cloud, replacing: bool) -> None:
    if replacing:
        cloud.store("abc")
    offer(cloud.send, "abc")
    artifact = read_entry(cloud.team.id, ArtifactHash("abc")).artifact
    assert bool(artifact and artifact.offered) is replacing
    now = clock.now()
    assert sweep.sweep(now=now + DAY - HOUR) == SweepReport()
    assert sweep.sweep(now=now + DAY + HOUR) == SweepReport(uploads_given_up=1)
    entry = read_entry(cloud.team.id, ArtifactHash("abc"))
    assert (entry.pending, entry.artifact and entry.artifact.offered) == (None, None)


def test_what_a_version_without_partitions_stored_meanwhile_is_forgotten(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after going back to 0.2.0 and forth again."""
    cloud.store("abc", b"first")
    with monkeypatch.context() as older:
        older.setattr("larder.artifacts.repository.table.ID_LENGTH", 0)
        assert cloud.send("GET", "/v8/artifacts/abc").status == 404
        cloud.store("abc", b"meanwhile")
        offer(cloud.send, "def")
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"first"
    for days in (31, 32, 33):
        assert sweep.sweep(now=clock.now() + days * DAY).failed == 0
    assert [hash for _, hash in index_keys() if hash not in ("#totals", "#storage", "#allotted")] == []
    assert read_totals(cloud.team.id) == Totals()


def test_the_sweep_publishes_an_upload_whose_event_was_lost(cloud: Cloud) -> None:
    upload(cloud.send, "abc", b"artifact")
    assert sweep.sweep(now=clock.now() + DAY + HOUR) == SweepReport(uploads_published=1)
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=1)


def test_an_upload_that_arrives_after_it_was_deleted_is_published_by_its_event(cloud: Cloud) -> None:
    key = offer(cloud.send, "abc")
    sweep.sweep(now=clock.now() + DAY + HOUR)
    put_object(key, b"late")
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"late"


def test_a_longer_retention_applies_to_stored_artifacts(cloud: Cloud, option: SetOption) -> None:
    now = clock.now()
    cloud.store("abc", now=now - 31 * DAY)
    option("retention_days", 60)
    assert sweep.sweep(now=now) == SweepReport()
    assert sweep.sweep(now=now + 30 * DAY) == SweepReport(expired=1)


def test_every_version_of_a_deleted_artifact_is_deleted(cloud: Cloud) -> None:
    """Also one whose event was lost, and a delete marker that an operator has made by hand."""
    key = upload(cloud.send, "abc", b"published")
    announce(key)
    put_object(key, b"its event was lost")
    aws.s3().delete_object(Bucket=settings().artifacts_bucket, Key=key)
    sweep.sweep(now=clock.now() + 31 * DAY)
    sweep.sweep(now=clock.now() + 31 * DAY + HOUR)
    assert versions() == []


def test_a_second_sweep_has_nothing_to_do(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store("old", now=now - 31 * DAY)
    sweep.sweep(now=now)
    sweep.sweep(now=now + HOUR)
    assert sweep.sweep(now=now + HOUR) == SweepReport()


def test_the_function_starts_itself_for_what_it_had_no_time_for(cloud: Cloud) -> None:
    cloud.store("old", now=clock.now() - 31 * DAY)
    with handed_over(Context.function_name) as jobs:
        invoke("artifacts.sweep_artifacts.handler", {}, Context(remaining_ms=1_000))
    assert len(object_keys()) == 1
    shard = shard_of(cloud, "old")
    assert {"SweepJob": {"shard": shard, "calls": 1}} in jobs
    assert len(jobs) <= 9, "one for each shard"
    with handed_over(Context.function_name) as more:
        invoke("artifacts.sweep_artifacts.handler", {"SweepJob": {"shard": shard, "calls": 1}})
    assert (object_keys(), more) == ([], [])


def test_the_next_sweep_goes_on_if_a_job_was_handed_on_for_an_hour(cloud: Cloud) -> None:
    cloud.store("old", now=clock.now() - 31 * DAY)
    job = SweepJob(shard=shard_of(cloud, "old"), calls=MOST_SWEEPS)
    assert sweep.sweep(now=clock.now(), job=job, has_time=lambda: False).rest == []
    assert sweep.sweep(now=clock.now()).expired == 1


def shard_of(cloud: Cloud, hash: str) -> str:
    artifact = read_entry(cloud.team.id, ArtifactHash(hash)).artifact
    assert artifact is not None
    return shard(artifact.upload.id)


def test_the_function_publishes_arrived_uploads_and_deletes_the_others(cloud: Cloud) -> None:
    yesterday = clock.now() - DAY - HOUR
    for hash in (ArtifactHash("a1"), ArtifactHash("a2")):
        cloud.offer(hash, now=yesterday)
    pending = read_entry(cloud.team.id, ArtifactHash("a1")).pending
    assert pending is not None
    put_object(pending.upload.object_key, b"artifact")
    invoke("artifacts.sweep_artifacts.handler", {})
    assert read_entry(cloud.team.id, ArtifactHash("a1")).artifact is not None
    assert read_entry(cloud.team.id, ArtifactHash("a2")).pending is None


def test_the_function_deletes_the_object_of_an_expired_artifact(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store("old", now=now - 31 * DAY)
    invoke("artifacts.sweep_artifacts.handler", {})
    assert object_keys() == []


def test_the_second_check_corrects_totals_after_a_crash(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store("abc", now=now)
    add_to_totals(cloud.team.id, 500, 1)
    assert sweep.sweep(now=now) == SweepReport()
    assert sweep.sweep(now=now + HOUR) == SweepReport(totals_corrected=1)
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=1)


def test_an_upload_in_progress_is_not_counted_as_drift(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store("a1", now=now)
    add_to_totals(cloud.team.id, 500, 1)
    sweep.sweep(now=now)
    add_to_totals(cloud.team.id, -500, -1)
    assert sweep.sweep(now=now + HOUR) == SweepReport()
    assert sweep.sweep(now=now + 2 * HOUR) == SweepReport()
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=1)


def test_correct_totals_are_checked_once_a_day(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store("abc", now=now)
    sweep.sweep(now=now)
    add_to_totals(cloud.team.id, 500, 1)
    for hours in range(1, 24):
        assert sweep.sweep(now=now + hours * HOUR) == SweepReport()
    sweep.sweep(now=now + DAY)
    assert sweep.sweep(now=now + DAY + HOUR) == SweepReport(totals_corrected=1)


def swept(log: StringIO) -> dict[str, Any]:
    """The last log line of the sweep."""
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    line: dict[str, Any] = [line for line in lines if line["message"] == "swept"][-1]
    return line


def test_drift_of_the_totals_is_a_metric(cloud: Cloud, log: StringIO) -> None:
    cloud.store("abc", now=clock.now())
    sweep.sweep(now=clock.now() - 2 * HOUR)
    add_to_totals(cloud.team.id, -500, -2)
    add_to_totals(cloud.user.id, 70, 1)
    # The previous sweep has detected the drift of the user's totals.
    sweep.sweep(now=clock.now() - HOUR)
    invoke("artifacts.sweep_artifacts.handler", {})
    line = swept(log)
    assert (line["TotalsChecked"], line["TotalsCorrected"]) == (1, 1)
    assert (line["TotalsCorrectedBytes"], line["TotalsCorrectedArtifacts"]) == (70, 1)
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    units = {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]}
    assert units == {
        "TotalsChecked": "Count",
        "TotalsCorrected": "Count",
        "TotalsCorrectedBytes": "Bytes",
        "TotalsCorrectedArtifacts": "Count",
    }


def test_totals_that_are_too_low_count_as_drift_like_ones_that_are_too_high(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store("abc", now=now)
    add_to_totals(cloud.team.id, -5, -1)
    first, second = sweep.sweep(now=now), sweep.sweep(now=now + HOUR)
    assert (first.totals_checked, first.totals_drifting, first.totals_corrected) == (1, 1, 0)
    assert (second.totals_checked, second.totals_drifting, second.totals_corrected) == (1, 0, 1)
    assert (second.corrected_bytes, second.corrected_artifacts) == (5, 1)
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=1)


@pytest.fixture
def pages_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Table.page
    monkeypatch.setattr(checks, "_PAUSE_S", 0)
    monkeypatch.setattr(Table, "page", lambda *where, **more: page(*where, **{**more, "limit": 2}))


@pytest.mark.usefixtures("pages_of_two")
def test_a_check_of_many_artifacts_goes_on_in_further_calls(cloud: Cloud) -> None:
    now = clock.now()
    set_counted()
    for number in range(7):
        cloud.store(f"a{number}", b"x" * 2**number, now=now - number * DAY)
    add_to_totals(cloud.team.id, 5, 1)
    for hours, size_bytes in ((0, 132), (1, 127)):
        looks = iter([True])
        with time_machine.travel(now + hours * HOUR), handed_over(Context.function_name) as jobs:
            (check,) = sweep.sweep(now=clock.now(), has_time=partial(next, looks, False)).rest
            assert sweep.sweep(now=clock.now()).totals_checked == 0, "it is not begun again"
            hand_over(check, function=Context.function_name)
            calls = 0
            while jobs:
                invoke("artifacts.sweep_artifacts.handler", jobs.pop(0), Context(remaining_ms=1_000))
                calls += 1
        assert calls >= 3
        assert read_totals(cloud.team.id).size_bytes == size_bytes


@pytest.mark.usefixtures("pages_of_two")
def test_a_check_that_takes_too_long_is_begun_again_after_a_day(cloud: Cloud) -> None:
    now = clock.now()
    set_counted()
    for number in range(3):
        cloud.store(f"a{number}", now=now)
    job = CheckJob(owner=cloud.team.id, now_ms=to_ms(now), totals=Totals(), drift_before=Totals(), calls=MOST_CHECKS)
    report = sweep.check_totals(job, has_time=lambda: False)
    assert (report.totals_too_large, report.rest) == (1, [])
    assert sweep.sweep(now=now + HOUR).totals_checked == 0
    assert sweep.sweep(now=now + DAY).totals_checked == 1


def test_a_sweep_without_work_reports_no_metric(cloud: Cloud, log: StringIO) -> None:
    invoke("artifacts.sweep_artifacts.handler", {})
    line = swept(log)
    assert "_aws" not in line
    assert (line["totals_checked"], line["totals_corrected"]) == (0, 0)


def test_a_check_that_conflicts_with_an_eviction_is_retried(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store("abc", now=now)
    add_to_totals(cloud.team.id, 500, 1)
    sweep.sweep(now=now)
    with answering("dynamodb", "UpdateItem", error("TransactionConflictException"), times=1):
        assert sweep.sweep(now=now + HOUR).totals_corrected == 1
    assert sweep.sweep(now=now + 2 * HOUR).totals_corrected == 0
