"""`larder edge` on a local cloud, in every state of its edge, and while turbo builds. `make proofs` runs all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from . import cloud, turbo
from .cloud import LocalCloud
from .monorepo import Package, generate, output_digests, wipe_outputs_and_local_cache

pytestmark = pytest.mark.e2e
only_in_proofs = pytest.mark.skipif("EDGE_PROOFS" not in os.environ, reason="`make proofs` runs every state")

COMMAND = Path(sys.executable).with_name("larder")
SIZES = {"small": 2_000, "large": 6_000_000}
QUICK = ("--large", "5MB", "--slow", "1s")
MANY = 8


@pytest.fixture(scope="module")
def local_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    data = tmp_path_factory.mktemp("cloud") / "data"
    with cloud.running(request.config.rootpath, data, EDGE="1") as server:
        yield server


@dataclass(frozen=True)
class Edge:
    """The edge of a local cloud."""

    data: Path

    def larder(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, "--local", self.data, "edge", *arguments, "--json"], capture_output=True, text=True, timeout=120
        )

    def succeeds(self, *arguments: str) -> Any:
        done = self.larder(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def is_in(self, *states: str) -> None:
        (self.data / "edge" / "states.json").write_text(json.dumps(states))

    def switch_on(self) -> None:
        """Without the probes."""
        described = {"id": "ab", "key": "0" * 64}
        (self.data / "edge" / "keys.json").write_text(json.dumps({"key-ab": f"{'0' * 64} once"}))
        (self.data / "edge" / "switch.json").write_text(json.dumps(described))

    @property
    def in_use(self) -> str | None:
        """The id of the key that functions sign with."""
        try:
            return str(json.loads((self.data / "edge" / "switch.json").read_text())["id"])
        except FileNotFoundError:
            return None

    @property
    def known(self) -> dict[str, list[str]]:
        """The flags of each key that the edge accepts."""
        stored = json.loads((self.data / "edge" / "keys.json").read_text())
        return {
            name.removeprefix("key-"): value.split()[1:] for name, value in stored.items() if name.startswith("key-")
        }


@pytest.fixture
def edge(local_cloud: LocalCloud) -> Iterator[Edge]:
    """It is off at first, and in none of the states that make it differ."""
    made = Edge(local_cloud.data)
    made.is_in()
    (made.data / "edge" / "switch.json").unlink(missing_ok=True)
    (made.data / "edge" / "keys.json").write_text("{}")
    yield made
    made.is_in()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    root = tmp_path_factory.mktemp("edge") / "pair"
    generate(root, [Package(name, size) for name, size in SIZES.items()], home=home)
    return root


@pytest.fixture
def signed(client: Callable[..., turbo.Client]) -> turbo.Client:
    """Signs with preflight, which works only with the edge."""
    return client(turbo.NEWEST, preflight=True)


def hits_of_two_builds(signed: turbo.Client, root: Path) -> frozenset[str]:
    """Build twice, the second time without local outputs. Both builds succeed, and restore what was built."""
    turbo.build(signed, root)
    built = output_digests(root)
    wipe_outputs_and_local_cache(root)
    warm = turbo.build(signed, root)
    restored = output_digests(root)
    assert all(restored[package] == built[package] for package in warm.remote_hits)
    return warm.remote_hits


@pytest.mark.parametrize(
    ("state", "flags"),
    [
        pytest.param(None, ["once"], marks=only_in_proofs),
        ("needs-sha256", ["once", "unsigned"]),
        pytest.param("once-dropped", [], marks=only_in_proofs),
        pytest.param("slow-store=2", ["once"], marks=only_in_proofs),
    ],
)
def test_enable_picks_the_flags_with_which_the_edge_works(
    edge: Edge,
    local_cloud: LocalCloud,
    signed: turbo.Client,
    pair: Path,
    fresh_monorepo: Callable[..., Path],
    state: str | None,
    flags: list[str],
) -> None:
    edge.is_in(*([state] if state else []))
    report = edge.succeeds("enable", *QUICK)
    assert (report["enabled"], report["flags"]) == (True, flags)
    failed = [probe["check"] for probe in report["probes"] if probe["outcome"] == "failed"]
    assert [check.split()[0] for check in failed] == ([] if "once" in flags else ["U5"])
    assert edge.known == {report["key"]: flags}
    assert edge.in_use == report["key"]
    stored = [str(path) for path in local_cloud.data.rglob("*") if path.is_file()]
    assert [path for path in stored if "larderedgeprobe" in path] == []
    if flags != ["once"]:
        root = fresh_monorepo(turbo.NEWEST, seed=str(state), signature=True, template=pair)
        assert hits_of_two_builds(signed, root) == SIZES.keys()


@pytest.mark.parametrize(
    ("state", "probe"),
    [
        pytest.param("meta-unsigned", "U1", marks=only_in_proofs),
        ("meta-hidden", "U3"),
        pytest.param("no-content-length", "U1", marks=only_in_proofs),
    ],
)
def test_enable_refuses_where_the_edge_does_not_work(edge: Edge, state: str, probe: str) -> None:
    edge.is_in(state)
    done = edge.larder("enable", *QUICK)
    report = json.loads(done.stdout)
    assert (done.returncode, report["enabled"], report["key"]) == (1, False, None)
    *passed, failed = report["probes"]
    assert failed["check"].split()[0] == probe
    assert failed["advice"]
    assert all(one["outcome"] != "failed" for one in passed)
    assert edge.in_use is None
    assert not edge.known


@only_in_proofs
def test_builds_go_on_after_a_refusal(
    edge: Edge, signed: turbo.Client, pair: Path, fresh_monorepo: Callable[..., Path]
) -> None:
    """With presigned URLs, as before, so that signatures are lost."""
    edge.is_in("errors-cached")
    done = edge.larder("enable", *QUICK)
    assert done.returncode == 1
    assert json.loads(done.stdout)["probes"][-1]["check"].startswith("U10 ")
    root = fresh_monorepo(turbo.NEWEST, seed="refused", signature=True, template=pair)
    assert hits_of_two_builds(signed, root) == frozenset()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Path:
    root = tmp_path_factory.mktemp("many") / "monorepo"
    generate(root, [Package(f"p{number}", 300_000) for number in range(MANY)], home=home)
    return root


@pytest.mark.thorough
def test_rotating_during_a_build_loses_no_artifact(
    edge: Edge, signed: turbo.Client, many: Path, fresh_monorepo: Callable[..., Path]
) -> None:
    edge.switch_on()
    root = fresh_monorepo(turbo.NEWEST, seed="rotated", signature=True, template=many)
    before = edge.in_use

    rotated = edge_while_building(edge, signed, root, "rotate", "--no-wait")
    built = output_digests(root)
    wipe_outputs_and_local_cache(root)
    warm = turbo.build(signed, root)

    assert rotated["old_key"] == before
    assert edge.in_use == rotated["key"]
    assert warm.remote_hits == built.keys()
    assert output_digests(root) == built


@pytest.mark.thorough
@only_in_proofs
def test_a_dropped_key_ends_its_addresses_and_the_next_build_stores_what_a_build_lost_by_it(
    edge: Edge, signed: turbo.Client, many: Path, fresh_monorepo: Callable[..., Path]
) -> None:
    edge.switch_on()
    root = fresh_monorepo(turbo.NEWEST, seed="dropped", signature=True, template=many)

    dropped = edge_while_building(edge, signed, root, "rotate", "--drop-old")
    assert edge.known.keys() == {dropped["key"]}
    wipe_outputs_and_local_cache(root)
    turbo.build(signed, root)
    healed = output_digests(root)
    wipe_outputs_and_local_cache(root)
    assert turbo.build(signed, root).remote_hits == healed.keys()
    assert output_digests(root) == healed


def edge_while_building(edge: Edge, client: turbo.Client, root: Path, *arguments: str) -> Any:
    """Run the command while turbo builds. Returns what it prints, after the build has succeeded."""
    results: list[Any] = []
    changing = threading.Thread(target=lambda: results.append(edge.succeeds(*arguments)))
    changing.start()
    turbo.build(client, root)
    changing.join()
    (result,) = results
    return result


@pytest.mark.thorough
def test_an_interrupted_wait_is_finished_by_the_next_command(edge: Edge) -> None:
    edge.switch_on()
    first = edge.in_use
    second = edge.succeeds("rotate", "--no-wait")
    assert second["old_key"] == first
    assert second["old_key_until"]
    keys = edge.data / "edge" / "keys.json"
    stored = json.loads(keys.read_text())
    # As if its addresses had expired.
    keys.write_text(json.dumps(stored | {f"old-{first}": "1000"}))
    third = edge.succeeds("rotate", "--no-wait")
    assert edge.known.keys() == {second["key"], third["key"]}


@pytest.mark.thorough
def test_commands_that_do_not_fit_the_state_change_nothing(edge: Edge) -> None:
    for command in ("rotate", "disable"):
        done = edge.larder(command)
        assert (done.returncode, "the edge is off" in done.stderr) == (1, True)
    edge.switch_on()
    done = edge.larder("enable", *QUICK)
    assert (done.returncode, "the edge is in use" in done.stderr) == (1, True)
    status = edge.succeeds("status")
    assert (status["state"], status["key"]) == ("on", edge.in_use)
    assert edge.succeeds("disable", "--drop-old")["key"] is None
    assert edge.in_use is None
    assert not edge.known


@pytest.mark.parametrize(
    ("states", "lost"),
    [
        ((), {}),
        (
            ("meta-hidden",),
            {
                "a signed artifact keeps its tag": "the edge has lost x-artifact-tag in the download",
                "the edge keeps the tag and the duration": "they are lost in the download",
            },
        ),
    ],
    ids=["works", "meta-hidden"],
)
def test_smoke_finds_the_edge_and_checks_it(edge: Edge, states: tuple[str, ...], lost: dict[str, str]) -> None:
    edge.switch_on()
    edge.is_in(*states)
    done = subprocess.run(
        [COMMAND, "--local", edge.data, "smoke", "--large", "1MB", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
    failed = {name: one["found"] for name, one in checks.items() if one["outcome"] != "passed"}
    assert checks["a large artifact is uploaded straight to S3"]["found"] == "1 MB, by the edge"
    assert failed == lost
    assert done.returncode == (1 if lost else 0)
