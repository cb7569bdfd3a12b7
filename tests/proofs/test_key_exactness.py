"""Counts of a key are exact with parallel requests, and a deleted key is never valid. On the local DynamoDB server.

The layer runs in many threads of this process. The server carries out one request after another, as DynamoDB does for
one item. The tests show that no use is lost or added between two requests of the layer. They also compare the replies:
no two valid ones can have the same count, because each took its own use.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest

from larder import aws, clock
from larder.api_keys import repository
from larder.api_keys.keys import create_key, find_key, revoke_key, rotate_key
from larder.api_keys.models import ApiKey, RateLimit, Refill, Refusal, Verification
from larder.api_keys.principals import Principal
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.self_service import update_key
from larder.api_keys.verification import verify
from larder.hashing import hash_key
from larder.settings import settings
from tests.e2e.cloud import LocalCloud
from tests.proofs.overlapping import OVERLAPS, TIMEOUT_S, Done, Overlap, all_at_once, every_overlap, most_under_way
from tests.proofs.stamped import http_client
from tests.requests import Cloud

pytestmark = pytest.mark.slow

READ = {"artifacts": ("read",)}
DAY_MS = 86_400_000
MINUTE = timedelta(minutes=1)
MINUTE_MS = 60_000
RACES = int(os.environ.get("DELETE_RACES") or 5)
HOT_THREADS = 8
WARMING = 20
"""Parallel requests after which every instance of the local cloud knows the key."""
VALID = "valid"


def make(team: Cloud, *, age: timedelta = timedelta(), **properties: Any) -> ApiKey:
    """A key of the team's owner, created `age` ago."""
    new = NewKey(user_id=team.user.id, team_id=team.team.id, **properties)
    return create_key(new, now=clock.now() - age)[0]


def limit(most: int, window_ms: int = DAY_MS) -> RateLimit:
    return RateLimit(enabled=True, window_ms=window_ms, max_requests=most)


def verify_at_once(key: ApiKey, times: int, overlap: Overlap, *, held_calls: int = 1) -> list[Done[Verification]]:
    """Verify a key in `times` threads, whose clocks differ by up to `times` milliseconds."""
    now = clock.now()
    skews = random.Random(overlap.seed).sample(range(times), times)

    def verify_as_of(moment: datetime) -> Callable[[], Verification]:
        return lambda: verify(key.key_hash, READ, now=moment)

    jobs = [verify_as_of(now - timedelta(milliseconds=skew)) for skew in skews]
    done = all_at_once(jobs, overlap, held_calls=held_calls)
    assert most_under_way(done) >= (times if overlap.held else 4), "they did not overlap"
    return done


def outcomes(done: list[Done[Verification]]) -> Counter[str]:
    return Counter(one.answer.refusal or VALID for one in done)


def records(done: list[Done[Verification]]) -> list[ApiKey]:
    """The key in each valid reply."""
    return [one.answer.key for one in done if one.answer.valid and one.answer.key is not None]


def stored(key: ApiKey) -> ApiKey:
    now = repository.get(key.key_hash)
    assert now is not None
    return now


@every_overlap
def test_of_40_parallel_requests_five_take_the_five_remaining_uses(overlap: Overlap, new_team: Cloud) -> None:
    key = make(new_team, remaining=5)
    done = verify_at_once(key, 40, overlap)
    assert outcomes(done)[VALID] == 5
    assert set(outcomes(done)) <= {VALID, Refusal.USED_UP, Refusal.INVALID}
    assert sorted(record.remaining or 0 for record in records(done)) == [0, 1, 2, 3, 4]
    assert repository.get(key.key_hash) is None
    assert find_key(key.id) is None
    assert verify(key.key_hash, READ, now=clock.now()).refusal is Refusal.INVALID


@every_overlap
def test_of_100_parallel_requests_20_pass_a_limit_of_20_and_the_others_take_no_use(
    overlap: Overlap, new_team: Cloud
) -> None:
    key = make(new_team, remaining=50, rate_limit=limit(20))
    done = verify_at_once(key, 100, overlap)
    assert outcomes(done) == {VALID: 20, Refusal.RATE_LIMITED: 80}
    assert sorted(record.request_count for record in records(done)) == list(range(1, 21))
    assert (stored(key).request_count, stored(key).remaining) == (20, 30)


