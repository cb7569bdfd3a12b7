"""How long an artifact is kept: days pass, with builds, hourly sweeps and the bucket's own lifecycle."""

from datetime import datetime, timedelta

import pytest
import time_machine

from larder import aws, clock
from larder.artifacts import reads, rebuild_index, storage, sweep
from larder.artifacts.models import UNPROTECTED, ArtifactHash, Totals, View
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import read_totals
from larder.errors import ArtifactNotFound
from larder.settings import settings
from larder.tables import ARTIFACTS, commit
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys, upload, versions
from tests.faults import answering, error
from tests.proofs.aws_calls import Calls, counted
from tests.requests import Cloud, Sender, invoke

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
RETENTION = 30
HASH = ArtifactHash("abc")
BODY = b"x" * 5_000
"""Too large for the index, so that every download reads the bucket."""


class Bucket:
    """What S3's lifecycle does: it hides an object a retention after it was stored, and then deletes it a retention
    later. moto has the rules of the template, but applies none.
    """

    def __init__(self) -> None:
        self._stored_on: dict[str, int] = {}
        self._hidden_on: dict[str, int] = {}

    def end_of_day(self, day: int) -> None:
        name = settings().artifacts_bucket
        listed = aws.s3().list_object_versions(Bucket=name)
        for one in listed.get("Versions", []):
            key, version = one["Key"], one["VersionId"]
            stored_on = self._stored_on.setdefault(version, day)
            if one["IsLatest"] and day - stored_on > RETENTION:
                aws.s3().delete_object(Bucket=name, Key=key)
                self._hidden_on[version] = day
            elif not one["IsLatest"]:
                hidden_on = self._hidden_on.setdefault(version, day)
                if day - hidden_on > RETENTION:
                    aws.s3().delete_object(Bucket=name, Key=key, VersionId=version)


@pytest.fixture(params=["evict", pytest.param("refuse", marks=pytest.mark.thorough)])
def over_quota(request: pytest.FixtureRequest, option: SetOption) -> str:
    choice: str = request.param
    option("over_quota", choice)
    return choice


def made(calls: Calls, operation: str) -> int:
    return [call.operation for call in calls.made].count(operation)


def read(cloud: Cloud, now: datetime) -> bytes:
    """Restore the artifact, as a build does."""
    entry = index.read_entry(cloud.team.id, HASH)
    artifact = reads.find(entry, view=UNPROTECTED, now=now)
    body = reads.fetch(artifact, now=now)
    assert isinstance(body, bytes)
    return body


def days_kept(cloud: Cloud, *, used_on: set[int], until: int, step: int = 1) -> int:
    """Let days pass. Returns the day on which the artifact is gone from index, quota and bucket, at most `until`."""
    start = clock.now()
    cloud.store(HASH, body=BODY, now=start)
    bucket = Bucket()
    for day in range(0, until, step):
        today = start + day * DAY
        if day in used_on:
            assert read(cloud, today) == BODY
        for hour in (1, 2):
            sweep.sweep(now=today + hour * HOUR)
        if read_totals(cloud.team.id) == Totals():
            assert index.read_entry(cloud.team.id, HASH).artifact is None
            assert versions() == []
            with pytest.raises(ArtifactNotFound):
                read(cloud, today)
            return day
        bucket.end_of_day(day)
    return until


def test_an_artifact_that_is_never_used_ends_after_the_retention(cloud: Cloud, over_quota: str) -> None:
    assert days_kept(cloud, used_on=set(), until=70) == 30


@pytest.mark.slow
def test_an_artifact_that_is_used_once_ends_a_retention_after_that(cloud: Cloud, over_quota: str) -> None:
    assert days_kept(cloud, used_on={25}, until=90) == 55


