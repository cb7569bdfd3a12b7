"""Uploads per day: counted in the write that counts the bytes, and archived by the sweep when the day is over."""

from datetime import UTC, date, datetime, timedelta

import pytest

from larder import aws, clock
from larder.artifacts import rebuild_index, sweep
from larder.artifacts.models import Totals, View
from larder.artifacts.repository.totals import read_totals
from larder.errors import CachingOverLimit
from larder.settings import settings
from larder.teams.state import change_state
from larder.usage.repository import read_days, set_uploads
from larder.usage.uploads import Stored, Uploads
from tests.direct_uploads import announce, upload
from tests.faults import answering, error
from tests.requests import Cloud, Context, invoke

DAY = timedelta(days=1)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
THAT_DAY = NOON.date()


def store(cloud: Cloud, hash: str, body: bytes, *, now: datetime = NOON, quota: int | None = None) -> None:
    cloud.store(hash, body, view=View(quota_bytes=quota), now=now)


def counted(cloud: Cloud, day: date = THAT_DAY) -> Uploads:
    """The count in the totals, which have it until the sweep archives it."""
    return read_totals(cloud.team.id).uploads.get(day, Uploads())


def kept(cloud: Cloud, day: date = THAT_DAY) -> Uploads:
    return read_days(cloud.team.id, [day])[0].uploads


def today() -> date:
    return clock.now().date()


def test_every_upload_counts_including_replacements(cloud: Cloud) -> None:
    store(cloud, "abc", b"12345")
    store(cloud, "abc", b"123")
    store(cloud, "def", b"1234567")
    store(cloud, "def", b"1", now=NOON + DAY)
    assert counted(cloud) == Uploads(count=3, size_bytes=15)
    assert counted(cloud, THAT_DAY + DAY) == Uploads(count=1, size_bytes=1)
    assert read_totals(cloud.team.id) == Totals(size_bytes=4, artifacts=2)


@pytest.mark.usefixtures("refusing")
def test_an_upload_refused_by_the_quota_does_not_count(cloud: Cloud) -> None:
    with pytest.raises(CachingOverLimit):
        store(cloud, "abc", b"12345", quota=4)
    assert counted(cloud) == Uploads()


def test_a_failed_upload_does_not_count(cloud: Cloud) -> None:
    with answering("s3", "PutObject", error("NoSuchBucket", 404)), pytest.raises(aws.ClientError):
        store(cloud, "abc", b"12345")
    assert counted(cloud) == Uploads()


@pytest.mark.parametrize("first_seen_by", ["its event", "a reader"])
def test_a_direct_upload_counts_once_when_it_is_published(cloud: Cloud, first_seen_by: str) -> None:
    key = upload(cloud.send, "abc", b"123456")
    assert counted(cloud, today()) == Uploads()
    if first_seen_by == "a reader":
        assert cloud.send("HEAD", "/v8/artifacts/abc").status == 200
    announce(key)
    announce(key)
    assert counted(cloud, today()) == Uploads(count=1, size_bytes=6)


def test_a_direct_upload_refused_by_the_quota_does_not_count(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=5)
    announce(upload(cloud.send, "abc", b"123456"))
    assert counted(cloud, today()) == Uploads()


def test_a_rebuild_does_not_count_uploads(cloud: Cloud) -> None:
    store(cloud, "abc", b"12345", now=clock.now())
    table = settings().artifacts_table
    for item in aws.dynamodb().scan(TableName=table)["Items"]:
        key = {name: item[name] for name in ("owner", "hash")}
        aws.dynamodb().delete_item(TableName=table, Key=key)
    rebuild_index.rebuild_index(now=clock.now(), workers=1)
    assert read_totals(cloud.team.id) == Totals(size_bytes=5, artifacts=1)
    assert counted(cloud, today()) == Uploads()


def test_the_sweep_archives_the_uploads_of_past_days(cloud: Cloud) -> None:
    store(cloud, "abc", b"12345")
    store(cloud, "def", b"123", now=NOON + DAY)
    for days in range(4):
        sweep.sweep(now=NOON + days * DAY)
        archived = days >= 2
        assert kept(cloud) == (Uploads(count=1, size_bytes=5) if archived else Uploads())
        assert counted(cloud) == (Uploads() if archived else Uploads(count=1, size_bytes=5))
    assert kept(cloud, THAT_DAY + DAY) == Uploads(count=1, size_bytes=3)
    assert read_totals(cloud.team.id) == Totals(size_bytes=8, artifacts=2)
    assert not read_totals(cloud.team.id).uploads


def test_the_function_has_the_permissions_to_archive_them(cloud: Cloud) -> None:
    store(cloud, "abc", b"12345", now=clock.now() - 3 * DAY)
    invoke("artifacts.sweep_artifacts.handler", {}, Context())
    assert kept(cloud, today() - 3 * DAY) == Uploads(count=1, size_bytes=5)


def test_a_crash_while_archiving_loses_and_doubles_nothing(cloud: Cloud) -> None:
    store(cloud, "abc", b"12345")
    set_uploads(cloud.team.id, THAT_DAY, Uploads(count=1, size_bytes=5))
    sweep.sweep(now=NOON + 2 * DAY)
    assert kept(cloud) == Uploads(count=1, size_bytes=5)
    assert counted(cloud) == Uploads()


def stored(cloud: Cloud, *days: date) -> list[Stored | None]:
    return [day.stored for day in read_days(cloud.team.id, days)]


def test_each_check_of_the_totals_notes_what_is_stored(cloud: Cloud) -> None:
    now = clock.now()
    store(cloud, "abc", b"12345", now=now)
    sweep.sweep(now=now)
    store(cloud, "def", b"123", now=now)
    sweep.sweep(now=now + DAY)
    first, second, third = (now.date() + DAY * number for number in range(3))
    assert stored(cloud, first, second, third) == [
        Stored(size_bytes=5, artifacts=1),
        Stored(size_bytes=8, artifacts=2),
        None,
    ]


def test_no_day_is_without_a_check(cloud: Cloud) -> None:
    """Each sweep begins a second earlier in its hour than the one before."""
    first = datetime(2026, 11, 1, 23, 45, tzinfo=UTC)
    store(cloud, "abc", b"12345", now=first)
    for hour in (0, 1, 23, 24, 25):
        sweep.sweep(now=first + timedelta(hours=hour, seconds=-hour))
    days = [first.date(), first.date() + DAY]
    assert stored(cloud, *days) == [Stored(size_bytes=5, artifacts=1)] * 2