@every_overlap
def test_a_refill_due_between_different_clocks_is_made_once(overlap: Overlap, new_team: Cloud) -> None:
    """The clocks differ: the refill is due for about half of the threads, and not yet for the others."""
    age = MINUTE - timedelta(milliseconds=20)
    key = make(new_team, age=age, remaining=100, refill=Refill(interval_ms=MINUTE_MS, amount=1_000))
    due = key.created_at + MINUTE
    skews = range(-20, 20)

    def verify_as_of(moment: datetime) -> Callable[[], Verification]:
        return lambda: verify(key.key_hash, READ, now=moment)

    jobs = [verify_as_of(due + timedelta(milliseconds=skew)) for skew in skews]
    done = all_at_once(jobs, overlap)
    assert outcomes(done) == {VALID: 40}
    before = [record for record in records(done) if record.last_refill_at is None]
    after = [record for record in records(done) if record.last_refill_at is not None]
    # Threads with a slow clock use what is left before or after the refill.
    left = [record.remaining or 0 for record in records(done)]
    assert len({*left}) == 40
    assert all(60 <= uses < 100 for uses in (record.remaining or 0 for record in before))
    assert all(1_060 <= uses < 1_100 for uses in (record.remaining or 0 for record in after))
    assert stored(key).remaining == 1_060
    assert {record.last_refill_at for record in after} == {stored(key).last_refill_at}


def test_the_proof_finds_a_counter_that_reads_and_then_writes(new_team: Cloud) -> None:
    """The same parallel requests on the same server, but without a conditional write: uses are granted twice."""
    key = make(new_team, remaining=5)

    def read_then_write() -> Verification:
        now = repository.get(key.key_hash)
        if now is None or not now.remaining:
            return Verification(key=now, refusal=Refusal.USED_UP)
        reply = aws.dynamodb().update_item(
            TableName=settings().api_keys_table,
            Key=aws.serialize({"key_hash": key.key_hash}),
            UpdateExpression="SET remaining = :left",
            ExpressionAttributeValues=aws.serialize({":left": now.remaining - 1}),
            ReturnValues="ALL_NEW",
        )
        left: int = aws.deserialize(reply["Attributes"])["remaining"]
        return Verification(key=replace(now, remaining=left))

    done = all_at_once([read_then_write] * 40, OVERLAPS[0], held_calls=2)
    assert outcomes(done)[VALID] == 40
    assert {record.remaining for record in records(done)} == {4}


