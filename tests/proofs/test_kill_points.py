"""kill -9 during uploads, then a restart with the same data: each upload is complete or absent.

There are four kill points by default, and 50 with KILL_POINTS=50. KILL_SEED repeats the same moments, but what the
machine does in them differs. At each kill point, writers and readers use the API and S3 until the server is killed.
Then the test reads every hash that could have changed (after the last kill, every hash ever written): at once, after
the delayed events were delivered, after a sweep, and after the operator's rebuild of the index, which also corrects the
totals.
"""

import os
import random
import secrets
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

import httpx
import pytest

from larder import clock
from larder.artifacts import rebuild_index
from larder.artifacts.repository.totals import read_totals
from larder.teams.teams import find_team
from tests.e2e import cloud as local_clouds
from tests.e2e.cloud import LocalCloud
from tests.layer_on import LayerOn
from tests.proofs.stamped import Client, Seen, Stamped, Torn, Way, Written, http_client, stamp
from tests.proofs.stored import index_sizes, object_keys, sweep_all, wait_for_events

pytestmark = pytest.mark.slow

KILL_POINTS = int(os.environ.get("KILL_POINTS") or 2)
SEED = int(os.environ.get("KILL_SEED") or secrets.randbelow(10**9))
SHARED_HASHES = [f"5eed{number:012x}" for number in range(4)]
INLINE_WRITERS, DIRECT_WRITERS, READERS = 3, 2, 2
MOMENTS = {"begin": 1.0, "inline sent": 0.1, "direct sent": 0.2, "stored": 1.0}
"""The longest time to the kill, after the start of the work, after the last byte of the first inline or direct upload,
or after the first acknowledged upload."""

TIMEOUT_S = 60
OUTCOMES = ("acknowledged", "inline complete", "inline absent", "direct complete", "direct absent", "another kept")
SIZES = {
    Way.SIGNED: [(100, 4_000), (300_000, 900_000), (3_000_000, 4_000_000)],
    Way.PLAIN: [(100, 4_000), (300_000, 900_000), (3_000_000, 4_000_000)],
    Way.DIRECT: [(8_000_000, 12_000_000), (20_000_000, 30_000_000)],
}


class LeftBehind(NamedTuple):
    """What crashes leave that readers do not see: totals that are too high, and unknown objects."""

    bytes_counted: int
    artifacts_counted: int
    objects: int

    def __str__(self) -> str:
        return f"{self.bytes_counted:+} bytes, {self.artifacts_counted:+}; {self.objects} objects"


NOTHING = LeftBehind(0, 0, 0)


@dataclass
class Attempt:
    """One upload. `ended` is the time of its reply, or of the kill."""

    point: int
    hash: str
    artifact: Stamped
    began: float
    ended: float | None = None
    acknowledged: bool = False


