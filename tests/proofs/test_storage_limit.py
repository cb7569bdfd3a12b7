"""Parallel uploads of many owners at the edge of `MaxStoredBytes`, on the local cloud: never more than the limit."""

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from larder.artifacts.repository.allotments import read_allotted, set_counted
from larder.artifacts.repository.totals import read_totals, totals_key
from larder.tables import ARTIFACTS
from tests.e2e import cloud as local_clouds
from tests.e2e.cloud import LocalCloud
from tests.layer_on import LayerOn
from tests.proofs.conftest import make_team
from tests.proofs.stamped import http_client
from tests.proofs.stored import index_sizes
from tests.requests import Cloud

pytestmark = pytest.mark.slow

LIMIT = 20_000_000
OWNERS, UPLOADS, ROUNDS = 20, 40, 3
SIZE = (500_000, 900_000)


@pytest.fixture
def limited_cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, layer_on: LayerOn
) -> Iterator[LocalCloud]:
    data = tmp_path_factory.mktemp("limited") / "data"
    with local_clouds.running(request.config.rootpath, data, LARDER_MAX_STORED_BYTES=str(LIMIT)) as server:
        layer_on(server)
        yield server


def test_parallel_uploads_of_many_owners_stay_within_the_limit(
    limited_cloud: LocalCloud, report_lines: list[str]
) -> None:
    set_counted()
    teams = [make_team() for _ in range(OWNERS)]
    source = random.Random(7)
    seen: Counter[tuple[int, str]] = Counter()
    for round_ in range(ROUNDS):
        sizes = [source.randrange(*SIZE) for _ in range(UPLOADS)]
        seen += upload_at_once(limited_cloud, teams, f"round{round_}", sizes)
        assert stored(teams) <= LIMIT
    assert {outcome for outcome, _ in seen} <= {202, 403, 503}
    assert seen[202, ""] > 0
    assert seen[403, "storage_full"] > 0
    # What no one could use is less than one upload and what the owners have drawn ahead. A tenth is for small owners.
    assert stored(teams) > LIMIT - LIMIT // 10 - SIZE[1] - OWNERS * LIMIT // 1000
    items = [ARTIFACTS.get(*totals_key(cloud.team.id)) or {} for cloud in teams]
    assert read_allotted() == sum(item.get("allotted_bytes", 0) for item in items) <= LIMIT
    for cloud in teams:
        assert read_totals(cloud.team.id).size_bytes == sum(index_sizes(cloud.team.id).values())
    report_lines.append(f"MaxStoredBytes: {stored(teams):,} of {LIMIT:,} bytes stored, replies {dict(seen)}")


def upload_at_once(server: LocalCloud, teams: list[Cloud], name: str, sizes: list[int]) -> Counter[tuple[int, str]]:
    start = Barrier(len(sizes))

    def upload(number: int) -> tuple[int, str]:
        cloud = teams[number % len(teams)]
        start.wait()
        reply = http.put(
            f"{server.url}/v8/artifacts/{name}-{number}",
            params={"slug": cloud.team.slug},
            headers={"authorization": f"Bearer {cloud.token}", "content-type": "application/octet-stream"},
            content=b"x" * sizes[number],
        )
        return reply.status_code, "" if reply.status_code == 202 else reply.json()["error"]["code"]

    with http_client(len(sizes)) as http, ThreadPoolExecutor(max_workers=len(sizes)) as pool:
        return Counter(pool.map(upload, range(len(sizes))))


def stored(teams: list[Cloud]) -> int:
    """The bytes of all published artifacts."""
    return sum(sum(index_sizes(cloud.team.id).values()) for cloud in teams)
