"""Create, verify and revoke API keys."""

from datetime import timedelta

import pytest

from larder import clock
from larder.accounts import repository as accounts
from larder.accounts.service import read_account
from larder.api_keys import repository
from larder.api_keys.keys import create_key, list_keys, revoke_key
from larder.api_keys.properties import NewKey
from larder.api_keys.verification import Checksum, checksum_of, verify_key
from larder.errors import InvalidValue, ReadOnly, Unauthenticated
from larder.hashing import hash_key
from tests.faults import answering, error, just_before
from tests.requests import Cloud

READ = {"artifacts": ("read",)}
WRITE = {"artifacts": ("write",)}


def test_a_key_is_a_prefix_58_letters_and_a_checksum(cloud: Cloud) -> None:
    key, raw = create_key(NewKey(user_id=cloud.user.id, prefix="larder_"), now=clock.now())
    assert raw.startswith("larder_")
    assert raw.removeprefix("larder_")[:58].isalpha()
    assert checksum_of(raw) is Checksum.RIGHT
    assert len(raw) == len("larder_") + 64
    assert (key.start, key.prefix) == (raw[:13], "larder_")


def test_a_user_who_is_deleted_concurrently_gets_no_key(cloud: Cloud) -> None:
    def delete() -> None:
        assert accounts.delete(read_account(cloud.user.id), now=clock.now())

    with just_before("dynamodb", "TransactWriteItems", delete), pytest.raises(InvalidValue, match=r"^user_id: "):
        create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    assert [key.id for key in list_keys(cloud.user.id)] == [cloud.key.id]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "n" * 33}, "name"),
        ({"prefix": ""}, "prefix"),
        ({"prefix": "a b"}, "prefix"),
        ({"prefix": "p" * 33}, "prefix"),
        ({"prefix": "vca_"}, "prefix"),
        ({"prefix": "vca_larder_"}, "prefix"),
        ({"expires_in_s": 0}, "expires_in"),
        ({"permissions": {"": ("read",)}}, "permissions"),
        ({"permissions": {"artifacts": ("re\tad",)}}, "permissions"),
    ],
)
def test_an_invalid_field_is_named(cloud: Cloud, changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        create_key(NewKey(user_id=cloud.user.id, **changes), now=clock.now())  # type: ignore[arg-type]
    assert refused.value.field == field


def test_the_use_of_a_key_is_recorded(cloud: Cloud) -> None:
    now = clock.now()
    assert verify_key(hash_key(cloud.token), READ, now=now).last_request == now


def test_a_refused_use_is_not_recorded(cloud: Cloud) -> None:
    key, raw = create_key(NewKey(user_id=cloud.user.id, permissions=READ), now=clock.now())
    with pytest.raises(ReadOnly):
        verify_key(hash_key(raw), WRITE, now=clock.now())
    stored = repository.get(key.key_hash)
    assert stored is not None
    assert stored.last_request is None


def test_a_key_expires_to_the_millisecond(cloud: Cloud) -> None:
    now = clock.now()
    _, raw = create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=now)
    verify_key(hash_key(raw), READ, now=now + timedelta(seconds=60, milliseconds=-1))
    with pytest.raises(Unauthenticated):
        verify_key(hash_key(raw), READ, now=now + timedelta(seconds=60))


def test_a_key_used_faster_than_its_partition_can_write_is_only_read(cloud: Cloud) -> None:
    busy = error("ProvisionedThroughputExceededException")
    with answering("dynamodb", "UpdateItem", busy):
        assert verify_key(hash_key(cloud.token), READ, now=clock.now()).id == cloud.key.id
        with pytest.raises(Unauthenticated):
            verify_key(hash_key("unknown"), READ, now=clock.now())


def test_a_key_that_is_only_read_is_checked_by_the_same_rules(cloud: Cloud) -> None:
    now = clock.now()
    _, raw = create_key(NewKey(user_id=cloud.user.id, permissions=READ, expires_in_s=60), now=now)
    busy = error("ThrottlingException")
    with answering("dynamodb", "UpdateItem", busy):
        with pytest.raises(ReadOnly):
            verify_key(hash_key(raw), WRITE, now=now)
        with pytest.raises(Unauthenticated):
            verify_key(hash_key(raw), READ, now=now + timedelta(minutes=2))


def test_revoking_an_unknown_key_is_reported(cloud: Cloud) -> None:
    assert revoke_key(cloud.key)
    assert not revoke_key(cloud.key)
    assert list_keys(cloud.user.id) == []
