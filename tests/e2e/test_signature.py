"""Signed artifacts: with `remoteCache.signature`, the client checks an HMAC that the cache must return unchanged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import turbo
from .cloud import LocalCloud
from .monorepo import Package, generate, output_digests, wipe_outputs_and_local_cache

pytestmark = pytest.mark.e2e

# Sizes below and above the limit for redirected unsigned downloads, and the inline limit of about 4.5 MB.
UP_TO_THE_INLINE_LIMIT = {"1-kb": 1_000, "300-kb": 300_000, "4-mb": 4_000_000, "4.5-mb": 4_500_000}
# The function's limit refuses the first, the gateway's limit the second.
ABOVE_IT = {"5-mb": 5_000_000, "20-mb": 20_000_000}
EVERY_PACKAGE = UP_TO_THE_INLINE_LIMIT.keys() | ABOVE_IT.keys()


@pytest.fixture(scope="module")
def sized_monorepo(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    root = tmp_path_factory.mktemp("signature") / "monorepo"
    sizes = UP_TO_THE_INLINE_LIMIT | ABOVE_IT
    generate(root, [Package(name, size) for name, size in sizes.items()], home=home)
    return root


@pytest.fixture
def signed_monorepo(sized_monorepo: Path, fresh_monorepo: Callable[..., Path]) -> Callable[[str], Path]:
    return lambda seed: fresh_monorepo(turbo.NEWEST, seed=seed, signature=True, template=sized_monorepo)


def test_a_warm_run_hits_for_every_artifact_up_to_the_inline_limit(
    client: Callable[..., turbo.Client], signed_monorepo: Callable[[str], Path]
) -> None:
    newest, root = client(turbo.NEWEST), signed_monorepo("inline")
    turbo.build(newest, root)
    built = output_digests(root)
    wipe_outputs_and_local_cache(root)

    warm = turbo.build(newest, root)

    assert warm.remote_hits == UP_TO_THE_INLINE_LIMIT.keys()
    restored = output_digests(root)
    assert all(restored[package] == built[package] for package in UP_TO_THE_INLINE_LIMIT)


def test_artifacts_above_the_inline_limit_are_refused_with_413(
    client: Callable[..., turbo.Client], signed_monorepo: Callable[[str], Path], local_cloud: LocalCloud
) -> None:
    newest, root = client(turbo.NEWEST), signed_monorepo("above")
    mark = local_cloud.log_size()

    cold = turbo.build(newest, root)

    hashes = {task.package: task.hash for task in cold.tasks}
    uploads = [each for each in local_cloud.requests_since(mark) if each.method == "PUT"]
    assert {each.path: each.status for each in uploads} == {
        f"/v8/artifacts/{hashes[package]}": 413 if package in ABOVE_IT else 202 for package in EVERY_PACKAGE
    }


def test_a_client_with_another_key_restores_nothing(
    client: Callable[..., turbo.Client], signed_monorepo: Callable[[str], Path]
) -> None:
    root = signed_monorepo("another key")
    turbo.build(client(turbo.NEWEST), root)
    wipe_outputs_and_local_cache(root)

    stranger = turbo.build(client(turbo.NEWEST, signature_key="another key"), root)

    assert stranger.cached == 0


@pytest.mark.thorough
def test_with_preflight_signed_artifacts_of_any_size_are_stored_but_never_hit(
    client: Callable[..., turbo.Client], signed_monorepo: Callable[[str], Path], local_cloud: LocalCloud
) -> None:
    """S3 does not store `x-artifact-tag`, and the preflight does not show whether the client signs."""
    newest, root = client(turbo.NEWEST, preflight=True), signed_monorepo("preflight")
    mark = local_cloud.log_size()
    turbo.build(newest, root)
    through_the_api = [
        each
        for each in local_cloud.requests_since(mark)
        if each.method == "PUT" and each.path.startswith("/v8/artifacts/")
    ]
    wipe_outputs_and_local_cache(root)

    announced = turbo.dry_run(newest, root)
    warm = turbo.build(newest, root)

    assert through_the_api == []
    assert {task.package for task in announced if task.remote} == EVERY_PACKAGE
    assert warm.cached == 0
