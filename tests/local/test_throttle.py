"""The local gateway refuses requests as API Gateway and Lambda do: off by default, and never by a function."""

import threading
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

import httpx
import pytest

from local.gateway.throttle import TokenBucket
from tests.local.stub_service import StubCloud, eventually
from tests.permissions import TEMPLATE

# Each starts processes, and waits for them.
pytestmark = pytest.mark.slow

TASKS_A_BUILD = 50
OPEN_REQUESTS = 10
SECONDS_A_REQUEST = 0.06
TRY_AGAIN_AFTER = 2.0
RATE_BURST = ("Rate", "Burst")


@pytest.fixture(scope="module")
def throttled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubCloud]:
    folder = tmp_path_factory.mktemp("throttled")
    cloud = StubCloud(folder, workers=2, THROTTLE="1/3", CONCURRENCY="1")
    yield cloud
    cloud.stop()


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubCloud]:
    cloud = StubCloud(tmp_path_factory.mktemp("crowded"), workers=2, CONCURRENCY="1")
    yield cloud
    cloud.stop()


def test_a_request_above_the_burst_is_refused_without_our_headers(throttled: StubCloud) -> None:
    with httpx.Client(base_url=throttled.url, trust_env=False, timeout=40) as client:
        replies = [client.options("/echo/a") for _ in range(30)]
    assert [reply.status_code for reply in replies[:3]] == [200, 200, 200]
    refused = [reply for reply in replies if reply.status_code != 200]
    assert {(one.status_code, one.text) for one in refused} == {(429, '{"message":"Too Many Requests"}')}
    assert not [name for name in refused[0].headers if name.startswith("access-control")]
    assert eventually(lambda: "throttled by THROTTLE" in throttled.screen)


def test_a_request_is_refused_while_all_functions_run(crowded: StubCloud) -> None:
    def get(path: str) -> httpx.Response:
        return httpx.get(f"{crowded.url}{path}", trust_env=False, timeout=40)

    replies = [get("/echo/a")]
    seen = threading.Event()

    def keep_the_only_function_busy() -> None:
        # Repeated, because this request is refused itself if it arrives while the other one runs.
        while not seen.is_set():
            get("/misbehave/sleep")

    def is_refused() -> bool:
        replies.append(get("/echo/a"))
        return replies[-1].status_code != 200

    busy = threading.Thread(target=keep_the_only_function_busy)
    busy.start()
    try:
        assert eventually(is_refused)
    finally:
        seen.set()
        busy.join()
    assert replies[0].status_code == 200
    assert (replies[-1].status_code, replies[-1].text) == (503, '{"message":"Service Unavailable"}')
    assert get("/echo/a").status_code == 200


def test_tokens_are_refilled_with_time_up_to_the_burst() -> None:
    bucket = TokenBucket(rate=2, burst=3)
    assert [bucket.take(0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(0.5), bucket.take(0.5)] == [True, False]
    assert [bucket.take(100) for _ in range(4)] == [True, True, True, False]


def lost_hits(bucket: TokenBucket, *, jobs: int, within_s: float) -> int:
    """The hits that are lost if this many jobs start evenly within this time, with every task cached.

    turbo sends an OPTIONS and a GET for each, and tries each once more if it is refused. A hit is lost if the second
    try is refused too: the GET is not sent, or goes without the token.
    """
    lost, order = 0, count()
    waiting: list[tuple[float, int, int, int, bool]] = []
    left = [TASKS_A_BUILD - OPEN_REQUESTS] * jobs
    for job in range(jobs):
        for _ in range(OPEN_REQUESTS):
            heappush(waiting, (within_s * job / jobs, next(order), job, 2, False))
    while waiting:
        at, _, job, requests, again = heappop(waiting)
        if bucket.take(at):
            at, requests, again = at + SECONDS_A_REQUEST, requests - 1, False
        elif not again:
            at, again = at + TRY_AGAIN_AFTER, True
        else:
            lost, requests = lost + 1, 0
        if requests == 0 and left[job]:
            left[job], requests, again = left[job] - 1, 2, False
        if requests:
            heappush(waiting, (at, next(order), job, requests, again))
    return lost


@pytest.mark.parametrize(("jobs", "within_s"), [(50, 1), (100, 5), (200, 10), (200, 60)])
def test_a_burst_of_ci_jobs_loses_no_hit_with_the_default_limits(jobs: int, within_s: int) -> None:
    rate, burst = (int(TEMPLATE["Parameters"][f"Throttling{name}"]["Default"]) for name in RATE_BURST)
    assert lost_hits(TokenBucket(rate, burst), jobs=jobs, within_s=within_s) == 0


def test_a_lower_limit_loses_hits() -> None:
    assert lost_hits(TokenBucket(500, 1000), jobs=200, within_s=10) > 1000
