"""Forks with a public read key restore what `main` has built, with real clients. tests/functions has its bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from . import turbo
from .build_tools import Counts, settings
from .cloud import COUNTS_AFTER_S, LocalCloud
from .monorepo import Package, generate, output_digests, wipe_outputs_and_local_cache
from .workspaces import nx

pytestmark = pytest.mark.e2e

EMAIL = "ada@acme.example"
SLUG = "open"
PACKAGES = (Package("lib", 2_000), Package("large", 900_000, ("lib",)), Package("app", 500, ("lib",)))
READS_REMAIN = "skipping uploads for this run (remote cache reads remain enabled)"
ONLY_READS = "This token can read artifacts, but not write them."


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    root = tmp_path_factory.mktemp("public") / "monorepo"
    generate(root, PACKAGES, home=home)
    return root


@pytest.fixture(scope="module")
def keys(local_cloud: LocalCloud) -> dict[str, str]:
    """Keys of a protected team, by the job that has them."""
    larder = local_cloud.larder
    larder("users", "create", "--email", EMAIL, "--name", "Ada")
    larder("teams", "create", "--name", "Open", "--slug", SLUG, "--owner", EMAIL)
    of_user, of_team = ("keys", "create", "--user", EMAIL, "--team", SLUG), ("keys", "create", "--team", SLUG)
    made = {
        "main": larder(*of_user, "--trusted")["key"],
        "pr": larder(*of_user)["key"],
        "fork": larder(*of_team, "--public")["key"],
        "spent": larder(*of_team, "--public", "--daily-requests", "1")["key"],
    }
    time.sleep(COUNTS_AFTER_S)
    return made


@pytest.mark.parametrize("version", [turbo.NEWEST, "2.3.4"])
@pytest.mark.parametrize("preflight", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_fork_restores_all_of_main_and_nothing_of_others(
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    template: Path,
    keys: dict[str, str],
    version: str,
    preflight: bool,
) -> None:
    plain = client(version, preflight=preflight)

    def build(root: Path, key: str, **more: str) -> turbo.Run:
        wipe_outputs_and_local_cache(root)
        used = {**plain.remote_cache, "TURBO_TOKEN": keys[key], "TURBO_TEAM": SLUG, **more}
        return turbo.build(replace(plain, remote_cache=used), root)

    merged, open_pr, changed = (
        fresh_monorepo(version, seed=f"{version} {preflight} {name}", template=template)
        for name in ("merged", "open", "changed")
    )
    assert build(merged, "main").cached == 0
    built = output_digests(merged)
    assert build(open_pr, "pr").cached == 0
    assert build(open_pr, "pr").full_turbo

    restored = build(merged, "fork")
    assert restored.full_turbo
    assert output_digests(merged) == built
    assert ONLY_READS not in restored.text
    assert build(open_pr, "fork").cached == 0
    for _ in range(2):
        # Nothing is stored, and the build goes on.
        own = build(changed, "fork")
        assert (own.cached, own.total) == (0, len(PACKAGES))
        newest = version == turbo.NEWEST
        assert own.text.count(READS_REMAIN) == newest
        assert own.text.count(ONLY_READS) == (0 if newest else len(PACKAGES))
    assert ONLY_READS not in build(changed, "fork", TURBO_CACHE="local:rw,remote:r").text
    # One artifact a day, for all builds of these tests: the rest is built.
    spent = build(merged, "spent")
    assert spent.cached <= 1
    assert spent.total == len(PACKAGES)


@pytest.mark.thorough
def test_nx_through_larder_run(
    local_cloud: LocalCloud, keys: dict[str, str], larder: Path, tools: Path, tmp_path: Path
) -> None:
    def env(key: str) -> dict[str, str]:
        return {**settings(local_cloud, tmp_path, keys[key]), "TURBO_TEAM": SLUG}

    sizes = {"small": 1_000, "large": 4_000_000}
    main, own = nx(tmp_path / "main", tools, sizes), nx(tmp_path / "own", tools, {"other": 1_000})
    assert main.build(larder, env("main"))[0] == Counts(0, 2, 2, 0)
    built = main.digests()
    assert main.build(larder, env("fork"))[0] == Counts(2, 0, 0, 0)
    assert main.digests() == built
    assert own.build(larder, env("pr"))[0] == Counts(0, 1, 1, 0)
    counts, said = own.build(larder, env("fork"))
    assert counts == Counts(0, 1, 0, 1)
    assert said.count("the token cannot store: nothing is uploaded") == 1
