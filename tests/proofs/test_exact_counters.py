"""Parallel uploads, replacements, reads and deletions of one team, on the local DynamoDB and S3 servers. At the end,
the team's totals equal its index and, after the sweep, its objects in the bucket. The index never exceeds the quota.

There is one exception. If a reply gets lost, boto3 sends the write again, and DynamoDB counts twice. If a test sees
this, because the machine was busy for seconds, it only requires that the sweep corrects the totals.

All kinds of changes overlap: S3 events with the functions that stored the objects, replacements with deletions of the
same hash, removals of a writer's artifacts with uploads of that writer, and evictions with reads. COUNTED_CHANGES is
the number of requests (150). COUNTED_SEED selects others.
"""

import os
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from larder import aws, clock
from larder.actor import Actor
from larder.artifacts import eviction, reads, removals, uploads
from larder.artifacts.management import delete_artifact
from larder.artifacts.models import (
    UNPROTECTED,
    Artifact,
    ArtifactHash,
    ArtifactMetadata,
    CacheRequest,
    Totals,
    Upload,
    View,
)
from larder.artifacts.repository import index
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import add_to_totals, read_totals
from larder.errors import ArtifactNotFound, LarderError
from larder.hashing import time_ordered_id
from larder.settings import settings
from larder.teams.state import change_state
from larder.web.replies.errors import code_of
from tests.e2e import cloud as local_clouds
from tests.e2e.cloud import LocalCloud
from tests.hooks import hooked
from tests.layer_on import LayerOn
from tests.proofs.conftest import make_team
from tests.proofs.overlapping import Overlap, all_at_once
from tests.proofs.stored import index_sizes, object_keys, sweep_all, wait_for_events, wait_for_jobs
from tests.requests import Cloud

pytestmark = pytest.mark.slow

