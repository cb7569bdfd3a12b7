"""One team of many readers and writers while DynamoDB refuses some of their requests: nothing is lost or counted twice,
the quota holds, and a revoked key works five seconds longer at most.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from larder import clock
from larder.actor import Actor
from larder.api_keys.keys import revoke_key
from larder.api_keys.repository import reading
from larder.artifacts import uploads
from larder.artifacts.models import ArtifactHash, ArtifactMetadata, CacheRequest, Totals, View, Wanted
from larder.artifacts.repository.index import read_entry, read_with_credential
from larder.artifacts.repository.totals import read_totals
from larder.errors import CachingOverLimit, TryAgain
from larder.settings import settings
from tests.e2e import cloud as local_clouds
from tests.e2e.cloud import LocalCloud
from tests.layer_on import LayerOn
from tests.proofs.conftest import make_team
from tests.proofs.stamped import Client, Way, http_client, stamp
from tests.proofs.stored import index_sizes
from tests.requests import Cloud

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("ENGINE" not in os.environ, reason="the proxy that refuses is in front of DynamoDB Local"),
]

READERS = WRITERS = 64
UPLOADS, READS = 4, 12
COPIES_LAST_S = 5

Refuse = Callable[..., None]


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refusals") / "refusals.json"


@pytest.fixture
def refuse(refusals: Path) -> Iterator[Refuse]:
    """Say what DynamoDB refuses from now on."""

    def say(*, share: float = 0, shut: tuple[str, ...] = ()) -> None:
        new = refusals.with_suffix(".new")
        new.write_text(json.dumps({"share": share, "shut": shut}))
        new.rename(refusals)

    say()
    yield say
    say()


@pytest.fixture
def server(
    request: pytest.FixtureRequest, tmp_path: Path, layer_on: LayerOn, refusals: Path, refuse: Refuse
) -> Iterator[LocalCloud]:
    tables = f"{os.environ['TABLES']} --refusals {refusals}"
    with local_clouds.running(
        request.config.rootpath, tmp_path / "data", TABLES=tables, LARDER_OVER_QUOTA="refuse"
    ) as running:
        layer_on(running)
        yield running


def test_readers_and_writers_of_one_team_lose_nothing(
    server: LocalCloud, refuse: Refuse, report_lines: list[str]
) -> None:
    """Each thread is an instance of a function. A sixth of the uploads do not fit into the quota."""
    team, source = make_team(), random.Random(7)
    stored = {f"read{number}": source.randbytes(2_000) for number in range(READERS)}
    sizes = [source.choice([1_000, 20_000, 400_000]) for _ in range(WRITERS * UPLOADS)]
    quota = sum(sizes) * 5 // 6 + sum(map(len, stored.values()))
    for hash, body in stored.items():
        assert store(team, hash, body, quota) == "stored"
    bodies = {f"write{number}": source.randbytes(size) for number, size in enumerate(sizes)}
    names = [*bodies]
    refuse(share=0.1)

    def write(number: int) -> Counter[str]:
        return Counter(store(team, name, bodies[name], quota) for name in names[number::WRITERS])

    def read(number: int) -> Counter[str]:
        return Counter(reads(team, f"read{number}", stored[f"read{number}"]) for _ in range(READS))

    began = time.monotonic()
    with ThreadPoolExecutor(READERS + WRITERS) as pool:
        writes, found = [pool.map(write, range(WRITERS)), pool.map(read, range(READERS))]
        written, read_ = sum(writes, Counter[str]()), sum(found, Counter[str]())
    took_s = time.monotonic() - began
    refuse()
    report_lines.append(f"DynamoDB refuses a tenth, {took_s:.0f} s: reads {dict(read_)}, uploads {dict(written)}")
    assert read_ == {"found": READERS * READS}
    assert written["stored"] > 0 < written["full"]
    # The client of an upload that DynamoDB kept refusing knows it.
    assert written["busy"] <= len(sizes) / 100
    sizes_stored = index_sizes(team.team.id)
    assert sum(sizes_stored.values()) <= quota
    assert read_totals(team.team.id) == Totals(size_bytes=sum(sizes_stored.values()), artifacts=len(sizes_stored))
    kept = {name: body for name, body in {**stored, **bodies}.items() if name in sizes_stored}
    assert len(kept) == len(sizes_stored)
    # An upload whose reply is 503 can be stored: the client may repeat it.
    assert 0 <= len(kept) - len(stored) - written["stored"] <= written["busy"]
    assert all(sizes_stored[name] == len(body) for name, body in kept.items())


def store(team: Cloud, name: str, body: bytes, quota: int) -> str:
    owner, hash = team.team.id, ArtifactHash(name)
    try:
        uploads.store(
            CacheRequest(
                owner=owner,
                hash=hash,
                writer=Actor("a-key"),
                view=View(quota_bytes=quota),
                now=clock.now(),
                entry=read_entry(owner, hash),
                totals=read_totals(owner),
            ),
            body,
            ArtifactMetadata(duration_ms=1),
        )
    except TryAgain:
        return "busy"
    except CachingOverLimit:
        return "full"
    return "stored"


def reads(team: Cloud, name: str, body: bytes) -> str:
    wanted = Wanted(hash=ArtifactHash(name), body=True)
    try:
        key, items = read_with_credential(reading(team.key.key_hash), team.team.id, team.user.id, wanted)
    except TryAgain:
        return "busy"
    artifact = items.entry.artifact
    is_found = key is not None and items.membership.role is not None and artifact is not None and artifact.body == body
    return "found" if is_found else "lost"


def test_a_revoked_key_is_refused_at_the_next_request(server: LocalCloud) -> None:
    team = make_team()
    with http_client(8) as http:
        client = Client(http, server.url, team.token, team.team.slug)
        client.put("abc", stamp(Way.PLAIN, 1_000, random.Random(7)))
        assert {client.head("abc").status_code for _ in range(20)} == {200}
        revoke_key(team.key)
        with ThreadPoolExecutor(8) as pool:
            assert {*pool.map(lambda _: client.head("abc").status_code, range(40))} == {401}


@pytest.mark.parametrize("share", [0.2, 1])
def test_a_revoked_key_works_at_most_five_seconds_longer_while_dynamodb_refuses_reads(
    server: LocalCloud, refuse: Refuse, share: float
) -> None:
    team = make_team()
    with http_client(8) as http:
        client = Client(http, server.url, team.token, team.team.slug)
        client.put("abc", stamp(Way.PLAIN, 1_000, random.Random(7)))
        assert {client.head("abc").status_code for _ in range(20)} == {200}
        if share == 1:
            refuse(shut=(settings().api_keys_table,))
        else:
            refuse(share=share)
        revoke_key(team.key)
        revoked = time.monotonic()
        statuses: list[tuple[float, int]] = []

        def ask(_: int) -> None:
            while time.monotonic() < revoked + COPIES_LAST_S + 3:
                began = time.monotonic()
                statuses.append((began - revoked, client.head("abc").status_code))

        with ThreadPoolExecutor(8) as pool:
            [*pool.map(ask, range(8))]
        seen = {status for _, status in statuses}
        # 401: a read that is repeated, or the write that counts a use, finds that the key has ended.
        assert seen <= {200, 401, 503}
        assert ({200, 503} if share == 1 else {401}) <= seen
        assert 200 not in {status for began, status in statuses if began > COPIES_LAST_S}
        refuse()
        assert {client.head("abc").status_code for _ in range(20)} == {401}
