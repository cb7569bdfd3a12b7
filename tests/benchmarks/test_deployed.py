"""`make bench-deployed`: its repositories, the peer's answers in the model, and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tools.benchmarks.deployed import repositories
from tools.benchmarks.deployed.checks import Compared, Morning, Size
from tools.benchmarks.deployed.report import Results, page
from tools.benchmarks.deployed.restorer import DIRECT, PEER_CONTAINER, PEER_FUNCTION
from tools.benchmarks.deployed.restores import BUSY, HALF, IDLE_KEPT, SMALL, Kind, Restores
from tools.benchmarks.model import modelled
from tools.benchmarks.paths import LOOPBACK, NONE, Model


def test_a_repository_has_packages_in_layers_and_outputs_of_its_mix(tmp_path: Path) -> None:
    repositories.make(tmp_path / "mixed", 12, "mixed")
    described = [
        json.loads(file.read_text()) for file in sorted((tmp_path / "mixed" / "packages").glob("*/package.json"))
    ]
    assert [len(one["dependencies"]) for one in described] == [0, 0, *[2] * 10]
    sizes = [repositories.size(number, "mixed") for number in range(100)]
    assert [sizes.count(size) for size in (10_000, 300_000, 5_000_000)] == [72, 25, 3]
    assert {repositories.size(number, "small") for number in range(100)} == {10_000}


@pytest.mark.parametrize(("size", "by_function"), [(10_000, 200), (4_500_000, 502)])
def test_the_peer_passes_artifacts_through_and_its_function_only_small_ones(size: int, by_function: int) -> None:
    with modelled() as model:
        model.set(LOOPBACK, NONE)
        with httpx.Client(base_url=model.url, trust_env=False) as client:
            client.put("/v8/artifacts/0123456789abcdef", content=b"x" * size)
            path = "/v8/artifacts/0123456789abcdef"
            assert client.get(f"/peer-function{path}").status_code == by_function
            found = client.get(f"/peer-container{path}")
            assert (found.status_code, len(found.content)) == (200, size)
            assert client.get("/peer-container/v8/artifacts/status").json() == {"status": "enabled"}


def test_each_request_at_once_starts_an_instance_and_the_next_uses_it() -> None:
    with modelled() as model:
        assert _seconds(model, start=400) > 0.35
        assert _seconds(model, start=None) < 0.3


def test_a_warm_instance_only_connects_again() -> None:
    with modelled() as model:
        assert _seconds(model, start=1000, warm=10, reconnect=100) >= 0.1
        assert model.requests() == {"GET status": 1}


def _seconds(model: Model, start: int | None, **kept: int) -> float:
    if start is not None:
        model.set(LOOPBACK, replace(NONE, start=start, **kept))
    reply = httpx.get(f"{model.url}/v8/artifacts/status", trust_env=False)
    return reply.elapsed.total_seconds()


def restores(ours: float, container: float, *, kind: Kind = BUSY) -> Restores:
    seconds = {way: [ours] for way in SMALL} | {PEER_CONTAINER: [container], PEER_FUNCTION: [1.0]}
    restored = dict.fromkeys(SMALL, 300) | {PEER_FUNCTION: 291}
    return Restores(300, "small", "CI", kind, seconds, restored)


def test_the_page_says_which_goals_are_met_and_who_did_not_restore_all() -> None:
    assert restores(0.8, 1.0).ratio(DIRECT, PEER_CONTAINER) == 0.8
    results = Results(
        [restores(0.5, 1.0), restores(0.6, 1.0, kind=HALF), restores(0.7, 1.0, kind=IDLE_KEPT)],
        checked=[Compared("far", 1.0, 1.2)],
        sizes=[Size(512, 380, 1.1)],
        morning=[Morning(DIRECT, 2.0, 3.0, 40)],
    )
    met = page(results, {}, rounds=(1, 0), seconds=60)
    assert " goals are missed. turbo" in met
    assert "| 300 small, direct, CI | peer, container | 0.50 | 0.65 | yes |" in met
    assert "`WarmInstances=10` | direct, warm | 1.40 | 1.3 | no |" in met
    assert "`WarmInstances=10` | peer, container | 0.70 | 1.5 | yes |" in met
    assert "half a processor | peer, container | 0.60 | 0.5 | no |" in met
    assert "| 300 small, CI | 0.60 | 0.60 (1.00) | 1.00 (0.60) |" in met
    assert "| real server, far | model, apart by | 0.20 | 0.15 | no |" in met
    assert "1.00, 291 restored" in met
    assert "| 512 MB | 380 ms | 1.10 s | $0.04 |" in met
    assert "| direct | 2.00 s | 3.00 s | 40 |" in met
    worse = page(Results([restores(0.8, 1.0)]), {}, rounds=(1, 0), seconds=60)
    assert "| 0.50 | 0.65 | yes |" not in worse


def test_the_edge_has_a_host_of_its_own_and_opens_connections_near_the_client() -> None:
    with modelled() as model:
        far = replace(LOOPBACK, rtt_ms=100)
        with httpx.Client(base_url=model.url, trust_env=False) as client:
            client.put("/v8/artifacts/0123456789abcdef", content=b"x" * 1_000_000)
            places, seconds = set(), []
            for base in ("", "/edge"):
                found = client.get(f"{base}/v8/artifacts/0123456789abcdef")
                places.add(found.headers["location"])
                model.set(far, NONE)
                reply = httpx.get(found.headers["location"], trust_env=False)
                seconds.append(reply.elapsed.total_seconds())
                model.set(LOOPBACK, NONE)
    assert len({*places, model.url}) == 3
    assert seconds[1] < seconds[0] - 0.1