@pytest.mark.slow
def test_an_artifact_that_is_used_every_week_lives_a_year(cloud: Cloud, over_quota: str) -> None:
    with counted() as calls:
        assert days_kept(cloud, used_on=set(range(0, 365, 7)), until=365, step=7) == 365
    assert 9 <= made(calls, "CopyObject") <= 12, "once in a retention"


@pytest.mark.slow
def test_an_early_use_counts_too_if_the_deployment_notes_each_day(cloud: Cloud, option: SetOption) -> None:
    option("over_quota", "evict")
    with counted() as calls:
        assert days_kept(cloud, used_on={3}, until=70) == 33
    assert made(calls, "CopyObject") == 0, "the hidden object can still be read for these days"


@pytest.mark.slow
def test_an_artifact_of_an_own_scope_has_its_own_shorter_retention(cloud: Cloud) -> None:
    start = clock.now()
    scope = "kAbc"
    cloud.store(HASH, BODY, view=View(scope=scope, is_protected=True), now=start)
    bucket = Bucket()
    for day in range(0, 100, 3):
        today = start + day * DAY
        entry = index.read_entry(cloud.team.id, HASH, scope)
        artifact = reads.find_for_use(entry, view=UNPROTECTED, now=today)
        assert reads.fetch(artifact, now=today) == BODY
        sweep.sweep(now=today + HOUR)
        bucket.end_of_day(day)
    assert sweep.sweep(now=start + 105 * DAY).expired == 0
    assert sweep.sweep(now=start + 107 * DAY).expired == 1


def test_lists_and_details_show_the_end_of_the_retention(cloud: Cloud, manage: Sender) -> None:
    now = clock.now()
    cloud.store(HASH, now=now - 10 * DAY)
    read(cloud, now)
    listed = manage("GET", "/v1/artifacts").json["artifacts"]
    details = manage("GET", f"/v1/artifacts/{HASH}").json
    expires_at = int((now + 30 * DAY).timestamp() * 1000)
    assert [listed[0]["expiresAt"], details["expiresAt"]] == pytest.approx([expires_at] * 2, abs=1)


@pytest.fixture
def renewed(cloud: Cloud) -> datetime:
    """An artifact whose object was just copied. The time is that of the sweep."""
    now = clock.now()
    cloud.store(HASH, body=BODY, now=now - 31 * DAY)
    read(cloud, now - 5 * DAY)
    assert sweep.sweep(now=now).renewed == 1
    return now


def test_downloads_that_began_before_the_copy_can_finish(cloud: Cloud, renewed: datetime) -> None:
    assert len(versions()) == 2
    assert sweep.sweep(now=renewed + timedelta(minutes=10)).renewed == 0
    assert len(versions()) == 2
    sweep.sweep(now=renewed + HOUR)
    assert len(versions()) == 1
    assert read(cloud, renewed + HOUR) == BODY


def test_the_event_of_the_copy_changes_nothing(cloud: Cloud, renewed: datetime) -> None:
    (key,) = set(object_keys())
    announce(key, reason="CopyObject")
    assert len(versions()) == 2
    assert read(cloud, renewed) == BODY


