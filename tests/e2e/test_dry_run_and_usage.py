"""What turbo announces in a dry run and reports as events, compared with what the server stored."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from . import turbo
from .cloud import LocalCloud
from .monorepo import (
    LARGE_PACKAGES,
    head_commit,
    sample_packages,
    wipe_outputs_and_local_cache,
)

pytestmark = pytest.mark.e2e

EVERY_PACKAGE = frozenset(package.name for package in sample_packages())
INLINE_PACKAGES = EVERY_PACKAGE - LARGE_PACKAGES.keys()
COUNTERS = (
    "events",
    "hits",
    "misses",
    "local_hits",
    "local_misses",
    "remote_hits",
    "remote_misses",
    "time_saved_ms",
)
EVENTS_SECONDS = 15


def test_a_dry_run_shows_remote_hits_and_the_time_saved_from_one_query(
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    local_cloud: LocalCloud,
) -> None:
    newest, root = client(turbo.NEWEST), fresh_monorepo(turbo.NEWEST, seed="dry run")
    turbo.build(newest, root)
    wipe_outputs_and_local_cache(root)
    mark = local_cloud.log_size()

    announced = turbo.dry_run(newest, root)

    asked = local_cloud.requests_since(mark)
    mark = local_cloud.log_size()
    warm = turbo.build(newest, root)
    redirected = {each.path for each in local_cloud.requests_since(mark) if each.status == 302}
    queries = [each for each in asked if each.path == "/v8/artifacts"]
    assert [(each.method, each.status) for each in queries] == [("POST", 200)]
    assert not [each for each in asked if each.method == "HEAD"]
    hits = {task.package: task for task in announced if task.remote}
    assert hits.keys() == INLINE_PACKAGES
    assert {task.cache["source"] for task in hits.values()} == {"REMOTE"}
    assert {
        task.package for task in announced if task.cache["status"] == "MISS"
    } == LARGE_PACKAGES.keys()
    assert min(task.time_saved_ms for task in hits.values()) > 0
    # A run reads the duration from the final response of a download, and S3's carries none.
    assert {task.package: task.time_saved_ms for task in warm.tasks if task.remote} == {
        package: 0 if f"/v8/artifacts/{task.hash}" in redirected else task.time_saved_ms
        for package, task in hits.items()
    }


def test_a_hit_through_the_api_names_the_commit_that_was_built(
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    local_cloud: LocalCloud,
) -> None:
    newest, root = client(turbo.NEWEST), fresh_monorepo(turbo.NEWEST, seed="commit")
    turbo.build(newest, root)
    wipe_outputs_and_local_cache(root)
    mark = local_cloud.log_size()

    warm = turbo.build(newest, root)

    redirected = {each.path for each in local_cloud.requests_since(mark) if each.status == 302}
    through_the_api = [
        task
        for task in warm.tasks
        if task.remote and f"/v8/artifacts/{task.hash}" not in redirected
    ]
    assert through_the_api
    assert {task.cache["sha"] for task in through_the_api} == {head_commit(root)}


def test_the_usage_of_a_day_counts_what_turbo_reports(
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    local_cloud: LocalCloud,
) -> None:
    newest, root = client(turbo.NEWEST), fresh_monorepo(turbo.NEWEST, seed="usage")
    packages, inline = len(EVERY_PACKAGE), len(INLINE_PACKAGES)
    before = _usage(local_cloud)

    turbo.build(newest, root)
    cold = {"local_misses": packages, "remote_misses": packages}
    expected = _sum(before, cold, misses=2 * packages, events=2 * packages)
    assert _usage_once_it_is(expected, local_cloud) == expected

    wipe_outputs_and_local_cache(root)
    warm = turbo.build(newest, root)
    assert len(warm.remote_hits) == inline
    counted = {
        "local_misses": packages,
        "remote_hits": inline,
        "remote_misses": packages - inline,
        "time_saved_ms": sum(task.time_saved_ms for task in warm.tasks if task.remote),
    }
    expected = _sum(
        expected, counted, hits=inline, misses=2 * packages - inline, events=2 * packages
    )
    assert _usage_once_it_is(expected, local_cloud) == expected

    local = turbo.build(newest, root)
    assert local.full_turbo
    assert not local.remote_hits
    counted = {
        "local_hits": packages,
        "time_saved_ms": sum(task.time_saved_ms for task in local.tasks),
    }
    expected = _sum(expected, counted, hits=packages, events=packages)
    assert _usage_once_it_is(expected, local_cloud) == expected


def _usage(server: LocalCloud) -> dict[str, int]:
    """The roll-ups of every day, added: a run may cross midnight. The only team of the server owns them all."""
    days = [
        item for item in server.items("LARDER_USAGE_TABLE") if len(item["day"]) == len("2000-01-01")
    ]
    return {counter: sum(int(day.get(counter, 0)) for day in days) for counter in COUNTERS}


def _usage_once_it_is(expected: dict[str, int], server: LocalCloud) -> dict[str, int]:
    """turbo does not wait for the answer to its events: the usage, when it is as expected or after a while."""
    deadline = time.monotonic() + EVENTS_SECONDS
    while (usage := _usage(server)) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    return usage


def _sum(usage: dict[str, int], counted: dict[str, int], **more: int) -> dict[str, int]:
    added = counted | more
    return {counter: usage[counter] + added.get(counter, 0) for counter in COUNTERS}
