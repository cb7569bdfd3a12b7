"""How many keys a user can have: `MaxKeysPerUser`."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from larder import clock
from larder.accounts.service import create_user
from larder.accounts.sessions import revoke_sessions
from larder.api_keys import repository
from larder.api_keys.keys import create_key, delete_keys_of, list_keys, prepare_key, revoke_key, rotate_key, store_key
from larder.api_keys.models import ApiKey
from larder.api_keys.properties import NewKey
from larder.errors import KeyLimitReached, NotSignedIn
from larder.tables import commit
from tests.conftest import SetOption
from tests.faults import answering, error, just_before
from tests.proofs.aws_calls import counted
from tests.requests import Cloud


def make(cloud: Cloud, **properties: object) -> ApiKey:
    return create_key(NewKey(user_id=cloud.user.id, **properties), now=clock.now())[0]  # type: ignore[arg-type]


def forget_count(cloud: Cloud) -> None:
    """As version 0.1.0 left the keys: in the table and its indexes, but not in the set."""
    commit(repository._BESIDE_KEYS.delete(repository._KEYS_OF + cloud.user.id))


def test_the_limit_counts_the_keys_of_one_user(cloud: Cloud, option: SetOption) -> None:
    option("max_keys_per_user", "2")
    make(cloud)
    with pytest.raises(KeyLimitReached, match=r"has 2 API keys.*Delete a key.*MaxKeysPerUser"):
        make(cloud)
    bob = create_user("bob@acme.example", "Bob", now=clock.now())
    create_key(NewKey(user_id=bob.id), now=clock.now())
    assert len(list_keys(cloud.user.id)) == 2


def test_keys_of_version_0_1_0_count(cloud: Cloud, option: SetOption) -> None:
    make(cloud)
    forget_count(cloud)
    option("max_keys_per_user", "3")
    make(cloud)
    with pytest.raises(KeyLimitReached):
        make(cloud)


def test_deleted_and_expired_keys_free_space(cloud: Cloud, option: SetOption) -> None:
    option("max_keys_per_user", "3")
    second = make(cloud)
    long_ago = clock.now() - timedelta(days=1)
    create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=long_ago)
    third = make(cloud)
    assert [key.id for key in list_keys(cloud.user.id)] == [cloud.key.id, second.id, third.id]
    revoke_key(second)
    make(cloud)
    with pytest.raises(KeyLimitReached):
        make(cloud)


def test_a_key_can_be_rotated_at_the_limit(cloud: Cloud, option: SetOption) -> None:
    option("max_keys_per_user", "1")
    rotated = rotate_key(cloud.key.id, overlap_s=60, now=clock.now())
    assert rotated is not None
    with pytest.raises(KeyLimitReached):
        make(cloud)
    assert rotate_key(rotated[0].id, overlap_s=0, now=clock.now()) is not None


def test_parallel_requests_do_not_exceed_the_limit(cloud: Cloud, option: SetOption) -> None:
    option("max_keys_per_user", "5")

    def attempt(_: int) -> bool:
        try:
            make(cloud)
        except KeyLimitReached:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(attempt, range(16)))
    assert (sum(made), len(list_keys(cloud.user.id))) == (4, 5)


def test_creating_a_key_takes_a_read_and_one_transaction(cloud: Cloud) -> None:
    with counted() as calls:
        make(cloud)
    assert calls.steps == [["GetItem"], ["TransactWriteItems"]]


def test_a_session_that_has_just_ended_creates_no_key(cloud: Cloud) -> None:
    key, _ = prepare_key(NewKey(user_id=cloud.user.id), now=clock.now())
    revoke_sessions(cloud.user.id)
    with pytest.raises(NotSignedIn):
        store_key(key, maker=cloud.user)
    assert [each.id for each in list_keys(cloud.user.id)] == [cloud.key.id]


@pytest.mark.parametrize("number", [1, 49, 149])
def test_all_keys_are_deleted_in_two_steps(cloud: Cloud, option: SetOption, number: int) -> None:
    option("max_keys_per_user", "1000")
    for _ in range(number - 1):
        make(cloud)
    with counted() as calls:
        assert delete_keys_of(cloud.user.id) == number
    transactions = ["TransactWriteItems"] * (1 + number // 50)
    assert calls.steps == [["GetItem", "Query"], transactions]
    assert list_keys(cloud.user.id) == []


def test_keys_of_version_0_1_0_are_deleted_with_the_others(cloud: Cloud) -> None:
    make(cloud)
    forget_count(cloud)
    assert delete_keys_of(cloud.user.id) == 2
    assert list_keys(cloud.user.id) == []


def test_a_key_created_during_the_deletion_is_deleted(cloud: Cloud) -> None:
    with just_before("dynamodb", "TransactWriteItems", lambda: make(cloud)):
        delete_keys_of(cloud.user.id)
    assert list_keys(cloud.user.id) == []


def test_keys_in_constant_use_are_deleted_one_by_one(cloud: Cloud) -> None:
    make(cloud)
    reasons = [{"Code": "TransactionConflict"}]
    conflict = error("TransactionCanceledException", CancellationReasons=reasons)
    with answering("dynamodb", "TransactWriteItems", conflict):
        delete_keys_of(cloud.user.id)
    assert list_keys(cloud.user.id) == []
