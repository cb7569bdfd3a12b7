"""The model of the network and of AWS delays what it should, and stores what it gets."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from tools.benchmarks.model import modelled
from tools.benchmarks.paths import CI, NONE, Latencies, Model, Path, relayed

FAR = Path("far", rtt_ms=40, bits_a_second=1e9)
SLACK_S = 0.25
"""What a busy computer may add."""


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with modelled() as one:
        yield one


@pytest.fixture
def client(model: Model) -> Iterator[httpx.Client]:
    model.set(replace(CI, rtt_ms=0), NONE)
    with httpx.Client(base_url=model.url, trust_env=False, follow_redirects=True) as one:
        yield one


def seconds(client: httpx.Client, path: str) -> float:
    started = time.monotonic()
    assert client.get(path).status_code == 200
    return time.monotonic() - started


@pytest.mark.parametrize(("size", "storage"), [(100, 0), (1_000_000, 1)])
def test_a_body_comes_back_with_its_headers_or_from_storage(
    model: Model, client: httpx.Client, size: int, storage: int
) -> None:
    path = f"/v8/artifacts/{size:016x}"
    assert client.get(path).status_code == 404
    client.put(path, content=b"x" * size, headers={"x-artifact-tag": "signed"})
    found = client.get(path)
    assert found.content == b"x" * size
    assert found.headers.get("x-artifact-tag") == (None if storage else "signed")
    assert model.requests().get("storage GET", 0) == storage
    queried = client.post("/v8/artifacts", json={"hashes": [f"{size:016x}", "f" * 16]}).json()
    assert queried == {f"{size:016x}": {"size": size, "taskDurationMs": 0}, "f" * 16: None}


def test_a_new_connection_takes_two_round_trips_more(model: Model) -> None:
    model.set(FAR, NONE)
    with httpx.Client(base_url=model.url, trust_env=False) as client:
        first, second = (seconds(client, "/v8/artifacts/status") for _ in range(2))
    assert 3 * 0.04 <= first < 3 * 0.04 + SLACK_S
    assert 0.04 <= second < first


def test_a_large_body_waits_for_its_windows(model: Model, client: httpx.Client) -> None:
    client.put("/v8/artifacts/abc", content=b"x" * 200_000)
    model.set(FAR, NONE)
    with httpx.Client(base_url=model.url, trust_env=False) as far:
        # Three for a new connection, and three more between 14, 29, 58 and 99 kB.
        assert seconds(far, "/v8/artifacts/abc") >= 6 * 0.04


def test_latencies_of_aws_are_added(model: Model, client: httpx.Client) -> None:
    model.set(replace(FAR, rtt_ms=0), Latencies(gateway=100, tables=50, code=0, spread=0))
    assert 0.15 <= seconds(client, "/v8/artifacts/status") < 0.15 + SLACK_S


def test_functions_above_the_limit_are_refused(model: Model, client: httpx.Client) -> None:
    model.set(replace(FAR, rtt_ms=0), replace(NONE, tables=500, at_once=1))
    with pytest.raises(httpx.ReadTimeout):
        client.get("/v8/artifacts/status", timeout=0.1)
    assert client.get("/v8/artifacts/status").status_code == 503
    assert model.requests()["503"] == 1


def test_a_relay_adds_the_round_trip_time(model: Model, client: httpx.Client) -> None:
    port = int(model.url.rpartition(":")[2])
    with relayed(port, FAR) as url, httpx.Client(base_url=url, trust_env=False) as far:
        first, second = (seconds(far, "/v8/artifacts/status") for _ in range(2))
    assert first >= 3 * 0.04
    assert 0.04 <= second < first
