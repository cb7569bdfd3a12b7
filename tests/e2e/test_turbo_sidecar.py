"""turbo through `larder run`: old and new clients restore what they stored, with and without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from . import monorepo, turbo
from .build_tools import counted, through
from .cloud import LocalCloud, running

pytestmark = pytest.mark.e2e

VERSIONS = (turbo.NEWEST, *(pytest.param(version, marks=pytest.mark.thorough) for version in ("2.3.4", "1.13.4")))
SIZES = {"100 B": 100, "4.4 MB": 4_400_000, "4.6 MB": 4_600_000, "120 MB": 120_000_000}


@pytest.fixture(scope="module")
def sized_monorepo(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    """One package of each size, and one that depends on all of them."""
    sized = [monorepo.Package(f"sized-{number}", size) for number, size in enumerate(SIZES.values())]
    root = tmp_path_factory.mktemp("sized") / "monorepo"
    monorepo.generate(root, [*sized, monorepo.Package("app", 1_000, tuple(one.name for one in sized))], home=home)
    return root


@pytest.fixture(scope="module", params=[False, True], ids=["without the edge", "with the edge"])
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    options = {"EDGE": "1"} if request.param else {}
    folder = tmp_path_factory.mktemp("cloud")
    with running(request.config.rootpath, folder / "data", **options) as server:
        yield server


@pytest.mark.parametrize(
    "signature", [pytest.param(False, id="unsigned"), pytest.param(True, id="signed", marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize("version", VERSIONS)
def test_artifacts_of_every_size_are_restored_byte_for_byte(
    version: str,
    signature: bool,
    cloud: LocalCloud,
    request: pytest.FixtureRequest,
    larder: Path,
    sized_monorepo: Path,
    fresh_monorepo: Callable[..., Path],
    home: Path,
) -> None:
    """Without `preflight`. S3 alone drops the signature of large artifacts, as for a direct upload."""
    has_edge = request.node.callspec.params["cloud"]
    command = turbo.installed(version, request.config.rootpath / ".tools" / "turbo")
    direct = turbo.Client(command, version, cloud.turbo_environment, home)
    client = through(larder, direct)
    seed = f"{version} {signature} {has_edge}"
    root = fresh_monorepo(version, seed=seed, signature=signature, template=sized_monorepo)
    packages = len(SIZES) + 1

    cold = turbo.build(client, root)
    assert counted(cold.text) == (0, packages, packages, 0)
    built = monorepo.output_digests(root)
    lost = {"sized-2", "sized-3"} if signature and not has_edge else set()
    for one in (client, direct):
        monorepo.wipe_outputs_and_local_cache(root)
        warm = turbo.build(one, root)
        assert warm.remote_hits == {*built} - lost
        assert warm.full_turbo == (not lost)
        restored = monorepo.output_digests(root)
        for package in warm.remote_hits:
            assert restored[package] == built[package]
    assert cloud.token not in cold.text


@pytest.mark.thorough
def test_builds_with_and_without_it_restore_one_another(
    larder: Path, client: Callable[..., turbo.Client], fresh_monorepo: Callable[..., Path], short_monorepo: Path
) -> None:
    direct = client(turbo.NEWEST, preflight=True)
    ways = {"direct": direct, "larder run": through(larder, direct)}
    for first, second in (("direct", "larder run"), ("larder run", "direct")):
        root = fresh_monorepo(turbo.NEWEST, seed=f"first {first}", template=short_monorepo)
        assert turbo.build(ways[first], root).cached == 0
        built = monorepo.output_digests(root)
        monorepo.wipe_outputs_and_local_cache(root)
        warm = turbo.build(ways[second], root)
        assert warm.full_turbo
        assert monorepo.output_digests(root) == built


def test_usage_and_runs_have_each_hit_once(
    local_cloud: LocalCloud,
    larder: Path,
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    short_monorepo: Path,
) -> None:
    headers = {"Authorization": f"Bearer {local_cloud.token}"}

    def total() -> tuple[int, int]:
        url = f"{local_cloud.url}/v1/usage?slug={local_cloud.team}"
        found = httpx.get(url, headers=headers, trust_env=False).json()["total"]
        return found["remoteHits"], found["remoteMisses"]

    hits, misses = total()
    root = fresh_monorepo(turbo.NEWEST, seed="usage", template=short_monorepo)
    run = turbo.build(through(larder, client(turbo.NEWEST)), root)
    assert total() == (hits, misses + run.total)
    monorepo.wipe_outputs_and_local_cache(root)
    turbo.build(through(larder, client(turbo.NEWEST)), root)
    assert total() == (hits + run.total, misses + run.total)
    url = f"{local_cloud.url}/v1/runs?slug={local_cloud.team}&limit=2"
    runs = httpx.get(url, headers=headers, trust_env=False).json()["runs"]
    assert [(one["built"], one["remoteHits"]) for one in runs] == [(0, run.total), (run.total, 0)]


@pytest.mark.parametrize(
    "permissions",
    [pytest.param("artifacts=read", id="read-only"), pytest.param(None, id="wrong", marks=pytest.mark.thorough)],
)
def test_a_build_succeeds_with_a_key_that_cannot_store(
    permissions: str | None,
    local_cloud: LocalCloud,
    larder: Path,
    client: Callable[..., turbo.Client],
    fresh_monorepo: Callable[..., Path],
    short_monorepo: Path,
) -> None:
    token, said = "larder_" + "x" * 64, "Larder: no cache: Larder refuses the token (401)\n"
    if permissions:
        team = ("--owned-by-team", "--team", local_cloud.team, "--name", "reader")
        created = local_cloud.larder("keys", "create", *team, "--permissions", permissions)
        token, said = created["key"], "the token cannot store: nothing is uploaded"
    direct = client(turbo.NEWEST)
    one = replace(direct, remote_cache={**direct.remote_cache, "TURBO_TOKEN": token})
    root = fresh_monorepo(turbo.NEWEST, seed=f"{permissions}", template=short_monorepo)
    run = turbo.build(through(larder, one), root)
    assert run.text.count(said) == 1
    assert counted(run.text)[:3] == (0, run.total, 0)
