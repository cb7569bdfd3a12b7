"""After every operation, an owner's totals match the index and, after the sweep, the bucket."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from larder import aws, clock
from larder.artifacts import rebuild_index, removals, sweep
from larder.artifacts.breakdown import sum_index
from larder.artifacts.management import delete_artifact
from larder.artifacts.models import HELD_BODY_BYTES, ArtifactHash, Totals
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import read_totals
from larder.settings import settings
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import announce, object_keys, offer, put_object, upload, versions
from tests.requests import Cloud

pytestmark = pytest.mark.usefixtures("removal_jobs")

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def put(cloud: Cloud, hash: str, size: int) -> int:
    return cloud.send("PUT", f"/v8/artifacts/{hash}", body=b"x" * size).status


def direct(cloud: Cloud, hash: str, size: int) -> None:
    announce(upload(cloud.send, hash, b"x" * size))


def uploads(cloud: Cloud) -> None:
    put(cloud, "new", 70)
    direct(cloud, "newer", 800)


def an_upload_that_a_reader_publishes(cloud: Cloud) -> None:
    upload(cloud.send, "new", b"x" * 70)
    cloud.send("HEAD", "/v8/artifacts/new")


def replacements(cloud: Cloud) -> None:
    put(cloud, "a", 1)
    put(cloud, "b", 900)
    put(cloud, "c", 100)


def direct_replacements(cloud: Cloud) -> None:
    direct(cloud, "a", 1)
    direct(cloud, "b", 900)


def an_event_repeated_late(cloud: Cloud) -> None:
    key = upload(cloud.send, "a", b"x" * 70)
    announce(key)
    put(cloud, "a", 3)
    announce(key)


def an_upload_started_before_its_replacement(cloud: Cloud) -> None:
    key = offer(cloud.send, "a")
    put(cloud, "a", 3)
    put_object(key, b"x" * 70)
    announce(key)


def refusals(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=310)
    assert put(cloud, "new", 11) == 403
    assert put(cloud, "a", 111) == 403
    direct(cloud, "new", 11)


def a_refused_upload_with_an_event(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=310)
    put(cloud, "new", 11)
    for key in object_keys():
        announce(key)


def an_empty_upload(cloud: Cloud) -> None:
    direct(cloud, "new", 0)


def a_deletion(cloud: Cloud) -> None:
    delete(cloud, "a")
    delete(cloud, "a")
    delete(cloud, "nothing")


def a_deletion_of_a_pending_upload(cloud: Cloud) -> None:
    key = offer(cloud.send, "a")
    delete(cloud, "a")
    put_object(key, b"x" * 70)
    announce(key)


def delete(cloud: Cloud, hash: str) -> None:
    owner = cloud.team.id
    entry = index.read_entry(owner, ArtifactHash(hash))
    delete_artifact(owner, ArtifactHash(hash), entry, by=cloud.writer, now=clock.now())


def a_removal_by_writer(cloud: Cloud) -> None:
    direct(cloud, "new", 70)
    offer(cloud.send, "newer")
    removals.delete_target_now(cloud.team.id, cloud.key.id, now=clock.now())


def an_object_that_is_gone(cloud: Cloud) -> None:
    put(cloud, "large", HELD_BODY_BYTES + 1)
    (stored,) = [version for version in versions() if "/large/" in version.key]
    aws.s3().delete_object(Bucket=settings().artifacts_bucket, Key=stored.key, VersionId=stored.id)
    assert cloud.send("GET", "/v8/artifacts/large").status == 404


def expiry(cloud: Cloud) -> None:
    for hash in ("old", "older"):
        cloud.store(hash, b"x" * 70, now=clock.now() - 31 * DAY)
    assert read_totals(cloud.team.id).artifacts == 5
    assert sweep.sweep(now=clock.now()).expired == 2


def a_rebuild(cloud: Cloud) -> None:
    put(cloud, "a", 3)
    rebuild_index.rebuild_index(now=clock.now(), workers=1)


CHANGES: dict[Callable[[Cloud], None], Totals] = {
    uploads: Totals(size_bytes=1170, artifacts=5),
    an_upload_that_a_reader_publishes: Totals(size_bytes=370, artifacts=4),
    replacements: Totals(size_bytes=1001, artifacts=3),
    direct_replacements: Totals(size_bytes=1001, artifacts=3),
    an_event_repeated_late: Totals(size_bytes=203, artifacts=3),
    an_upload_started_before_its_replacement: Totals(size_bytes=203, artifacts=3),
    refusals: Totals(size_bytes=300, artifacts=3),
    a_refused_upload_with_an_event: Totals(size_bytes=300, artifacts=3),
    an_empty_upload: Totals(size_bytes=300, artifacts=3),
    a_deletion: Totals(size_bytes=200, artifacts=2),
    a_deletion_of_a_pending_upload: Totals(size_bytes=200, artifacts=2),
    a_removal_by_writer: Totals(),
    an_object_that_is_gone: Totals(size_bytes=300, artifacts=3),
    expiry: Totals(size_bytes=300, artifacts=3),
    a_rebuild: Totals(size_bytes=203, artifacts=3),
}
"""Operations on three artifacts a, b and c of 100 bytes each, and the totals afterwards."""


REFUSALS = {refusals, a_refused_upload_with_an_event}
CASES = [("refuse", change) for change in CHANGES] + [("evict", change) for change in CHANGES if change not in REFUSALS]


@pytest.mark.parametrize(("over_quota", "change"), CASES, ids=lambda value: getattr(value, "__name__", value))
def test_the_totals_are_exact_after(
    over_quota: str, change: Callable[[Cloud], None], cloud: Cloud, option: SetOption
) -> None:
    option("over_quota", over_quota)
    for hash in ("a", "b", "c"):
        assert put(cloud, hash, 100) == 202
    change(cloud)
    totals = read_totals(cloud.team.id)
    assert totals == CHANGES[change]
    assert sum_index(cloud.team.id).totals == totals
    for hours in (1, 26, 27):
        sweep.sweep(now=clock.now() + hours * HOUR)
    assert read_totals(cloud.team.id) == totals
    assert len(object_keys()) == totals.artifacts