CHANGES = int(os.environ.get("COUNTED_CHANGES") or 80)
SEED = int(os.environ.get("COUNTED_SEED") or secrets.randbelow(10**9))
AT_ONCE = 32
TIMEOUT_S = 60 + CHANGES
WRITERS = [Actor(f"key{number}", f"user{number % 3}") for number in range(6)]
SIZE = (1_000, 40_000)
HASHES = max(20, CHANGES // 4)

Work = Callable[[], None]


@pytest.fixture(scope="module", params=["refuse", "evict"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A local cloud whose functions refuse or evict if a quota is full."""
    data = tmp_path_factory.mktemp("counted") / "data"
    options = {"LARDER_OVER_QUOTA": request.param}
    with local_clouds.running(request.config.rootpath, data, **options) as server:
        yield server


@pytest.fixture
def team(server: LocalCloud, layer_on: LayerOn) -> Cloud:
    layer_on(server)
    return make_team()


@dataclass
class Watched:
    """Reads the index repeatedly while the requests run."""

    owner: str
    most_bytes: int = 0
    looks: int = 0
    _over: Event = field(default_factory=Event)

    def look(self) -> None:
        # The index fits into one page, so a read shows one point in time.
        self.most_bytes = max(self.most_bytes, sum(index_sizes(self.owner).values()))
        self.looks += 1

    def __enter__(self) -> "Watched":
        self._thread = Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.look()


@contextmanager
def sent_again() -> Iterator[list[str]]:
    """A context that records the writes to the tables that this process sent more than once."""
    again: list[str] = []

    def look(parsed: dict[str, Any], model: Any, **_: object) -> None:
        if parsed.get("ResponseMetadata", {}).get("RetryAttempts"):
            again.append(model.name)

    with hooked("after-call", look, aws.dynamodb()):
        yield again


class Requests:
    """The requests of a team's clients and managers, as jobs that can run in parallel."""

    def __init__(self, cloud: Cloud, quota_bytes: int, http: httpx.Client) -> None:
        self._owner = cloud.team.id
        self._by = cloud.writer
        self._quota = quota_bytes
        self._http = http
        self.outcomes: Counter[str] = Counter()

    def draw(self, source: random.Random) -> Work:
        hash = ArtifactHash(f"{source.randrange(HASHES):016x}")
        writer, size = source.choice(WRITERS), source.randrange(*SIZE)
        body = source.randbytes(size)
        (kind,) = source.choices(["upload", "direct", "delete", "read", "remove"], [52, 14, 18, 12, 4])
        work: dict[str, Work] = {
            "upload": lambda: self._upload(hash, body, writer),
            "direct": lambda: self._direct(hash, body, writer),
            "delete": lambda: self._delete(hash),
            "read": lambda: self._read(hash),
            "remove": lambda: self._remove(source.choice([writer.credential_id, writer.user_id or ""])),
        }
        return lambda: self._counted(kind, work[kind])

    def _counted(self, kind: str, work: Work) -> None:
        try:
            work()
        except ArtifactNotFound:
            self.outcomes[f"{kind} missed"] += 1
        except LarderError as error:
            self.outcomes[f"{kind} {code_of(error)}"] += 1
        else:
            self.outcomes[kind] += 1

    def _upload(self, hash: ArtifactHash, body: bytes, writer: Actor) -> None:
        uploads.store(
            CacheRequest(
                owner=self._owner,
                hash=hash,
                writer=writer,
                view=View(quota_bytes=self._quota),
                now=clock.now(),
                entry=read_entry(self._owner, hash),
            ),
            body,
            ArtifactMetadata(),
        )

    def _direct(self, hash: ArtifactHash, body: bytes, writer: Actor) -> None:
        url = uploads.offer_upload(
            CacheRequest(owner=self._owner, hash=hash, writer=writer, view=UNPROTECTED, now=clock.now())
        )
        assert url is not None
        assert self._http.put(url, content=body).status_code == 200

    def _delete(self, hash: ArtifactHash) -> None:
        delete_artifact(
            self._owner,
            hash,
            read_entry(self._owner, hash),
            by=self._by,
            view=View(quota_bytes=self._quota),
            now=clock.now(),
        )

    def _read(self, hash: ArtifactHash) -> None:
        # The next day, so that each read records a use if the team evicts.
        now = clock.now()
        artifact = reads.find(read_entry(self._owner, hash), view=View(quota_bytes=self._quota), now=now)
        reads.fetch(artifact, now=now + timedelta(days=1))

    def _remove(self, writer: str) -> None:
        removals.ask_removal(self._owner, writer, by=self._by, now=clock.now())


def test_totals_are_exact_after_parallel_changes(server: LocalCloud, team: Cloud, report_lines: list[str]) -> None:
    source, owner = random.Random(SEED), team.team.id
    # The quota has room for about half of the hashes.
    quota_bytes = HASHES * sum(SIZE) // 4
    change_state(owner, quota_bytes=quota_bytes)
    began = time.monotonic()
    with (
        httpx.Client(timeout=60, limits=httpx.Limits(max_connections=AT_ONCE)) as http,
        ThreadPoolExecutor(AT_ONCE) as pool,
        Watched(owner) as watched,
        sent_again() as again,
    ):
        requests = Requests(team, quota_bytes, http)
        for done in [pool.submit(requests.draw(source)) for _ in range(CHANGES)]:
            done.result()
        wait_for_events(server.data, within_s=TIMEOUT_S)
        wait_for_jobs(server.data, within_s=TIMEOUT_S)
    took_s = time.monotonic() - began
    drift = drift_of(owner)
    assert drift == Totals() or "UpdateItem" in again, drift
    assert watched.most_bytes <= quota_bytes
    sweep_all(clock.now())
    left = check_books(owner)
    assert left.artifacts == len(object_keys(owner))
    report_lines.append(
        f"{CHANGES} changes of {HASHES} hashes, {settings().over_quota}, seed {SEED}: {took_s:.0f} s,"
        f" {dict(sorted(requests.outcomes.items()))};"
        f" at most {watched.most_bytes / quota_bytes:.1%} of the quota in {watched.looks} reads,"
        f" {left.artifacts} artifacts in the end; {len(again)} calls sent again, {drift.size_bytes} B drift"
    )
    assert requests.outcomes["upload"] > CHANGES // 10


def drift_of(owner: str) -> Totals:
    """The totals minus the index."""
    sizes, totals = index_sizes(owner), read_totals(owner)
    return Totals(size_bytes=totals.size_bytes - sum(sizes.values()), artifacts=totals.artifacts - len(sizes))


def check_books(owner: str) -> Totals:
    """Check that the totals equal the index and that no object is missing."""
    sizes, totals = index_sizes(owner), read_totals(owner)
    assert drift_of(owner) == Totals()
    stored = {tuple(key.split("/")[2:]) for key in object_keys(owner)}
    for hash in sizes:
        artifact = read_entry(owner, ArtifactHash(hash)).artifact
        assert artifact is not None
        assert (hash, artifact.upload.id) in stored
    return totals


EVICTORS = 24


@pytest.mark.usefixtures("on_the_local_server")
@pytest.mark.parametrize("seed", range(4))
def test_parallel_evictions_free_no_more_than_one_would(seed: int) -> None:
    source, owner = random.Random(seed), make_team().team.id
    sizes = fill(owner, source)
    quota_bytes = sum(sizes.values())
    aim_bytes = quota_bytes - quota_bytes // 10 - 200_000
    done = all_at_once(
        [lambda: free_space(owner, quota_bytes, quota_bytes - aim_bytes)] * EVICTORS, Overlap(held=False, seed=seed)
    )
    totals = read_totals(owner)
    assert drift_of(owner) == Totals()
    assert aim_bytes - max(sizes.values()) < totals.size_bytes <= aim_bytes
    # Only the least recently used artifacts are evicted.
    assert sorted(index_sizes(owner)) == list(sizes)[-totals.artifacts :]
    assert sum(one.answer.artifacts for one in done) == len(sizes) - totals.artifacts


def fill(owner: str, source: random.Random) -> dict[str, int]:
    """Index entries without objects. The order of their hashes is the order of their last use."""
    now, sizes = clock.now(), {}
    for number in range(150):
        hash, size = ArtifactHash(f"{number:04}"), source.randrange(*SIZE)
        used_at = now - timedelta(minutes=200 - number)
        artifact = Artifact(
            upload=Upload(owner=owner, hash=hash, id=time_ordered_id(used_at)), size_bytes=size, created_at=used_at
        )
        assert index.publish(artifact, replaces=None, now=now)
        index.note_use(artifact, at=used_at)
        sizes[str(hash)] = size
    add_to_totals(owner, sum(sizes.values()), len(sizes))
    return sizes


def free_space(owner: str, quota_bytes: int, needed_bytes: int) -> eviction.EvictionReport:
    return eviction.free_space(owner, quota_bytes=quota_bytes, needed_bytes=needed_bytes, now=clock.now())
