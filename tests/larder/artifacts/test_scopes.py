"""Artifacts in own scopes: their totals, retention and removal."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from larder import clock
from larder.artifacts import rebuild_index, removals, sweep
from larder.artifacts.breakdown import sum_index
from larder.artifacts.models import parse_object_key
from larder.artifacts.repository import index
from larder.artifacts.repository.totals import read_totals, totals_key, try_add_to_totals
from larder.errors import ScopesFull
from larder.tables import ARTIFACTS, commit
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import object_keys
from tests.requests import Cloud
from tests.trust.scene import Scene, make_scene, protected, put, read

pytestmark = pytest.mark.usefixtures("removal_jobs")

DAY = timedelta(days=1)


@pytest.fixture
def scene(cloud: Cloud) -> Iterator[Scene]:
    with protected(cloud):
        yield make_scene(cloud)


def check_totals(cloud: Cloud, *, size_bytes: int, scoped_bytes: int) -> None:
    totals = read_totals(cloud.team.id)
    assert totals == sum_index(cloud.team.id).totals
    assert (totals.size_bytes, totals.scoped_bytes) == (size_bytes, scoped_bytes)


@pytest.mark.parametrize("over_quota", ["refuse", "evict"])
def test_totals_count_own_scopes(scene: Scene, over_quota: str, option: SetOption) -> None:
    option("over_quota", over_quota)
    cloud = scene.cloud
    put(scene.main, "abc", bytes(100))
    put(scene.pr, "def", bytes(30))
    check_totals(cloud, size_bytes=130, scoped_bytes=30)
    put(scene.pr, "def", bytes(50), preflight=True)
    put(scene.laptop, "def", bytes(7))
    check_totals(cloud, size_bytes=157, scoped_bytes=57)
    put(scene.pr, "def", bytes(20))
    check_totals(cloud, size_bytes=127, scoped_bytes=27)
    removals.delete_target_now(cloud.team.id, cloud.key.id, now=clock.now())
    check_totals(cloud, size_bytes=107, scoped_bytes=7)
    assert read(scene.pr, "def") is None


def test_own_scopes_expire_earlier(scene: Scene) -> None:
    put(scene.main, "abc", bytes(100))
    put(scene.pr, "def", bytes(30))
    sweep.sweep(now=clock.now() + 7 * DAY - timedelta(minutes=1))
    check_totals(scene.cloud, size_bytes=130, scoped_bytes=30)
    sweep.sweep(now=clock.now() + 7 * DAY + timedelta(minutes=15))
    check_totals(scene.cloud, size_bytes=100, scoped_bytes=0)


def test_own_scopes_expire_with_the_retention_if_that_is_shorter(scene: Scene, option: SetOption) -> None:
    option("retention_days", 2)
    put(scene.pr, "def", bytes(30))
    sweep.sweep(now=clock.now() + 2 * DAY + timedelta(minutes=15))
    check_totals(scene.cloud, size_bytes=0, scoped_bytes=0)


def test_the_sweep_corrects_a_drift_of_scoped_bytes_alone(scene: Scene) -> None:
    cloud, now = scene.cloud, clock.now()
    put(scene.pr, "def", bytes(30))
    commit(ARTIFACTS.update(*totals_key(cloud.team.id), add={"scoped_bytes": 500}))
    sweep.sweep(now=now + timedelta(hours=1))
    assert read_totals(cloud.team.id).scoped_bytes == 530
    sweep.sweep(now=now + timedelta(hours=2))
    check_totals(cloud, size_bytes=30, scoped_bytes=30)


def test_a_rebuilt_index_has_the_same_scopes(scene: Scene) -> None:
    cloud = scene.cloud
    put(scene.main, "abc", bytes(100))
    put(scene.pr, "def", bytes(40), preflight=True)
    put(scene.laptop, "def", bytes(30))
    for item in list(index.stored_by(cloud.team.id)):
        commit(ARTIFACTS.delete(*index.artifact_key(item.upload)))
    commit(ARTIFACTS.delete(*totals_key(cloud.team.id)))
    assert read(scene.pr, "def") is None
    report = rebuild_index.rebuild_index(now=clock.now())
    assert (report.objects, report.indexed) == (3, 3)
    check_totals(cloud, size_bytes=170, scoped_bytes=70)
    assert (read(scene.main, "abc"), read(scene.main, "def")) == (bytes(100), None)
    assert (read(scene.pr, "def"), read(scene.laptop, "def")) == (bytes(40), bytes(30))


def test_the_first_upload_of_an_owner_draws_and_is_held_to_the_share(cloud: Cloud) -> None:
    """The totals do not exist yet, so the upload draws bytes from the deployment."""
    with pytest.raises(ScopesFull):
        try_add_to_totals(cloud.team.id, 51, 1, quota_bytes=100, scoped=True)
    change_state(cloud.team.id, quota_bytes=10_000)
    with protected(cloud):
        scene = make_scene(cloud)
        assert scene.pr("PUT", "/v8/artifacts/abc", body=bytes(1001)).status == 403
        put(scene.pr, "abc", bytes(1000))
        check_totals(cloud, size_bytes=1000, scoped_bytes=1000)


def test_the_key_of_an_object_names_its_scope(scene: Scene) -> None:
    put(scene.pr, "abc", bytes(1))
    (key,) = object_keys()
    upload = parse_object_key(key)
    assert upload is not None
    assert (upload.hash, upload.scope) == ("abc", f"k{scene.cloud.key.id}")
    assert upload.object_key == key
    for foreign in ("abc.", "abc.x1", "abc.k", "abc.k1.k2", "abc.k1#pending", ".k1"):
        assert parse_object_key(key.replace(upload.index_key, foreign)) is None
