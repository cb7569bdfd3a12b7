"""A pull request that builds another output under the hashes of main (docs/protection.md#the-attack), with real turbo.

Two checkouts of one commit. In that of the pull request, another `node` comes first on `PATH`, which turbo does not
hash. The attack succeeds in a team that is not protected, and fails in one that is.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from . import turbo
from .cloud import COUNTS_AFTER_S, LocalCloud
from .monorepo import Package, generate, output_digests, wipe_outputs_and_local_cache

pytestmark = pytest.mark.e2e

EMAIL = "ada@acme.example"
PACKAGES = (Package("lib", 2_000), Package("large", 400_000, ("lib",)), Package("app", 500, ("lib",)))
POISON = "poisoned.txt"
FAKE_NODE = """#!/bin/sh
"{node}" "$@"
status=$?
case "$1" in *build.mjs) echo poison > dist/poisoned.txt ;; esac
exit $status
"""


@dataclass(frozen=True)
class Checkout:
    client: turbo.Client
    root: Path

    def build(self) -> turbo.Run:
        """Build as a job of CI does: from a fresh clone with installed dependencies."""
        wipe_outputs_and_local_cache(self.root)
        return turbo.build(self.client, self.root)

    @property
    def poisoned(self) -> set[str]:
        packages = (self.root / "packages").iterdir()
        return {package.name for package in packages if (package / "dist" / POISON).exists()}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    root = tmp_path_factory.mktemp("poisoning") / "monorepo"
    generate(root, PACKAGES, home=home)
    return root


@pytest.fixture(scope="module")
def fake_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the pull request puts first on `PATH`."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "node"
    command.write_text(FAKE_NODE.format(node=shutil.which("node")))
    command.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def keys(local_cloud: LocalCloud) -> dict[str, str]:
    """Keys of a protected team, by the job that has them."""
    larder = local_cloud.larder
    larder("users", "create", "--email", EMAIL, "--name", "Ada")
    larder("teams", "create", "--name", "Safe", "--slug", "safe", "--owner", EMAIL)
    of_team = ("keys", "create", "--user", EMAIL, "--team", "safe")
    made = {
        "main": larder(*of_team, "--trusted")["key"],
        "pr": larder(*of_team)["key"],
        "reviewer": larder(*of_team)["key"],
    }
    time.sleep(COUNTS_AFTER_S)
    return made


@pytest.fixture
def checkouts(
    client: Callable[..., turbo.Client],
    template: Path,
    fake_node: Path,
    fresh_monorepo: Callable[..., Path],
    mode: str,
    request: pytest.FixtureRequest,
) -> Callable[[], tuple[Checkout, Checkout]]:
    """Makes two checkouts of one new commit: of main, and of the pull request."""

    version = OLD if mode == OLD else turbo.NEWEST

    def make() -> tuple[Checkout, Checkout]:
        seed = f"{request.node.name} {time.monotonic_ns()}"
        plain = client(version, preflight=mode == "preflight")
        path = {"PATH": f"{fake_node}:{os.environ['PATH']}"}
        roots = [fresh_monorepo(version, seed=seed, signature=mode == "signed", template=template) for _ in range(2)]
        return Checkout(plain, roots[0]), Checkout(replace(plain, ci=path), roots[1])

    return make


def by(checkout: Checkout, token: str) -> Checkout:
    """The checkout in a job with this key of the protected team."""
    used = {**checkout.client.remote_cache, "TURBO_TOKEN": token, "TURBO_TEAM": "safe"}
    return replace(checkout, client=replace(checkout.client, remote_cache=used))


OLD = "2.10.12"
"""A version that has no direct uploads (docs/compatibility.md)."""


def thorough(mode: str) -> object:
    return pytest.param(mode, marks=pytest.mark.thorough)


EVERY = {package.name for package in PACKAGES}


@pytest.mark.parametrize("mode", ["normal", *map(thorough, ("preflight", "signed"))])
def test_the_attack_succeeds_without_protection(checkouts: Callable[[], tuple[Checkout, Checkout]]) -> None:
    main, pr = checkouts()
    assert pr.build().cached == 0
    assert main.build().full_turbo
    assert main.poisoned == EVERY


@pytest.mark.parametrize("mode", ["normal", *map(thorough, ("preflight", "signed", OLD))])
def test_the_attack_fails_in_a_protected_team(
    checkouts: Callable[[], tuple[Checkout, Checkout]], keys: dict[str, str]
) -> None:
    main, pr = checkouts()
    main, pr, reviewer = by(main, keys["main"]), by(pr, keys["pr"]), by(main, keys["reviewer"])
    assert pr.build().cached == 0
    assert main.build().cached == 0
    assert main.poisoned == set()
    built = output_digests(main.root)
    assert reviewer.build().full_turbo
    assert output_digests(main.root) == built
    assert pr.build().full_turbo
    assert output_digests(pr.root) == built


@pytest.mark.parametrize("mode", ["normal", thorough("preflight")])
def test_a_pull_request_restores_what_main_has_built(
    checkouts: Callable[[], tuple[Checkout, Checkout]], keys: dict[str, str]
) -> None:
    main, pr = checkouts()
    main, pr = by(main, keys["main"]), by(pr, keys["pr"])
    main.build()
    built = output_digests(main.root)
    assert pr.build().full_turbo
    assert output_digests(pr.root) == built


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["preflight"])
def test_the_attack_fails_if_both_build_at_once(
    checkouts: Callable[[], tuple[Checkout, Checkout]], keys: dict[str, str]
) -> None:
    main, pr = checkouts()
    main, pr = by(main, keys["main"]), by(pr, keys["pr"])
    with ThreadPoolExecutor(2) as pool:
        attack = pool.submit(pr.build)
        main.build()
        attack.result()
    assert main.poisoned == set()
    built = output_digests(main.root)
    assert pr.build().full_turbo
    assert output_digests(pr.root) == built
