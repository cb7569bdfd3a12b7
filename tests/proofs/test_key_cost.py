"""The cost of a verification: one DynamoDB call for any result, two if it starts a window, refills or takes the last
use of a key, three for the last use of a key with metadata, and one write unit.

Calls are counted where the client sends them, including retries. The tests run in memory (moto) and, marked slow, on
the local DynamoDB server. That server also returns the units that a write would cost, by the size of the item and the
indexes that it changes.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import aws, clock
from larder.api_keys import repository
from larder.api_keys.keys import create_key
from larder.api_keys.models import ApiKey, Permissions, RateLimit, Refill, Refusal
from larder.api_keys.properties import NewKey
from larder.api_keys.repository import API_KEYS
from larder.api_keys.verification import verify
from larder.hashing import hash_key
from larder.tables import commit
from tests.hooks import hooked
from tests.proofs.aws_calls import Call, Calls, counted
from tests.proofs.overlapping import Overlap, all_at_once
from tests.requests import Cloud

READ = {"artifacts": ("read",)}
MINUTE = timedelta(minutes=1)
MINUTE_MS = 60_000
TIMES = int(os.environ.get("USES_IN_A_ROW") or 100)
AT_ONCE = 64
USES_EACH = 10

ONE = ["UpdateItem"]
TWO = ["UpdateItem", "UpdateItem"]
LAST = ["UpdateItem", "DeleteItem"]


def limit(most: int, window_ms: int = MINUTE_MS) -> RateLimit:
    return RateLimit(enabled=True, window_ms=window_ms, max_requests=most)


def minutely(amount: int) -> Refill:
    return Refill(interval_ms=MINUTE_MS, amount=amount)


@dataclass(frozen=True)
class Case:
    """A verification of a key with `properties` and then `changed` in its record, `after` its creation."""

    calls: list[str]
    refusal: Refusal | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, Any] = field(default_factory=dict)
    after: timedelta = timedelta(seconds=1)
    needs: Permissions = field(default_factory=lambda: READ)


CASES: dict[str, Case] = {
    "unlimited": Case(ONE),
    "no permission asked for": Case(ONE, needs={}),
    "many permissions": Case(
        ONE,
        properties={"permissions": {f"r{n}": ("a", "b", "c") for n in range(20)}},
        needs={f"r{n}": ("a", "b", "c") for n in range(20)},
    ),
    "with an expiry": Case(ONE, properties={"expires_in_s": 3600}),
    "with an allowance": Case(ONE, properties={"remaining": 10}),
    "with a limit": Case(ONE, properties={"rate_limit": limit(10)}),
    "with everything": Case(
        ONE, properties={"remaining": 10, "refill": minutely(10), "rate_limit": limit(10), "expires_in_s": 3600}
    ),
    "last use, a refill will come": Case(ONE, properties={"remaining": 1, "refill": minutely(10)}),
    "last use": Case(LAST, properties={"remaining": 1}),
    "with metadata": Case(ONE, properties={"metadata": "x" * 4_000}),
    "last use, with metadata": Case(
        [*LAST, "TransactWriteItems"], properties={"remaining": 1, "metadata": "x" * 4_000}
    ),
    "begins a window": Case(TWO, properties={"rate_limit": limit(10)}, after=2 * MINUTE),
    "begins a window without a limit": Case(
        TWO, properties={"rate_limit": RateLimit(enabled=False, window_ms=MINUTE_MS, max_requests=10)}, after=2 * MINUTE
    ),
    "refills": Case(TWO, properties={"remaining": 1, "refill": minutely(10)}, after=2 * MINUTE),
    "begins a window and refills": Case(
        TWO, properties={"remaining": 1, "refill": minutely(10), "rate_limit": limit(10)}, after=2 * MINUTE
    ),
    "refused: disabled": Case(ONE, Refusal.DISABLED, changed={"enabled": False}),
    "refused: expired": Case(ONE, Refusal.EXPIRED, properties={"expires_in_s": 60}, after=2 * MINUTE),
    "refused: lacks the action": Case(ONE, Refusal.LACKS_PERMISSION, needs={"artifacts": ("x",)}),
    "refused: lacks the resource": Case(ONE, Refusal.LACKS_PERMISSION, needs={"teams": ("read",)}),
    "refused: used up, a refill will come": Case(
        ONE, Refusal.USED_UP, properties={"remaining": 1, "refill": minutely(10)}, changed={"remaining": 0}
    ),
    "refused: used up, with a window to begin": Case(
        ONE,
        Refusal.USED_UP,
        properties={"remaining": 1, "refill": Refill(interval_ms=10 * MINUTE_MS, amount=10), "rate_limit": limit(10)},
        changed={"remaining": 0},
        after=2 * MINUTE,
    ),
    "refused: rate limited": Case(
        ONE, Refusal.RATE_LIMITED, properties={"remaining": 10, "rate_limit": limit(10)}, changed={"request_count": 10}
    ),
    "refused: rate limited, with a refill due": Case(
        ONE,
        Refusal.RATE_LIMITED,
        properties={"remaining": 1, "refill": minutely(10), "rate_limit": limit(10, 10 * MINUTE_MS)},
        changed={"remaining": 0, "request_count": 10},
        after=2 * MINUTE,
    ),
}

every_case = pytest.mark.parametrize("name", CASES)


def make(team: Cloud, case: Case) -> ApiKey:
    new = NewKey(user_id=team.user.id, team_id=team.team.id, name="ci", **case.properties)
    key, _ = create_key(new, now=clock.now())
    if case.changed:
        repository.delete(key.key_hash)
        key = replace(key, **case.changed)
        repository.add(key)
    return key


def check(team: Cloud, case: Case) -> None:
    key = make(team, case)
    with counted() as calls:
        answer = verify(key.key_hash, case.needs, now=key.created_at + case.after)
    assert answer.refusal == case.refusal
    assert [call.operation for call in calls.made] == case.calls


@pytest.fixture(params=["cloud", pytest.param("new_team", marks=pytest.mark.slow)])
def team(request: pytest.FixtureRequest) -> Cloud:
    """A team in memory, and one on the local server."""
    found: Cloud = request.getfixturevalue(request.param)
    return found


@every_case
def test_a_verification_costs(name: str, team: Cloud) -> None:
    check(team, CASES[name])


def test_an_unknown_key_costs_one_call(team: Cloud) -> None:
    with counted() as calls:
        answer = verify(hash_key("unknown"), READ, now=clock.now())
    assert answer.refusal is Refusal.INVALID
    assert [call.operation for call in calls.made] == ONE


def use_in_a_row(team: Cloud, report_lines: list[str]) -> None:
    """Use up a key with exactly TIMES remaining uses."""
    case = Case(ONE, properties={"remaining": TIMES, "rate_limit": limit(TIMES, 10**9)})
    key, now = make(team, case), clock.now()
    began = time.monotonic()
    with counted() as calls:
        assert all(verify(key.key_hash, READ, now=now).valid for _ in range(TIMES - 1))
        took_s = time.monotonic() - began
        assert Counter(call.operation for call in calls.made) == {"UpdateItem": TIMES - 1}
        assert verify(key.key_hash, READ, now=now).valid
    assert Counter(call.operation for call in calls.made) == {"UpdateItem": TIMES, "DeleteItem": 1}
    report_lines.append(
        f"one key {TIMES} times in a row: {TIMES} calls and 1 to delete it, "
        f"{took_s:.1f} s, {took_s / TIMES * 1000:.2f} ms each"
    )


def refuse_in_a_row(team: Cloud, report_lines: list[str]) -> None:
    case = Case(ONE, properties={"remaining": 7, "rate_limit": limit(1, 10**9)}, changed={"request_count": 1})
    key, now = make(team, case), clock.now()
    began = time.monotonic()
    with counted() as calls:
        for _ in range(TIMES):
            assert verify(key.key_hash, READ, now=now).refusal is Refusal.RATE_LIMITED
    took_s = time.monotonic() - began
    assert Counter(call.operation for call in calls.made) == {"UpdateItem": TIMES}
    assert repository.get(key.key_hash) == key
    report_lines.append(f"one key refused {TIMES} times in a row: {TIMES} calls, {took_s:.1f} s")


@pytest.mark.slow
@pytest.mark.parametrize("run", [use_in_a_row, refuse_in_a_row])
def test_sequential_verifications_cost_one_call_each(
    run: Callable[[Cloud, list[str]], None], team: Cloud, report_lines: list[str]
) -> None:
    run(team, report_lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["unlimited", "with everything", "refused: rate limited"])
def test_64_parallel_verifications_cost_one_call_each(name: str, new_team: Cloud, report_lines: list[str]) -> None:
    case, uses = CASES[name], AT_ONCE * USES_EACH
    if name == "with everything":
        case = replace(case, properties={"remaining": uses + 1, "refill": minutely(1), "rate_limit": limit(uses)})
    key = make(new_team, case)

    def use() -> list[Refusal | None]:
        now = key.created_at + case.after
        return [verify(key.key_hash, READ, now=now).refusal for _ in range(USES_EACH)]

    began = time.monotonic()
    with counted() as calls:
        done = all_at_once([use] * AT_ONCE, Overlap(held=True, seed=0))
    took_s = time.monotonic() - began
    assert {refusal for one in done for refusal in one.answer} == {case.refusal}
    assert Counter(call.operation for call in calls.made) == {"UpdateItem": uses}
    report_lines.append(
        f"{AT_ONCE} threads, {USES_EACH} verifications each ({name}): {uses} calls, "
        f"{took_s:.1f} s, {uses / took_s:.0f} a second"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["begins a window", "refills", "begins a window and refills"])
def test_64_parallel_verifications_of_a_due_window_or_refill_cost_at_most_three_calls(
    name: str, new_team: Cloud, report_lines: list[str]
) -> None:
    """The worst case: all have read that it is due before one writes. The others then need a third call to take a use
    from what the first one started."""
    case = CASES[name]
    case = replace(case, properties={**case.properties, **ample(case)})
    for overlap in (Overlap(held=True, seed=1), Overlap(held=False, seed=2)):
        key = make(new_team, case)
        now = key.created_at + case.after

        def use(key: ApiKey = key, now: datetime = now) -> bool:
            return verify(key.key_hash, READ, now=now).valid

        with counted() as calls:
            done = all_at_once([use] * AT_ONCE, overlap, held_calls=2)
        assert all(one.answer for one in done)
        # Each thread makes its calls in sequence, so a step counts the threads that made at least so many calls.
        first, second, third = (len(calls_of(calls, step)) for step in (1, 2, 3))
        assert (first, second - third) == (AT_ONCE, 1)
        assert calls.sequential <= 3
        if overlap.held:
            assert third == AT_ONCE - 1
        report_lines.append(
            f"{AT_ONCE} in parallel, {name}, {'held' if overlap.held else 'free'}: "
            f"{first - second} with one call, 1 with two, {third} with three"
        )


def calls_of(calls: Calls, step: int) -> list[Call]:
    return [call for call in calls.made if call.step == step]


def ample(case: Case) -> dict[str, Any]:
    """Limits that refuse none of the verifications."""
    properties: dict[str, Any] = {}
    if "refill" in case.properties:
        properties["refill"] = minutely(AT_ONCE)
    if "rate_limit" in case.properties:
        properties["rate_limit"] = limit(AT_ONCE)
    return properties


# Charged units -----------------------------------------------------------------------


@contextmanager
def charged() -> Iterator[list[dict[str, Any]]]:
    """Adds ReturnConsumedCapacity to every update. The layer does not set it."""
    seen: list[dict[str, Any]] = []

    def ask(params: dict[str, Any], **_: object) -> None:
        params["ReturnConsumedCapacity"] = "INDEXES"

    def note(parsed: dict[str, Any], **_: object) -> None:
        if "ConsumedCapacity" in parsed:
            seen.append(parsed["ConsumedCapacity"])

    with (
        hooked("before-parameter-build.dynamodb.UpdateItem", ask, aws.dynamodb()),
        hooked("after-call.dynamodb.UpdateItem", note, aws.dynamodb()),
    ):
        yield seen


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.refusal is None])
def test_a_valid_use_is_charged_one_write_unit_and_writes_to_no_index(name: str, new_team: Cloud) -> None:
    case = CASES[name]
    key = make(new_team, case)
    with charged() as seen:
        assert verify(key.key_hash, case.needs, now=key.created_at + case.after).valid
    # A failed condition also costs a unit for an item up to 1 KB, but the reply does not include it.
    assert len(seen) == 1
    assert seen[0]["CapacityUnits"] == 1
    assert "GlobalSecondaryIndexes" not in seen[0]


@pytest.mark.slow
def test_metadata_does_not_make_a_use_more_expensive(new_team: Cloud, report_lines: list[str]) -> None:
    """Metadata in the item of the key, as version 0.1.0 stored it, does. This shows that the units are measured."""

    def units_of_a_use(key: ApiKey) -> float:
        with charged() as seen:
            assert verify(key.key_hash, READ, now=clock.now()).valid
        return float(seen[0]["CapacityUnits"])

    units, units_of_0_1_0 = {}, {}
    for size in (0, 1_000, 4_000, 9_000):
        key = make(new_team, Case(ONE, properties={"metadata": "x" * size}))
        units[size] = units_of_a_use(key)
        commit(API_KEYS.update(key.key_hash, set={"metadata": json.dumps("x" * size)}))
        units_of_0_1_0[size] = units_of_a_use(key)
    assert set(units.values()) == {1}
    assert all(units_of_0_1_0[size] > size / 1024 for size in units)
    report_lines.append(
        "write units of a use by bytes of metadata: "
        + ", ".join(f"{size}: {unit:g}, in 0.1.0 {units_of_0_1_0[size]:g}" for size, unit in units.items())
    )


@pytest.mark.slow
def test_only_a_new_expiry_writes_to_an_index(new_team: Cloud) -> None:
    """Shows that the test of a use would see it."""
    with charged() as seen:
        commit(repository.ending(new_team.key, clock.now() + MINUTE, now=clock.now()))
    assert list(seen[0]["GlobalSecondaryIndexes"]) == ["by_expiry"]
