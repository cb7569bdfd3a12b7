"""The results of turbo's dry run and its events, compared with the data on the server."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import turbo
from .cloud import LocalCloud, Request
from .monorepo import (
    LARGE_PACKAGES,
    copy_with_sources_of_its_own,
    head_commit,
    short_sample_packages,
    wipe_outputs_and_local_cache,
)

pytestmark = pytest.mark.e2e

EVERY_PACKAGE = frozenset(package.name for package in short_sample_packages())
INLINE_PACKAGES = EVERY_PACKAGE - LARGE_PACKAGES.keys()
COUNTERS = ("events", "hits", "misses", "local_hits", "local_misses", "remote_hits", "remote_misses", "time_saved_ms")
EVENTS_SECONDS = 60


@pytest.fixture(scope="module")
def cold_dry_and_warm(
    client: Callable[..., turbo.Client],
    short_monorepo: Path,
    local_cloud: LocalCloud,
    home: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Runs]:
    """A build, then a dry run and a second build without outputs and local cache. No run uses preflights."""
    newest, root = client(turbo.NEWEST), tmp_path_factory.mktemp("runs") / "monorepo"
    copy_with_sources_of_its_own(
        short_monorepo, root, seed="runs", turbo_json=turbo.turbo_json(turbo.NEWEST), home=home
    )
    turbo.build(newest, root)
    wipe_outputs_and_local_cache(root)
    mark = local_cloud.log_size()
    announced = turbo.dry_run(newest, root)
    asked = local_cloud.requests_since(mark)
    mark = local_cloud.log_size()
    warm = turbo.build(newest, root)
    downloads = {each.path: each.status for each in local_cloud.requests_since(mark)}
    yield Runs(
        announced=announced,
        asked=asked,
        restored=[task for task in warm.tasks if task.remote],
        redirected={task.package for task in warm.tasks if downloads.get(f"/v8/artifacts/{task.hash}") == 302},
        commit=head_commit(root),
    )
    shutil.rmtree(root)


def test_a_dry_run_shows_the_remote_hits_from_queries_alone(cold_dry_and_warm: Runs) -> None:
    runs = cold_dry_and_warm

    requests = [(each.method, each.path, each.status) for each in runs.asked]
    # turbo collects hashes for a moment before each query. On a busy machine there are several queries.
    assert 1 <= requests.count(("POST", "/v8/artifacts", 200)) <= 3
    assert not [method for method, _, _ in requests if method == "HEAD"]
    by_status = {
        status: {task.package for task in runs.announced if task.cache["status"] == status}
        for status in ("HIT", "MISS")
    }
    assert by_status == {"HIT": INLINE_PACKAGES, "MISS": LARGE_PACKAGES.keys()}
    assert {task.cache["source"] for task in runs.announced if task.remote} == {"REMOTE"}


def test_a_dry_run_shows_the_time_saved(cold_dry_and_warm: Runs) -> None:
    runs = cold_dry_and_warm

    announced = {task.package: task.time_saved_ms for task in runs.announced if task.remote}
    assert min(announced.values()) > 0
    # A run reads the duration from the final response of a download. S3's responses have none.
    assert {task.package: task.time_saved_ms for task in runs.restored} == {
        package: 0 if package in runs.redirected else saved for package, saved in announced.items()
    }


def test_a_hit_through_the_api_names_the_commit_that_was_built(cold_dry_and_warm: Runs) -> None:
    runs = cold_dry_and_warm

    commits = {task.cache["sha"] for task in runs.restored if task.package not in runs.redirected}
    assert commits == {runs.commit}


# With preflight, the client sends its events with the token only if their preflight allows it.
@pytest.mark.parametrize(
    "preflight", [pytest.param(False, marks=pytest.mark.thorough), True], ids=["normal", "preflight"]
)
def test_the_usage_of_a_day_counts_what_turbo_reports(
    preflight: bool,
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    short_monorepo: Path,
    local_cloud: LocalCloud,
) -> None:
    newest = client(turbo.NEWEST, preflight=preflight)
    root = fresh_monorepo(turbo.NEWEST, seed=f"usage {preflight}", template=short_monorepo)
    packages = len(EVERY_PACKAGE)
    stored = packages if preflight else len(INLINE_PACKAGES)
    before = _usage(local_cloud)

    turbo.build(newest, root)
    cold = {"local_misses": packages, "remote_misses": packages}
    expected = _sum(before, cold, misses=2 * packages, events=2 * packages)
    assert _usage_once_it_is(expected, local_cloud) == expected

    wipe_outputs_and_local_cache(root)
    warm = turbo.build(newest, root)
    assert len(warm.remote_hits) == stored
    counted = {
        "local_misses": packages,
        "remote_hits": stored,
        "remote_misses": packages - stored,
        "time_saved_ms": sum(task.time_saved_ms for task in warm.tasks if task.remote),
    }
    expected = _sum(expected, counted, hits=stored, misses=2 * packages - stored, events=2 * packages)
    assert _usage_once_it_is(expected, local_cloud) == expected

    local = turbo.build(newest, root)
    assert local.full_turbo
    assert not local.remote_hits
    counted = {"local_hits": packages, "time_saved_ms": sum(task.time_saved_ms for task in local.tasks)}
    expected = _sum(expected, counted, hits=packages, events=packages)
    assert _usage_once_it_is(expected, local_cloud) == expected


def _usage(server: LocalCloud) -> dict[str, int]:
    """The sum of the figures of all days, because a run can cross midnight. The server has only one team."""
    days = [item for item in server.items("LARDER_USAGE_TABLE") if item["day"].startswith("day#")]
    return {counter: sum(int(day.get(counter, 0)) for day in days) for counter in COUNTERS}


def _usage_once_it_is(expected: dict[str, int], server: LocalCloud) -> dict[str, int]:
    """Wait for the expected usage, and return the last one. turbo does not wait for the reply to its events."""
    deadline = time.monotonic() + EVENTS_SECONDS
    while (usage := _usage(server)) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    return usage


def _sum(usage: dict[str, int], counted: dict[str, int], **more: int) -> dict[str, int]:
    added = counted | more
    return {counter: usage[counter] + added.get(counter, 0) for counter in COUNTERS}


@dataclass(frozen=True)
class Runs:
    """`announced` and `asked`: the dry run's tasks and requests. `restored`: the second build's remote hits.

    `redirected`: the packages among them that came from S3. `commit`: the commit of the monorepo.
    """

    announced: tuple[turbo.Task, ...]
    asked: list[Request]
    restored: list[turbo.Task]
    redirected: set[str]
    commit: str
