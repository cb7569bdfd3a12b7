"""turbo behind API Gateway's throttle: no hit is lost with the default limits, and what happens below them."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.permissions import TEMPLATE

from . import turbo
from .cloud import LocalCloud, running
from .monorepo import Package, copy_with_sources_of_its_own, generate, output_digests, wipe_outputs_and_local_cache

pytestmark = pytest.mark.e2e

JOBS = int(os.environ.get("TURBO_JOBS") or 6)
# Few and small, because all jobs share this machine. One is returned from the index, one from the bucket, and S3
# returns the largest.
PACKAGES = (Package("tiny", 1_000), Package("small", 50_000), Package("large", 6_000_000))
ALIKE = tuple(Package(f"lib-{number}", 1_000) for number in range(10))
RATE, BURST = (TEMPLATE["Parameters"][f"Throttling{name}"]["Default"] for name in ("Rate", "Burst"))

Build = Callable[[tuple[Package, ...]], tuple[turbo.Client, Path]]


@pytest.fixture
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalCloud]:
    with running(request.config.rootpath, tmp_path / "data") as server:
        yield server


@pytest.fixture
def build(request: pytest.FixtureRequest, tmp_path: Path, cloud: LocalCloud, home: Path) -> Build:
    """Builds a monorepo of these packages, and returns its client and the folder, as fresh as a clone."""

    def build(packages: tuple[Package, ...]) -> tuple[turbo.Client, Path]:
        root, configuration = tmp_path / "monorepo", turbo.turbo_json(turbo.NEWEST)
        generate(tmp_path / "plain", packages, home=home)
        copy_with_sources_of_its_own(tmp_path / "plain", root, seed="throttled", turbo_json=configuration, home=home)
        command = turbo.installed(turbo.NEWEST, request.config.rootpath / ".tools" / "turbo")
        client = turbo.Client(command, turbo.NEWEST, cloud.turbo_environment, home, preflight=True)
        turbo.build(client, root)
        wipe_outputs_and_local_cache(root)
        return client, root

    return build


def restart(cloud: LocalCloud, **options: str) -> None:
    cloud.stop()
    cloud.options = options
    cloud.start()


@pytest.mark.thorough
def test_jobs_at_once_get_every_hit_with_the_default_limits(cloud: LocalCloud, build: Build, tmp_path: Path) -> None:
    client, root = build(PACKAGES)
    clones = [tmp_path / f"job-{number}" for number in range(JOBS)]
    for clone in clones:
        shutil.copytree(root, clone, symlinks=True)
    restart(cloud, THROTTLE=f"{RATE}/{BURST}")
    mark = cloud.log_size()
    with ThreadPoolExecutor(JOBS) as jobs:
        runs = list(jobs.map(lambda clone: turbo.build(client, clone), clones))
    names = {package.name for package in PACKAGES}
    assert [run.remote_hits for run in runs] == [names] * JOBS
    first, *others = (output_digests(clone) for clone in clones)
    assert first.keys() == names
    assert all(other == first for other in others)
    statuses = Counter((request.method, request.status) for request in cloud.requests_since(mark))
    assert statuses["OPTIONS", 204] >= JOBS * len(PACKAGES), statuses
    assert not [status for _, status in statuses if status >= 400], statuses


@pytest.mark.thorough
def test_a_throttled_announcement_costs_the_token_and_so_the_hit(cloud: LocalCloud, build: Build) -> None:
    client, root = build(ALIKE)
    restart(cloud, THROTTLE="1/2")
    mark = cloud.log_size()
    run = turbo.build(client, root)
    assert run.total == len(ALIKE)
    assert len(run.remote_hits) < len(ALIKE)
    requests = cloud.requests_since(mark)
    announced = Counter(request.path for request in requests if (request.method, request.status) == ("OPTIONS", 429))
    unauthorized = [request for request in requests if request.status == 401]
    # The token is right: it is missing only where both tries of the announcement were refused.
    assert unauthorized
    assert all(announced[one.path] >= 2 for one in unauthorized)


@pytest.mark.thorough
def test_a_build_succeeds_while_lambda_has_no_function_left(cloud: LocalCloud, build: Build) -> None:
    client, root = build(ALIKE)
    restart(cloud, CONCURRENCY="1")
    mark = cloud.log_size()
    # The one function is often fast enough for a whole build.
    for _ in range(20):
        run = turbo.build(client, root)
        assert run.total == len(ALIKE)
        refused = {request.method for request in cloud.requests_since(mark) if request.status == 503}
        if "OPTIONS" in refused:
            return
        wipe_outputs_and_local_cache(root)
    pytest.fail("no announcement was refused")
