"""Many writers and readers of one hash at the same time: each reader gets one of the written artifacts, complete."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from larder import clock
from larder.actor import Actor
from larder.artifacts import reads, uploads
from larder.artifacts.models import UNPROTECTED, ArtifactHash, ArtifactMetadata, CacheRequest, Totals
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import read_totals
from tests.e2e.cloud import LocalCloud
from tests.proofs.stamped import Client, Seen, Stamped, Torn, Way, Written, http_client, stamp
from tests.proofs.stored import index_sizes, object_keys, sweep_all, wait_for_events
from tests.requests import Cloud

pytestmark = pytest.mark.slow

AT_ONCE = 64
HASH = "5eedc0ffee5eedc0"
SEED = 20_261_121
ROUNDS = int(os.environ.get("PARALLEL_ROUNDS") or 1)
"""The number of writes or reads of each thread."""

Work = Callable[[], None]


@pytest.fixture
def client(local_cloud: LocalCloud, new_team: Cloud) -> Iterator[Client]:
    with http_client(AT_ONCE) as http:
        yield Client(http, local_cloud.url, new_team.token, new_team.team.slug)


def all_at_once(jobs: list[Work]) -> None:
    """Run each job in its own thread. Raises the error of the first one that fails."""
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        for done in [pool.submit(job) for job in jobs]:
            done.result()


def size(way: Way, source: random.Random) -> int:
    """The function returns small artifacts. S3 returns larger ones without a tag."""
    if way is Way.DIRECT:
        return source.randrange(1, 3_000_000)
    return source.choice([source.randrange(1, 5_000), source.randrange(300_000, 900_000)])


def writer(client: Client, written: Written, ways: list[Way], number: int, times: int) -> Work:
    source = random.Random(SEED + number)

    def write() -> None:
        for _ in range(times):
            way = source.choice(ways)
            artifact = stamp(way, size(way, source), source)
            if way is Way.DIRECT:
                location = client.offer(HASH)
                written.add(artifact)
                assert client.put_to(location, artifact).status_code == 200
            else:
                written.add(artifact)
                reply = client.put(HASH, artifact)
                assert reply.status_code == 202, (reply.status_code, reply.text)

    return write


def reader(client: Client, written: Written, seen: Counter[str], times: int) -> Work:
    def read() -> None:
        for _ in range(times):
            got = client.get(HASH)
            if got is not None:
                seen[written.find(got).way.value] += 1
            head = client.head(HASH)
            if head.status_code != 404:
                assert head.status_code == 200
                headers = head.headers
                written.check_described(
                    int(headers["content-length"]),
                    headers.get("x-artifact-tag"),
                    int(headers.get("x-artifact-duration", 0)),
                )
            entry = client.query(HASH)[HASH]
            if entry is not None:
                written.check_described(entry["size"], entry.get("tag"), entry["taskDurationMs"])

    return read


@pytest.mark.parametrize(
    "ways",
    [
        pytest.param([Way.SIGNED, Way.PLAIN], id="through the API"),
        pytest.param([Way.SIGNED, Way.PLAIN, Way.DIRECT], id="through the API and to S3"),
        pytest.param([Way.DIRECT], id="straight to S3"),
    ],
)
def test_every_read_is_one_written_artifact_with_its_own_tag_and_duration(
    ways: list[Way], client: Client, local_cloud: LocalCloud, new_team: Cloud, report_lines: list[str]
) -> None:
    written, seen = Written(), Counter[str]()
    jobs = []
    for number in range(AT_ONCE // 2):
        jobs.append(writer(client, written, ways, number, ROUNDS))
        jobs.append(reader(client, written, seen, ROUNDS))
    began = time.monotonic()
    all_at_once(jobs)
    took_s = time.monotonic() - began
    wait_for_events(local_cloud.data)
    last = client.get(HASH)
    assert last is not None
    written.find(last)
    left_behind = check_books_and_sweep(new_team.team.id)
    assert client.get(HASH) == last
    report_lines.append(
        f"{AT_ONCE} in parallel ({', '.join(way.value for way in ways)}), {took_s:.0f} s: "
        f"{AT_ONCE // 2 * ROUNDS} writes, {sum(seen.values())} complete reads {dict(seen)}, "
        f"{left_behind} objects swept"
    )


def test_64_writers_and_readers_inside_the_service(new_team: Cloud) -> None:
    """The functions without the local cloud, whose workers run only a few of them in parallel."""
    owner, hash, written = new_team.team.id, ArtifactHash(HASH), Written()

    def write_all(number: int) -> Work:
        source = random.Random(SEED + number)

        def write() -> None:
            for _ in range(3):
                artifact = stamp(Way.SIGNED, source.randrange(1, 20_000), source)
                written.add(artifact)
                store(owner, artifact)

        return write

    def read_all() -> None:
        for _ in range(6):
            entry = read_entry(owner, hash)
            if entry.artifact is None:
                continue
            body = reads.fetch(entry.artifact, now=clock.now())
            assert isinstance(body, bytes)
            metadata = entry.artifact.metadata
            written.find(Seen.of(body, metadata.tag, metadata.duration_ms or 0))

    jobs: list[Work] = []
    for number in range(AT_ONCE // 2):
        jobs += [write_all(number), read_all]
    all_at_once(jobs)
    check_books_and_sweep(owner)


def store(owner: str, artifact: Stamped) -> None:
    hash = ArtifactHash(HASH)
    uploads.store(
        CacheRequest(
            owner=owner,
            hash=hash,
            writer=Actor("a-key"),
            view=UNPROTECTED,
            now=clock.now(),
            entry=read_entry(owner, hash),
        ),
        artifact.body,
        ArtifactMetadata(duration_ms=artifact.duration_ms, tag=artifact.tag),
    )


def check_books_and_sweep(owner: str) -> int:
    """Check that the index has one artifact, that the totals match, and that the sweeps leave only its object. Returns
    the number of deleted objects.
    """
    entry = read_entry(owner, ArtifactHash(HASH))
    assert entry.artifact is not None
    assert index_sizes(owner) == {HASH: entry.artifact.size_bytes}
    assert read_totals(owner) == Totals(size_bytes=entry.artifact.size_bytes, artifacts=1)
    before = len(object_keys(owner))
    sweep_all(clock.now())
    assert object_keys(owner) == [entry.artifact.upload.object_key]
    assert read_totals(owner) == Totals(size_bytes=entry.artifact.size_bytes, artifacts=1)
    return before - 1


def test_the_proof_finds_a_mixed_artifact() -> None:
    source, written = random.Random(SEED), Written()
    one, other = stamp(Way.SIGNED, 1000, source), stamp(Way.SIGNED, 1001, source)
    written.add(one)
    written.add(other)
    assert written.find(Seen.of(one.body, one.tag, one.duration_ms)).digest == one.digest
    for mixed in (
        Seen.of(one.body[:999], one.tag, one.duration_ms),
        Seen.of(one.body[:500] + other.body[500:], one.tag, one.duration_ms),
        Seen.of(one.body, other.tag, one.duration_ms),
        Seen.of(one.body, one.tag, other.duration_ms),
    ):
        with pytest.raises(Torn):
            written.find(mixed)
    with pytest.raises(Torn):
        written.check_described(1001, one.tag, one.duration_ms)
