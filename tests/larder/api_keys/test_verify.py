"""The results and effects of verifying a key: each state of a key, each change of state, and the order of the rules
(docs/clients/better-auth.md#order-of-verification).
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import clock
from larder.api_keys import repository
from larder.api_keys.keys import create_key, delete_expired_keys, delete_expired_keys_if_due, find_key
from larder.api_keys.models import ApiKey, RateLimit, Refill, Refusal, Verification
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.self_service import update_key
from larder.api_keys.verification import verify
from larder.errors import InvalidValue, TryAgain
from larder.hashing import hash_key
from tests.faults import answering, error, unreachable
from tests.principals import by_session
from tests.requests import Cloud

READ = {"artifacts": ("read",)}
MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
MINUTE_MS = 60_000


def limit(most: int, window_ms: int = MINUTE_MS) -> RateLimit:
    return RateLimit(enabled=True, window_ms=window_ms, max_requests=most)


class Key:
    """A key under test, with its own clock."""

    def __init__(self, cloud: Cloud, **properties: Any) -> None:
        self.now = clock.now()
        self.made, self.raw = create_key(NewKey(user_id=cloud.user.id, **properties), now=self.now)

    def use(self, *, after: timedelta = timedelta()) -> Verification:
        self.now += after
        return verify(hash_key(self.raw), READ, now=self.now)

    @property
    def stored(self) -> ApiKey | None:
        return repository.get(self.made.key_hash)


def test_a_key_is_deleted_when_remaining_reaches_0(cloud: Cloud) -> None:
    key = Key(cloud, remaining=2)
    assert [key.use().valid for _ in range(2)] == [True, True]
    assert key.stored is None
    assert key.use().refusal is Refusal.INVALID


def test_a_key_with_a_refill_stays_when_remaining_reaches_0(cloud: Cloud) -> None:
    key = Key(cloud, remaining=1, refill=Refill(interval_ms=MINUTE_MS, amount=2))
    assert key.use().valid
    answer = key.use()
    assert (answer.valid, answer.refusal) == (False, Refusal.USED_UP)
    assert key.stored is not None


def test_a_use_at_the_rate_limit_is_refused_until_the_window_has_passed(cloud: Cloud) -> None:
    key = Key(cloud, rate_limit=limit(2))
    assert [key.use().valid for _ in range(2)] == [True, True]
    answer = key.use(after=timedelta(seconds=20))
    assert (answer.refusal, answer.try_again_in_ms) == (Refusal.RATE_LIMITED, 40_000)
    assert not key.use(after=timedelta(seconds=39)).valid
    answer = key.use(after=timedelta(seconds=1))
    assert answer.key is not None
    assert (answer.valid, answer.key.request_count) == (True, 1)
    assert answer.key.window_ends_at == key.now + MINUTE


def test_an_expired_key_is_deleted(cloud: Cloud) -> None:
    key, other = Key(cloud, expires_in_s=60), Key(cloud)
    assert key.use(after=MINUTE).refusal is Refusal.EXPIRED
    assert delete_expired_keys(now=key.now) == 1
    assert key.use().refusal is Refusal.INVALID
    assert other.use().valid
    assert delete_expired_keys(now=key.now) == 0


def test_a_refill_is_added_at_the_first_use_after_it_is_due(cloud: Cloud) -> None:
    key = Key(cloud, remaining=1, refill=Refill(interval_ms=MINUTE_MS, amount=5))
    assert key.use().valid
    assert not key.use(after=MINUTE).valid, "more than the interval must have passed"
    answer = key.use(after=timedelta(milliseconds=1))
    assert answer.key is not None
    assert (answer.valid, answer.key.remaining) == (True, 4)
    assert answer.key.last_refill_at == key.made.created_at + MINUTE


def test_a_refill_adds_to_the_remaining_uses(cloud: Cloud) -> None:
    key = Key(cloud, remaining=100, refill=Refill(interval_ms=MINUTE_MS, amount=5))
    answer = key.use(after=MINUTE + SECOND)
    assert answer.key is not None
    assert answer.key.remaining == 104
    answer = key.use()
    assert answer.key is not None
    assert answer.key.remaining == 103


def test_a_refill_is_added_for_each_full_interval_without_drift(cloud: Cloud) -> None:
    key = Key(cloud, remaining=100, refill=Refill(interval_ms=MINUTE_MS, amount=5))
    made = key.now
    for after, remaining, refilled_at in [
        (3.5 * MINUTE, 114, made + 3 * MINUTE),
        (0.5 * MINUTE, 113, made + 3 * MINUTE),
        (MILLISECOND, 117, made + 4 * MINUTE),
        (0.9 * MINUTE, 116, made + 4 * MINUTE),
        (0.2 * MINUTE, 120, made + 5 * MINUTE),
    ]:
        answer = key.use(after=after)
        assert answer.key is not None
        assert (answer.key.remaining, answer.key.last_refill_at) == (remaining, refilled_at)
        assert key.stored == answer.key
        assert answer.key.refill_due_at == refilled_at + MINUTE


def test_refills_stop_at_the_largest_number(cloud: Cloud) -> None:
    key = Key(cloud, remaining=10**12 - 3, refill=Refill(interval_ms=1, amount=10**12))
    answer = key.use(after=365 * 24 * 60 * MINUTE)
    assert answer.key is not None
    assert answer.key.remaining == 10**12 - 1


def test_raising_the_uses_of_a_key_with_refills_keeps_the_maximum(cloud: Cloud) -> None:
    key = Key(cloud, remaining=5, refill=Refill(interval_ms=MINUTE_MS, amount=10**12))
    operator = by_session("A" * 32, is_operator=True)
    key.now += 2 * MINUTE
    seen = key.made

    update_key(operator, key.made.id, KeyChanges(remaining=10**12), now=key.now)
    passed, stored = repository.use(key.made.key_hash, READ, now=key.now, renewing=seen)
    assert (passed, stored and stored.remaining) == (False, 10**12)
    answer = key.use()
    assert answer.key is not None
    assert (answer.valid, answer.key.remaining) == (True, 10**12 - 1)


def test_a_refill_that_is_set_later_counts_from_then_on(cloud: Cloud) -> None:
    key = Key(cloud, remaining=100)
    operator = by_session("A" * 32, is_operator=True)

    def refill_by(amount: int, interval_ms: int = MINUTE_MS) -> ApiKey:
        changes = KeyChanges(refill=Refill(interval_ms=interval_ms, amount=amount))
        return update_key(operator, key.made.id, changes, now=key.now)

    key.now += 60 * MINUTE
    assert refill_by(5).refill_due_at == key.now + MINUTE
    answer = key.use(after=MINUTE + SECOND)
    assert answer.key is not None
    assert answer.key.remaining == 104
    due_at = answer.key.refill_due_at
    assert refill_by(7).refill_due_at == due_at, "another amount keeps the interval"
    assert refill_by(7, 2 * MINUTE_MS).refill_due_at == key.now + 2 * MINUTE
    without = update_key(operator, key.made.id, KeyChanges(refill=None), now=key.now)
    assert (without.refill, without.refill_due_at) == (None, None)


def test_uses_are_counted_per_window_even_without_a_rate_limit(cloud: Cloud) -> None:
    off = RateLimit(enabled=False, window_ms=MINUTE_MS, max_requests=1)
    key = Key(cloud, rate_limit=off)
    counts = [key.use().key.request_count for _ in range(3)]  # type: ignore[union-attr]
    assert counts == [1, 2, 3]
    answer = key.use(after=MINUTE)
    assert answer.key is not None
    assert (answer.valid, answer.key.request_count) == (True, 1)
    assert answer.key.window_ends_at == key.now + MINUTE


def test_a_key_created_with_0_uses_is_refused_and_deleted_at_its_first_use(cloud: Cloud) -> None:
    key = Key(cloud, remaining=0)
    assert key.stored == key.made
    assert [key.use().refusal for _ in range(2)] == [Refusal.USED_UP, Refusal.INVALID]
    assert key.stored is None


def test_a_key_changed_to_0_uses_is_refused_and_deleted_at_its_next_use(cloud: Cloud) -> None:
    operator = by_session("A" * 32, is_operator=True)
    for key in (Key(cloud), Key(cloud, remaining=5)):
        key.use()
        changed = update_key(operator, key.made.id, KeyChanges(remaining=0), now=key.now)
        assert changed.remaining == 0
        assert [key.use().refusal for _ in range(2)] == [Refusal.USED_UP, Refusal.INVALID]
        assert key.stored is None


def test_a_new_window_and_a_refill_can_happen_in_one_use(cloud: Cloud) -> None:
    key = Key(cloud, remaining=1, refill=Refill(interval_ms=MINUTE_MS, amount=5), rate_limit=limit(1))
    key.use()
    answer = key.use(after=1.5 * MINUTE)
    assert answer.key is not None
    assert (answer.valid, answer.key.remaining, answer.key.request_count) == (True, 4, 1)


@pytest.mark.parametrize(
    ("properties", "refusal"),
    [
        ({"permissions": {"artifacts": ("write",)}}, Refusal.LACKS_PERMISSION),
        ({"rate_limit": limit(1)}, Refusal.RATE_LIMITED),
    ],
)
def test_a_refused_use_is_not_counted(cloud: Cloud, properties: dict[str, Any], refusal: Refusal) -> None:
    key = Key(cloud, remaining=10, **properties)
    key.use()
    before = key.stored
    assert key.use().refusal is refusal
    assert key.stored == before


def test_the_order_of_the_rules(cloud: Cloud) -> None:
    now = clock.now()
    key = Key(
        cloud,
        permissions={},
        remaining=1,
        refill=Refill(interval_ms=MINUTE_MS, amount=1),
        rate_limit=limit(1),
        expires_in_s=1,
    ).made
    spent: dict[str, Any] = {"remaining": 0, "request_count": 1}
    order: list[tuple[Refusal, dict[str, Any], datetime]] = [
        (Refusal.DISABLED, {"enabled": False}, now + 2 * MINUTE),
        (Refusal.EXPIRED, {"enabled": True}, now + timedelta(seconds=2)),
        (Refusal.LACKS_PERMISSION, {"expires_at": None}, now),
        (Refusal.USED_UP, {"permissions": {"artifacts": ("read",)}}, now),
        (Refusal.RATE_LIMITED, {"remaining": 1}, now),
    ]
    for refusal, change, at in order:
        key = _store_changed(key, {**spent, **change})
        spent |= change
        assert verify(key.key_hash, READ, now=at).refusal is refusal


def _store_changed(key: ApiKey, changes: dict[str, Any]) -> ApiKey:
    repository.delete(key.key_hash)
    changed = replace(key, **changes)
    repository.add(changed)
    return changed


def test_the_last_use_counts_even_if_the_key_cannot_be_deleted_now(cloud: Cloud) -> None:
    key = Key(cloud, remaining=1)
    with unreachable("dynamodb", "DeleteItem"):
        assert key.use().valid
    assert key.use().refusal is Refusal.USED_UP


def test_a_key_whose_last_use_was_interrupted_is_deleted_at_the_next_use(cloud: Cloud) -> None:
    """The reply was lost, or the function ended before it deleted the key."""
    key = Key(cloud, remaining=1)
    with unreachable("dynamodb", "DeleteItem"):
        key.use()
    assert [key.use().refusal for _ in range(2)] == [Refusal.USED_UP, Refusal.INVALID]


def test_the_record_of_the_last_clean_up_is_not_a_key(cloud: Cloud) -> None:
    delete_expired_keys_if_due(now=clock.now())
    assert verify("#clean-up", READ, now=clock.now()).refusal is Refusal.INVALID


FAILING_WRITES = {
    "too busy": lambda: answering("dynamodb", "UpdateItem", error("ThrottlingException")),
    "failing": lambda: answering("dynamodb", "UpdateItem", error("InternalServerError", 500)),
    "unreachable": lambda: unreachable("dynamodb", "UpdateItem"),
}
failing_writes = pytest.mark.parametrize("failing", FAILING_WRITES.values(), ids=FAILING_WRITES)
Failing = Callable[[], AbstractContextManager[object]]


def metrics(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The limits in the metric of failed reads."""
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    return [line["limit"] for line in lines if "RateLimitStoreFailures" in line]