class Users:
    """Threads that verify one key without a pause, and record the start and the result of each verification."""

    def __init__(self, key_hash: str, threads: int = HOT_THREADS) -> None:
        self.seen: list[Done[Verification]] = []
        self._hash = key_hash
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._use) for _ in range(threads)]

    def __enter__(self) -> "Users":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(TIMEOUT_S)
        assert not any(thread.is_alive() for thread in self._threads)

    def wait_for(self, verifications: int) -> None:
        """Wait until `verifications` more have returned."""
        deadline, target = time.monotonic() + TIMEOUT_S, len(self.seen) + verifications
        while len(self.seen) < target:
            assert time.monotonic() < deadline, "no verification returns"
            time.sleep(0.001)

    def _use(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            answer = verify(self._hash, READ, now=clock.now())
            self.seen.append(Done(answer, began, time.monotonic()))

    @property
    def valid(self) -> list[Done[Verification]]:
        return [one for one in self.seen if one.answer.valid]


KINDS: dict[str, dict[str, Any]] = {
    "unlimited": {},
    "counted": {"remaining": 10**6, "rate_limit": limit(10**6)},
    "whose window turns every millisecond": {"rate_limit": limit(10**6, 1)},
    "refilled every millisecond": {"remaining": 100, "refill": Refill(interval_ms=1, amount=100)},
}


def race_of_delete(key: ApiKey, source: random.Random) -> tuple[int, int]:
    """Delete a key that is in use. Returns how many verifications succeeded, and how many of those ended after the
    delete.
    """
    with Users(key.key_hash) as users:
        users.wait_for(source.randrange(1, 20))
        assert revoke_key(key)
        answered = time.monotonic()
        users.wait_for(2 * HOT_THREADS)
    late = [one for one in users.valid if one.began >= answered]
    assert not late, f"{len(late)} verifications succeeded that started after the delete returned"
    assert users.valid, "the key was never used"
    assert repository.get(key.key_hash) is None, "a verification restored the key"
    return len(users.valid), sum(one.ended >= answered for one in users.valid)


@pytest.mark.parametrize("kind", KINDS)
def test_no_verification_succeeds_after_delete_has_returned(
    kind: str, new_team: Cloud, report_lines: list[str]
) -> None:
    source = random.Random(kind)
    began = time.monotonic()
    races = [race_of_delete(make(new_team, **KINDS[kind]), source) for _ in range(RACES)]
    report_lines.append(
        f"delete against {HOT_THREADS} threads, a key {kind}: {RACES} races in "
        f"{time.monotonic() - began:.1f} s, {sum(passed for passed, _ in races)} passed before, "
        f"{sum(late for _, late in races)} of them answered after it, none that began after it"
    )


@pytest.mark.parametrize("seed", range(2))
def test_rotating_a_key_in_use_without_overlap_ends_the_old_one(seed: int, new_team: Cloud) -> None:
    key = make(new_team)
    with Users(key.key_hash) as users:
        users.wait_for(random.Random(seed).randrange(1, 20))
        rotated = rotate_key(key.id, overlap_s=0, now=clock.now())
        answered = time.monotonic()
        assert rotated is not None
        users.wait_for(2 * HOT_THREADS)
        assert verify(hash_key(rotated[1]), READ, now=clock.now()).valid
    assert not [one for one in users.valid if one.began >= answered]
    assert repository.get(key.key_hash) is None


# Through the cache API --------------------------------------------------------------------------


def get_at_once(cloud: LocalCloud, team: Cloud, token: str, times: int) -> list[httpx.Response]:
    """Parallel GETs of an artifact that does not exist, each on its own connection."""
    with http_client(times) as http:

        def get() -> httpx.Response:
            return http.get(
                f"{cloud.url}/v8/artifacts/absent",
                params={"slug": team.team.slug},
                headers={"authorization": f"Bearer {token}"},
            )

        done = all_at_once([get] * times, Overlap(held=False, seed=times))
    assert most_under_way(done) >= 4
    return [one.answer for one in done]


def test_of_40_parallel_http_requests_five_take_the_five_remaining_uses(
    local_cloud: LocalCloud, new_team: Cloud
) -> None:
    for _ in range(3):
        new = NewKey(user_id=new_team.user.id, team_id=new_team.team.id, remaining=5)
        key, token = create_key(new, now=clock.now())
        replies = get_at_once(local_cloud, new_team, token, 40)
        assert Counter(reply.status_code for reply in replies) == {404: 5, 401: 35}
        assert repository.get(key.key_hash) is None


@pytest.mark.parametrize(
    ("known_as", "changes", "refused"),
    [
        ({}, KeyChanges(remaining=5), 401),
        ({"remaining": 5 + WARMING}, None, 401),
        ({}, KeyChanges(rate_limit_enabled=True, rate_limit_max=5), 429),
        ({"rate_limit": limit(5 + WARMING)}, None, 429),
    ],
    ids=["new allowance", "allowance", "new rate limit", "rate limit"],
)
def test_of_40_parallel_http_requests_with_a_key_that_the_instances_know_five_pass(
    known_as: dict[str, Any], changes: KeyChanges | None, refused: int, local_cloud: LocalCloud, new_team: Cloud
) -> None:
    new = NewKey(user_id=new_team.user.id, team_id=new_team.team.id, **known_as)
    key, token = create_key(new, now=clock.now())
    known = get_at_once(local_cloud, new_team, token, WARMING)
    assert {reply.status_code for reply in known} == {404}
    if changes is not None:
        update_key(Principal(credential=key), key.id, changes, now=clock.now())
    replies = get_at_once(local_cloud, new_team, token, 40)
    assert Counter(reply.status_code for reply in replies) == {404: 5, refused: 35}


def test_of_100_parallel_http_requests_20_pass_a_limit_of_20(local_cloud: LocalCloud, new_team: Cloud) -> None:
    new = NewKey(user_id=new_team.user.id, team_id=new_team.team.id, remaining=50, rate_limit=limit(20))
    key, token = create_key(new, now=clock.now())
    replies = get_at_once(local_cloud, new_team, token, 100)
    assert Counter(reply.status_code for reply in replies) == {404: 20, 429: 80}
    assert all(int(r.headers["retry-after"]) > 0 for r in replies if r.status_code == 429)
    assert (stored(key).request_count, stored(key).remaining) == (20, 30)
