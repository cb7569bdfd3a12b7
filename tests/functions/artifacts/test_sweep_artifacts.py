"""The hourly schedule"""

from datetime import datetime, timedelta

from larder import clock
from larder.artifacts import repository, service
from larder.artifacts.models import ArtifactHash, ArtifactMetadata, Totals
from larder.artifacts.repository import read_entry, read_totals
from larder.artifacts.service import SweepReport
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys, offer, put_object, upload
from tests.requests import Cloud, Context, invoke

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def store(cloud: Cloud, hash: str, *, now: datetime) -> None:
    service.store(
        cloud.team.id,
        ArtifactHash(hash),
        b"artifact",
        ArtifactMetadata(),
        writer=cloud.writer,
        replaces=None,
        quota_bytes=None,
        now=now,
    )


def test_an_expired_artifact_leaves_the_index_and_then_the_bucket(cloud: Cloud) -> None:
    now = clock.now()
    store(cloud, "old", now=now - 31 * DAY)
    store(cloud, "young", now=now - 29 * DAY)
    assert service.sweep(now=now) == SweepReport(expired=1)
    assert read_entry(cloud.team.id, ArtifactHash("old")).artifact is None
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=1)
    assert service.sweep(now=now + HOUR) == SweepReport(objects_deleted=1)
    assert len(object_keys()) == 1


def test_a_replaced_object_is_deleted_when_nobody_can_be_reading_it_any_more(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"first")
    cloud.send("PUT", "/v8/artifacts/abc", body=b"second")
    now = clock.now()
    assert service.sweep(now=now) == SweepReport()
    assert service.sweep(now=now + HOUR) == SweepReport(objects_deleted=1)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"second"
    assert len(object_keys()) == 1


def test_an_upload_that_never_came_is_given_up_after_a_day(cloud: Cloud) -> None:
    offer(cloud.send, "abc")
    now = clock.now()
    assert service.sweep(now=now + DAY - HOUR) == SweepReport()
    assert service.sweep(now=now + DAY + HOUR) == SweepReport(uploads_given_up=1)
    assert read_entry(cloud.team.id, ArtifactHash("abc")).pending is None


def test_an_upload_whose_event_was_lost_is_settled_by_the_sweep(cloud: Cloud) -> None:
    upload(cloud.send, "abc", b"artifact")
    assert service.sweep(now=clock.now() + DAY + HOUR) == SweepReport(uploads_settled=1)
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=1)


def test_an_upload_that_came_after_it_was_given_up_is_settled_by_its_event(cloud: Cloud) -> None:
    key = offer(cloud.send, "abc")
    service.sweep(now=clock.now() + DAY + HOUR)
    put_object(key, b"late")
    announce(key)
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"late"


def test_a_longer_retention_holds_for_what_is_stored_already(
    cloud: Cloud, option: SetOption
) -> None:
    now = clock.now()
    store(cloud, "abc", now=now - 31 * DAY)
    option("retention_days", 60)
    assert service.sweep(now=now) == SweepReport()
    assert service.sweep(now=now + 30 * DAY) == SweepReport(expired=1)


def test_a_second_sweep_finds_nothing_to_do(cloud: Cloud) -> None:
    now = clock.now()
    store(cloud, "old", now=now - 31 * DAY)
    service.sweep(now=now)
    service.sweep(now=now + HOUR)
    assert service.sweep(now=now + HOUR) == SweepReport()


def test_the_function_stops_in_time_and_leaves_the_rest_to_the_next_sweep(cloud: Cloud) -> None:
    store(cloud, "old", now=clock.now() - 31 * DAY)
    invoke("artifacts.sweep_artifacts.handler", {}, Context(remaining_ms=1_000))
    assert read_entry(cloud.team.id, ArtifactHash("old")).artifact is not None
    invoke("artifacts.sweep_artifacts.handler", {}, Context(remaining_ms=60_000))
    assert read_entry(cloud.team.id, ArtifactHash("old")).artifact is None


def test_totals_that_a_crash_left_wrong_are_corrected_by_the_second_look(cloud: Cloud) -> None:
    now = clock.now()
    store(cloud, "abc", now=now)
    repository.add_to_totals(cloud.team.id, 500, 1, quota_bytes=None)
    assert service.sweep(now=now) == SweepReport()
    assert service.sweep(now=now + HOUR) == SweepReport(totals_corrected=1)
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=1)


def test_an_upload_under_way_is_not_taken_for_a_drift(cloud: Cloud) -> None:
    now = clock.now()
    store(cloud, "a1", now=now)
    repository.add_to_totals(cloud.team.id, 500, 1, quota_bytes=None)
    service.sweep(now=now)
    repository.add_to_totals(cloud.team.id, -500, -1, quota_bytes=None)
    assert service.sweep(now=now + HOUR) == SweepReport()
    assert service.sweep(now=now + 2 * HOUR) == SweepReport()
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=1)


def test_right_totals_are_looked_at_once_a_day(cloud: Cloud) -> None:
    now = clock.now()
    store(cloud, "abc", now=now)
    service.sweep(now=now)
    repository.add_to_totals(cloud.team.id, 500, 1, quota_bytes=None)
    for hours in range(1, 24):
        assert service.sweep(now=now + hours * HOUR) == SweepReport()
    service.sweep(now=now + DAY)
    assert service.sweep(now=now + DAY + HOUR) == SweepReport(totals_corrected=1)