@failing_writes
def test_a_key_with_limited_uses_is_refused_if_the_table_fails(
    cloud: Cloud, failing: Failing, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in (Key(cloud, remaining=5), Key(cloud, remaining=5, rate_limit=limit(5))):
        with failing(), pytest.raises(TryAgain):
            key.use()
        assert key.stored == key.made
    assert metrics(capsys) == []


@failing_writes
def test_a_rate_limited_key_passes_with_a_metric_if_the_table_fails(
    cloud: Cloud, failing: Failing, capsys: pytest.CaptureFixture[str]
) -> None:
    key = Key(cloud, rate_limit=limit(2))
    with failing():
        assert [key.use().valid for _ in range(3)] == [True] * 3
    assert metrics(capsys) == ["key"] * 3
    assert key.stored == key.made


@failing_writes
def test_a_window_known_to_be_full_refuses_even_if_the_table_fails(
    cloud: Cloud, failing: Failing, capsys: pytest.CaptureFixture[str]
) -> None:
    key = Key(cloud, rate_limit=limit(1))
    assert key.use().valid
    with failing():
        assert key.use().refusal is Refusal.RATE_LIMITED
        assert key.use(after=2 * MINUTE).valid
    assert metrics(capsys) == ["key"]


@failing_writes
def test_a_key_without_limits_passes_if_its_use_cannot_be_recorded(
    cloud: Cloud, failing: Failing, capsys: pytest.CaptureFixture[str]
) -> None:
    with failing():
        assert Key(cloud).use().valid
        assert verify(hash_key("unknown"), READ, now=clock.now()).refusal is Refusal.INVALID
    assert metrics(capsys) == []


@failing_writes
def test_a_key_that_cannot_be_read_is_refused(cloud: Cloud, failing: Failing) -> None:
    for key in (Key(cloud), Key(cloud, rate_limit=limit(5)), Key(cloud, remaining=5)):
        with failing(), unreachable("dynamodb", "GetItem"), pytest.raises(TryAgain):
            key.use()


@pytest.mark.parametrize(
    ("properties", "field"),
    [
        ({"remaining": -1}, "remaining"),
        ({"remaining": 10**13}, "remaining"),
        ({"refill": Refill(interval_ms=1, amount=1)}, "remaining"),
        ({"remaining": 1, "refill": Refill(interval_ms=0, amount=1)}, "refill_interval"),
        ({"remaining": 1, "refill": Refill(interval_ms=1, amount=0)}, "refill_amount"),
        ({"metadata": "x" * 10_000}, "metadata"),
        ({"rate_limit": limit(0)}, "rate_limit_max"),
        ({"rate_limit": limit(1, window_ms=-1)}, "rate_limit_time_window"),
    ],
)
def test_an_invalid_limit_is_named(cloud: Cloud, properties: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        Key(cloud, **properties)
    assert refused.value.field == field


def test_any_json_is_returned_as_metadata(cloud: Cloud) -> None:
    every: list[Any] = [{"plan": "ci", "depth": [1, {"x": None}]}, "text", 1.5, False, []]
    for metadata in every:
        found = find_key(Key(cloud, metadata=metadata).made.id)
        assert found is not None
        assert found.metadata == metadata


def test_times_are_stored_to_the_millisecond(cloud: Cloud) -> None:
    key = Key(cloud)
    used_at = key.made.created_at + timedelta(milliseconds=7)
    assert key.use(after=used_at - key.now).key.last_request == used_at  # type: ignore[union-attr]
    assert isinstance(used_at, datetime)