@dataclass
class History:
    """Every upload since the data folder was created."""

    attempts: dict[str, list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    written: dict[str, Written] = field(default_factory=lambda: defaultdict(Written))
    lock: threading.Lock = field(default_factory=threading.Lock)
    visible: dict[str, Attempt] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def begin(self, point: int, hash: str, artifact: Stamped) -> Attempt:
        attempt = Attempt(point, hash, artifact, began=time.monotonic())
        with self.lock:
            self.written[hash].add(artifact)
            self.attempts[hash].append(attempt)
        return attempt

    def hashes(self, point: int | None = None) -> list[str]:
        """Every hash with an upload, or only those that could have changed at one kill point."""
        with self.lock:
            return [
                hash
                for hash, attempts in self.attempts.items()
                if point is None or attempts[-1].point == point or hash in SHARED_HASHES
            ]

    def check(self, hash: str, seen: Seen | None) -> Attempt | None:
        """A reader must get one complete upload, not older than an acknowledged one. Returns that upload."""
        attempts = self.attempts[hash]
        acknowledged = [attempt for attempt in attempts if attempt.acknowledged]
        if seen is None:
            assert not acknowledged, f"{hash}: an acknowledged upload is lost: {acknowledged[-1]}"
            return None
        found = self.written[hash].find(seen)
        visible = next(one for one in attempts if one.artifact.digest == found.digest)
        newer = [one for one in acknowledged if visible.ended and one.began > visible.ended]
        assert not newer, f"{hash}: {visible} replaces the acknowledged {newer[-1]}"
        return visible


@dataclass
class Doomed:
    """The requests that run when the server is killed."""

    client: Client
    history: History
    number: int
    dying: threading.Event = field(default_factory=threading.Event)
    happened: dict[str, threading.Event] = field(
        default_factory=lambda: {moment: threading.Event() for moment in MOMENTS}
    )
    reads: int = 0
    failures: list[BaseException] = field(default_factory=list)

    def jobs(self) -> list[Callable[[], None]]:
        inline = [self._writer(way) for way in self._ways(INLINE_WRITERS)]
        direct = [self._writer(Way.DIRECT)] * DIRECT_WRITERS
        return [*inline, *direct, *[self._read] * READERS]

    def _ways(self, count: int) -> list[Way]:
        return [(Way.SIGNED, Way.PLAIN)[number % 2] for number in range(count)]

    def _writer(self, way: Way) -> Callable[[], None]:
        def write() -> None:
            source = random.Random(secrets.randbits(64))
            for upload in range(1000):
                if self.dying.is_set():
                    return
                low, high = source.choice(SIZES[way])
                artifact = stamp(way, source.randrange(low, high), source)
                fresh = f"{self.number:04x}{secrets.token_hex(6)}"
                hash = source.choice([*SHARED_HASHES, fresh, fresh]) if upload else fresh
                attempt = self.history.begin(self.number, hash, artifact)
                status = self._upload(attempt)
                attempt.ended = time.monotonic()
                attempt.artifact = stamp_without_body(artifact)
                if status is None:
                    return
                expected = 200 if way is Way.DIRECT else 202
                attempt.acknowledged = status == expected
                if attempt.acknowledged:
                    self.happened["stored"].set()
                if status != expected and not self.dying.is_set():
                    self.failures.append(AssertionError(f"{way} got {status}"))

        return write

    def _upload(self, attempt: Attempt) -> int | None:
        """Returns the status, or None if the connection broke."""
        try:
            if attempt.artifact.way is Way.DIRECT:
                location = self.client.offer(attempt.hash)
                sent = self.happened["direct sent"].set
                return self.client.put_to(location, attempt.artifact, on_sent=sent).status_code
            sent = self.happened["inline sent"].set
            return self.client.put(attempt.hash, attempt.artifact, on_sent=sent).status_code
        except (httpx.HTTPError, AssertionError) as error:
            if not self.dying.is_set():
                self.failures.append(error)
            return None

    def _read(self) -> None:
        source = random.Random(secrets.randbits(64))
        while not self.dying.is_set():
            hash = source.choice([*SHARED_HASHES, *self.history.hashes()[-6:]])
            try:
                seen = self.client.get(hash)
                if seen is not None:
                    self.history.written[hash].find(seen)
                    self.reads += 1
            except (httpx.HTTPError, AssertionError) as error:
                # Readers notice an error or a broken connection. They do not notice a mixed artifact.
                if isinstance(error, Torn) or not self.dying.is_set():
                    self.failures.append(error)


def stamp_without_body(artifact: Stamped) -> Stamped:
    return Stamped(artifact.way, artifact.size_bytes, artifact.digest, b"")


@pytest.fixture(scope="module")
def doomed_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    folder = tmp_path_factory.mktemp("doomed")
    server = local_clouds.start(request.config.rootpath, folder / "data")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def history(report_lines: list[str]) -> Iterator[History]:
    report_lines.append(f"kill points: {KILL_POINTS}, KILL_SEED={SEED}")
    report_lines.append(
        f"   no  killed after                  {'  '.join(OUTCOMES)}  reads  totals too high, unknown objects"
    )
    made = History()
    yield made
    report_lines.append(f"  total: {dict(made.outcomes)}")


@pytest.mark.parametrize("number", range(KILL_POINTS))
def test_after_a_kill_each_upload_is_complete_or_absent_and_none_acknowledged_is_lost(
    number: int, doomed_cloud: LocalCloud, history: History, layer_on: LayerOn, report_lines: list[str]
) -> None:
    chance = random.Random(f"{SEED}/{number}")
    # Four kill points in a row cover every moment and both kills. Eight cover both kills at each moment.
    moment = list(MOMENTS)[number % len(MOMENTS)]
    everything = (number + number // len(MOMENTS)) % 2 == 0
    wait_s = chance.uniform(0, MOMENTS[moment])
    with http_client(2 * (INLINE_WRITERS + DIRECT_WRITERS + READERS)) as http:
        client = Client(http, doomed_cloud.url, doomed_cloud.token, doomed_cloud.team)
        work = Doomed(client, history, number)
        with ThreadPoolExecutor(max_workers=INLINE_WRITERS + DIRECT_WRITERS + READERS) as pool:
            running = [pool.submit(job) for job in work.jobs()]
            work.happened["begin"].set()
            work.happened[moment].wait(TIMEOUT_S)
            time.sleep(wait_s)
            work.dying.set()
            kill(doomed_cloud, everything=everything)
            for job in running:
                job.result(timeout=60)
    assert not work.failures, work.failures
    doomed_cloud.start()
    hashes = history.hashes(None if number == KILL_POINTS - 1 else number)
    with http_client(4) as http:
        client = Client(http, doomed_cloud.url, doomed_cloud.token, doomed_cloud.team)
        assert client.status() == "enabled"
        look_at(hashes, client, history)
        wait_for_events(doomed_cloud.data)
        look_at(hashes, client, history)
        layer_on(doomed_cloud)
        sweep_all(clock.now())
        look_at(hashes, client, history)
        what_became = outcome(history, number)
        left_behind = check_index(doomed_cloud.team, history)
        rebuild_index.rebuild_index(now=clock.now())
        sweep_all(clock.now())
        look_at(hashes, client, history)
    assert check_index(doomed_cloud.team, history) == NOTHING
    killed = f"{'all' if everything else 'parent':6} {moment:11} {wait_s * 1000:+5.0f} ms"
    report_lines.append(f"  {number:3}  {killed}  {what_became}  {work.reads:4}  {left_behind}")


def kill(server: LocalCloud, *, everything: bool) -> None:
    """kill -9 the server alone, so that its children must notice it, or all of its processes."""
    assert server.process is not None
    pids = [server.process.pid, *(children(server.process.pid) if everything else [])]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    server.kill()


def children(pid: int) -> list[int]:
    lines = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    pairs = [tuple(map(int, line.split())) for line in lines]
    return [child for child, parent in pairs if parent == pid]


def look_at(hashes: list[str], client: Client, history: History) -> None:
    """Read these hashes with GET, HEAD and a query, and check with a query that all others are unchanged."""
    for hash in hashes:
        attempt = history.check(hash, client.get(hash))
        head = client.head(hash)
        assert head.status_code == (200 if attempt else 404)
        if attempt:
            history.visible[hash] = attempt
            assert int(head.headers["content-length"]) == attempt.artifact.size_bytes
    everything = history.hashes()
    for start in range(0, len(everything), 100):
        some = everything[start : start + 100]
        for hash, entry in client.query(*some).items():
            there = history.visible.get(hash)
            assert (entry is None) == (there is None), (hash, entry, there)
            if there:
                known = there.artifact
                described = (entry["size"], entry.get("tag"), entry["taskDurationMs"])
                assert described == (known.size_bytes, known.tag, known.duration_ms)


def check_index(slug: str, history: History) -> LeftBehind:
    """Check the index against what readers see. Returns what the crashes left in the totals and in the bucket."""
    team = find_team(slug)
    assert team is not None
    sizes = index_sizes(team.id)
    assert sizes == {hash: one.artifact.size_bytes for hash, one in history.visible.items()}
    totals = read_totals(team.id)
    return LeftBehind(
        totals.size_bytes - sum(sizes.values()), totals.artifacts - len(sizes), len(object_keys(team.id)) - len(sizes)
    )


def outcome(history: History, point: int) -> str:
    """The results of the uploads that the kill interrupted, and the number that were acknowledged before."""
    attempts = [one for some in history.attempts.values() for one in some if one.point == point]
    kinds = Counter(dict.fromkeys(OUTCOMES, 0))
    for one in attempts:
        way = "direct" if one.artifact.way is Way.DIRECT else "inline"
        if one.acknowledged:
            kinds["acknowledged"] += 1
        elif history.visible.get(one.hash) is one:
            kinds[f"{way} complete"] += 1
        elif one.hash in history.visible:
            kinds["another kept"] += 1
        else:
            kinds[f"{way} absent"] += 1
    history.outcomes.update(kinds)
    return "  ".join(f"{kinds[kind]:{len(kind)}}" for kind in OUTCOMES)
