"""2,000 uses a second of one key, simulated: how many functions run at once.

The calls of a request, and how often it tries each, are recorded from the code. The limits of one DynamoDB partition
are those that AWS publishes, the pauses between tries those of botocore's standard mode. Time is simulated.
"""

import heapq
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

import time_machine

from larder import aws, clock
from larder.api_keys.keys import create_key
from larder.api_keys.models import RateLimit
from larder.api_keys.properties import NewKey
from larder.api_keys.verification import NOTED_AGAIN_AFTER
from larder.settings import settings
from tests.faults import refusing
from tests.hooks import hooked
from tests.requests import Cloud, Sender
from tools.cost.bill import Team, read_book

READS_A_SECOND, WRITES_A_SECOND = 3_000, 1_000
"""Of one partition: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"""

WITH_A_KEY = ("small_hit", "redirected_hit", "miss", "offer", "status", "events")
"""The kinds of requests of tools/cost/prices.toml that check a key."""

USES_A_SECOND = 2_000
MOST_FUNCTIONS = 100
ACCOUNT_FUNCTIONS = 1_000
CALL_S = 0.005
THROTTLED = {"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}


@dataclass(frozen=True)
class Uses:
    """What the requests of an instance that knows the key do with the key's item.

    `usual` and `due` are the calls of a request within a minute of the last recorded use and after it, `throttled`
    those of one whose writes DynamoDB refuses.
    """

    usual: list[str]
    due: list[str]
    throttled: list[str]


@contextmanager
def recorded() -> Iterator[list[str]]:
    """The calls to the table of keys, including each try."""
    calls: list[str] = []

    def note(request: Any, event_name: str, **_: object) -> None:
        if settings().api_keys_table.encode() in request.body:
            calls.append(event_name.rpartition(".")[2])

    with hooked("before-send", note, aws.dynamodb()):
        yield calls


def uses_of(send: Sender) -> Uses:
    def calls() -> list[str]:
        with recorded() as made:
            assert send("HEAD", "/v8/artifacts/absent").status == 404
        return made

    with time_machine.travel(clock.now(), tick=False) as traveller:
        calls()
        usual = calls()
        traveller.shift(NOTED_AGAIN_AFTER)
        due = calls()
        traveller.shift(NOTED_AGAIN_AFTER)
        with refusing("dynamodb", "UpdateItem", 400, THROTTLED):
            throttled = calls()
    return Uses(usual, due, throttled)


def pause(random: Random, attempt: int) -> float:
    """The pause after a throttled try, from 1, in botocore.retries.standard.ExponentialBackoff."""
    return random.random() * min(2 ** (attempt - 1), 20)


def busy_ms() -> float:
    """The time of an average request with a key, from the model of `make cost`."""
    uses = read_book().uses["requests"]
    requests = Team(engineers=1_000).requests
    counts = {kind: requests[kind] for kind in WITH_A_KEY}
    return sum(count * uses[kind]["milliseconds"] for kind, count in counts.items()) / sum(counts.values())


class Partition:
    """Accepts so many calls in each second."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken: dict[int, int] = {}
        self.refused = 0

    def accepts(self, at: float) -> bool:
        taken = self.taken.get(int(at), 0)
        self.taken[int(at)] = taken + 1
        self.refused += taken >= self.most
        return taken < self.most


@dataclass
class Instance:
    """An instance of a function, and when it knows that the last use was recorded or tried."""

    noted_at: float = -1e9


def functions_at_once(uses: Uses, random: Random, *, seconds: int) -> tuple[int, Partition]:
    """The most functions that ran at once, and the partition's reads."""
    reads, writes = Partition(READS_A_SECOND), Partition(WRITES_A_SECOND)
    work_s, every_s = busy_ms() / 1000, NOTED_AGAIN_AFTER.total_seconds()
    recorded_at, running, most = -every_s, 0, 0
    idle: list[Instance] = []
    order = count()
    events: list[tuple[float, int, Instance | None, int]] = []
    """The time, a number that makes events differ, the instance, and the try of its write. 0 is the request's end."""
    for use in range(seconds * USES_A_SECOND):
        # Evenly spread, but at random within their shares of the second.
        heapq.heappush(events, ((use + random.random()) / USES_A_SECOND, next(order), None, 1))
    while events:
        at, _, instance, attempt = heapq.heappop(events)
        if instance is not None and attempt == 0:
            running -= 1
            idle.append(instance)
            continue
        if instance is None:
            instance = idle.pop() if idle else Instance()
            running += 1
            most = max(most, running)
        calls = uses.due if at - instance.noted_at >= every_s else uses.usual
        if "UpdateItem" in calls:
            if writes.accepts(at):
                recorded_at = at
            elif attempt < uses.throttled.count("UpdateItem"):
                again = at + CALL_S + pause(random, attempt)
                heapq.heappush(events, (again, next(order), instance, attempt + 1))
                continue
            elif "GetItem" in uses.throttled:
                reads.accepts(at)
            if uses.due != uses.usual:
                instance.noted_at = at
        else:
            reads.accepts(at)
            instance.noted_at = max(instance.noted_at, recorded_at)
        heapq.heappush(events, (at + work_s, next(order), instance, 0))
    return most, reads


def test_2000_uses_a_second_of_a_key_without_limits_run_at_most_100_functions(
    cloud: Cloud, report_lines: list[str]
) -> None:
    uses = uses_of(cloud.send)
    assert "UpdateItem" not in uses.usual
    assert uses.due.count("UpdateItem") == uses.throttled.count("UpdateItem") == 1
    # Longer than a minute, so that uses are recorded again.
    most, reads = functions_at_once(uses, Random(1), seconds=70)
    report_lines.append(f"{USES_A_SECOND} uses a second of one key: {most} functions at once")
    assert most <= MOST_FUNCTIONS
    assert reads.refused == 0


def test_the_simulation_shows_that_counting_each_use_takes_all_functions_of_an_account(
    cloud: Cloud, report_lines: list[str]
) -> None:
    limit = RateLimit(enabled=True, window_ms=10**9, max_requests=10**9)
    new = NewKey(user_id=cloud.user.id, team_id=cloud.team.id, rate_limit=limit)
    uses = uses_of(Sender(create_key(new, now=clock.now())[1]))
    assert uses == Uses(["UpdateItem"], ["UpdateItem"], ["UpdateItem"] * 3 + ["GetItem"])
    most, _ = functions_at_once(uses, Random(1), seconds=10)
    report_lines.append(f"{USES_A_SECOND} counted uses a second: {most} functions at once")
    assert most > ACCOUNT_FUNCTIONS