def test_the_function_may_copy_and_delete_the_former_version(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store(HASH, body=BODY, now=now - 31 * DAY)
    read(cloud, now - 5 * DAY)
    invoke("artifacts.sweep_artifacts.handler", {})
    assert len(versions()) == 2
    with time_machine.travel(now + HOUR):
        invoke("artifacts.sweep_artifacts.handler", {})
    assert len(versions()) == 1
    assert read(cloud, now + HOUR) == BODY


def test_a_copy_that_is_not_in_the_index_yet_is_used_again(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store(HASH, body=BODY, now=now - 31 * DAY)
    read(cloud, now - 5 * DAY)
    artifact = index.read_entry(cloud.team.id, HASH).artifact
    assert artifact is not None
    copy = storage.copy(artifact)
    assert sweep.sweep(now=now).renewed == 1
    renewed = index.read_entry(cloud.team.id, HASH).artifact
    assert renewed is not None
    assert renewed.version == copy
    assert len(versions()) == 2


def test_a_sweep_that_cannot_copy_tries_again(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store(HASH, body=BODY, now=now - 31 * DAY)
    read(cloud, now - 5 * DAY)
    with answering("s3", "CopyObject", error("SlowDown", 503)):
        assert sweep.sweep(now=now).failed == 1
    assert read(cloud, now) == BODY
    assert sweep.sweep(now=now + HOUR).renewed == 1


def test_an_artifact_whose_object_is_gone_is_deleted(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store(HASH, body=BODY, now=now - 31 * DAY)
    read(cloud, now - 5 * DAY)
    artifact = index.read_entry(cloud.team.id, HASH).artifact
    assert artifact is not None
    storage.delete(artifact.upload)
    assert sweep.sweep(now=now).renewed == 0
    assert read_totals(cloud.team.id) == Totals()


def test_an_upload_that_replaces_the_artifact_during_the_copy_wins(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store(HASH, body=BODY, now=now - 31 * DAY)
    read(cloud, now - 5 * DAY)
    artifact = index.read_entry(cloud.team.id, HASH).artifact
    assert artifact is not None
    version = storage.copy(artifact)
    assert version is not None
    cloud.send("PUT", f"/v8/artifacts/{HASH}", body=b"new")
    assert not index.renew(artifact, version, at=now)
    sweep.sweep(now=clock.now() + HOUR)
    assert cloud.send("GET", f"/v8/artifacts/{HASH}").body == b"new"
    assert len(versions()) == 1


def test_the_copy_of_a_direct_upload_keeps_its_writer(cloud: Cloud, option: SetOption) -> None:
    option("retention_days", 1)
    announce(upload(cloud.send, HASH, BODY))
    later = clock.now() + timedelta(hours=23)
    before = index.read_entry(cloud.team.id, HASH).artifact
    assert before is not None
    index.note_use(before, at=later)
    assert sweep.sweep(now=later + 2 * HOUR).renewed == 1
    assert read(cloud, later + 2 * HOUR) == BODY
    after = index.read_entry(cloud.team.id, HASH).artifact
    assert after is not None
    assert after.writer == before.writer


def test_a_rebuilt_index_keeps_what_was_renewed(cloud: Cloud, renewed: datetime) -> None:
    sweep.sweep(now=renewed + HOUR)
    before = index.read_entry(cloud.team.id, HASH).artifact
    assert before is not None
    commit(ARTIFACTS.delete(*index.artifact_key(before.upload)))
    rebuild_index.rebuild_index(now=clock.now(), workers=1)
    after = index.read_entry(cloud.team.id, HASH).artifact
    assert after is not None
    assert (after.created_at, after.writer) == (before.created_at, before.writer)
    assert read(cloud, clock.now()) == BODY


def test_a_hit_makes_no_further_call_until_the_use_is_worth_noting(cloud: Cloud, option: SetOption) -> None:
    option("over_quota", "refuse")
    now = clock.now()
    cloud.store(HASH, body=BODY, now=now)
    for day, steps in (
        (19, [["BatchGetItem"], ["GetObject"]]),
        (21, [["BatchGetItem"], ["GetObject", "UpdateItem"]]),
        (22, [["BatchGetItem"], ["GetObject"]]),
        (40, [["BatchGetItem"], ["GetObject"]]),
        (42, [["BatchGetItem"], ["GetObject", "UpdateItem"]]),
    ):
        with counted() as calls:
            read(cloud, now + day * DAY)
        assert calls.steps == steps, day


def test_a_use_that_cannot_be_noted_does_not_fail_the_request(cloud: Cloud) -> None:
    now = clock.now()
    cloud.store(HASH, body=BODY, now=now - 25 * DAY)
    with answering("dynamodb", "UpdateItem", error("InternalServerError", 500)):
        assert read(cloud, now) == BODY
