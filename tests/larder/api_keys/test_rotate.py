"""A new key replaces an old one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from larder import clock
from larder.api_keys import repository
from larder.api_keys.keys import create_key, find_key, list_keys, rotate_key
from larder.api_keys.models import RateLimit, Refill, Refusal
from larder.api_keys.properties import NewKey
from larder.api_keys.verification import verify
from larder.errors import InvalidValue
from larder.hashing import hash_key
from tests.faults import just_before
from tests.requests import Cloud

READ = {"artifacts": ("read",)}
HOUR = timedelta(hours=1)
TAKEN_OVER = ("user_id", "team_id", "name", "prefix", "permissions", "metadata", "remaining", "refill", "rate_limit")


def test_the_new_key_has_the_name_permissions_and_limits_of_the_old_one(cloud: Cloud) -> None:
    now = clock.now()
    new = NewKey(
        user_id=cloud.user.id,
        team_id=cloud.team.id,
        name="ci",
        prefix="ci_",
        permissions=READ,
        metadata={"repo": "web"},
        remaining=100,
        refill=Refill(interval_ms=86_400_000, amount=100),
        rate_limit=RateLimit(enabled=True, window_ms=60_000, max_requests=50),
    )
    old, _ = create_key(new, now=now)
    rotated = rotate_key(old.id, overlap_s=3600, now=now + HOUR)
    assert rotated is not None
    key, raw = rotated
    for name in TAKEN_OVER:
        assert getattr(key, name) == getattr(old, name)
    assert (key.id, key.key_hash) != (old.id, old.key_hash)
    assert raw.startswith("ci_")


def test_both_keys_work_during_the_overlap_and_then_only_the_new_one(cloud: Cloud) -> None:
    now = clock.now()
    rotated = rotate_key(cloud.key.id, overlap_s=3600, now=now)
    assert rotated is not None
    old, new = hash_key(cloud.token), rotated[0].key_hash
    before_the_end, end = now + HOUR - timedelta(seconds=1), now + HOUR
    assert verify(old, READ, now=before_the_end).valid
    assert verify(new, READ, now=before_the_end).valid
    assert verify(old, READ, now=end).refusal is Refusal.EXPIRED
    assert verify(new, READ, now=end).valid


def test_without_an_overlap_the_old_key_ends_at_once(cloud: Cloud) -> None:
    rotate_key(cloud.key.id, overlap_s=0, now=clock.now())
    assert find_key(cloud.key.id) is None


def test_without_an_overlap_no_use_is_counted_twice(cloud: Cloud) -> None:
    now = clock.now()
    old, _ = create_key(NewKey(user_id=cloud.user.id, remaining=10), now=now)

    def use() -> None:
        assert verify(old.key_hash, READ, now=now).valid

    with just_before("dynamodb", "UpdateItem", use):
        rotated = rotate_key(old.id, overlap_s=0, now=now)
    assert rotated is not None
    assert rotated[0].remaining == 9


@pytest.mark.parametrize("overlap_s", [0, 60])
def test_due_refills_are_added_to_the_remaining_uses(cloud: Cloud, overlap_s: int) -> None:
    now = clock.now()
    refill = Refill(interval_ms=1_000, amount=100)
    new = NewKey(user_id=cloud.user.id, remaining=10, refill=refill)
    old, _ = create_key(new, now=now - timedelta(seconds=3.5))
    rotated = rotate_key(old.id, overlap_s=overlap_s, now=now)
    assert rotated is not None
    assert (rotated[0].remaining, rotated[0].refill) == (310, refill)
    assert rotated[0].refill_due_at == now + timedelta(seconds=1)


@pytest.mark.parametrize("overlap_s", [0, 60])
def test_a_key_without_remaining_uses_cannot_be_rotated(cloud: Cloud, overlap_s: int) -> None:
    old, _ = create_key(NewKey(user_id=cloud.user.id, remaining=0), now=clock.now())
    with pytest.raises(InvalidValue, match=r"^key: has no uses left"):
        rotate_key(old.id, overlap_s=overlap_s, now=clock.now())
    assert find_key(old.id) == old


def test_an_overlap_never_extends_the_expiry(cloud: Cloud) -> None:
    now = clock.now()
    old, _ = create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=now)
    rotated = rotate_key(old.id, overlap_s=3600, now=now)
    assert rotated is not None
    kept = find_key(old.id)
    assert kept is not None
    assert kept.expires_at == old.expires_at
    assert rotated[0].expires_at == now + timedelta(seconds=60)


def test_an_unknown_key_cannot_be_rotated(cloud: Cloud) -> None:
    assert rotate_key("no such key", overlap_s=60, now=clock.now()) is None


def test_a_disabled_key_cannot_be_rotated(cloud: Cloud) -> None:
    repository.delete(cloud.key.key_hash)
    repository.add(replace(cloud.key, enabled=False))
    with pytest.raises(InvalidValue, match=r"^key: "):
        rotate_key(cloud.key.id, overlap_s=60, now=clock.now())
    assert [key.id for key in list_keys(cloud.user.id)] == [cloud.key.id]


def test_a_negative_overlap_is_refused(cloud: Cloud) -> None:
    with pytest.raises(InvalidValue, match=r"^overlap: "):
        rotate_key(cloud.key.id, overlap_s=-1, now=clock.now())
