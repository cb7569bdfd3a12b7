"""The metadata of a key is in an item of its own, which only requests that return it read (docs/data-model.md)."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from larder import aws, clock
from larder.api_keys import repository
from larder.api_keys.keys import (
    create_key,
    delete_expired_keys,
    delete_keys_created_until,
    delete_keys_of,
    delete_keys_of_member,
    delete_keys_of_team,
    find_key,
    list_keys,
    revoke_key,
    rotate_key,
)
from larder.api_keys.models import UNREAD, ApiKey, RateLimit, Refusal
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.repository import API_KEYS
from larder.api_keys.self_service import get_key, update_key
from larder.api_keys.verification import verify
from larder.settings import settings
from larder.tables import Item, commit
from tests.conftest import SetOption
from tests.faults import just_before
from tests.hooks import hooked
from tests.principals import by_session
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

READ = {"artifacts": ("read",)}
LARGE = {"note": "x" * 4_000}
LIMIT = RateLimit(enabled=True, window_ms=86_400_000, max_requests=1_000)


def make(cloud: Cloud, **properties: Any) -> tuple[ApiKey, str]:
    new = NewKey(user_id=cloud.user.id, **{"metadata": LARGE, **properties})
    return create_key(new, now=clock.now())


def items() -> dict[str, Item]:
    """Every item of the table of keys."""
    stored = aws.dynamodb().scan(TableName=settings().api_keys_table)["Items"]
    return {item["key_hash"]: item for item in map(aws.deserialize, stored)}


def metadata_items() -> dict[str, Item]:
    """The items with metadata, by the hash of their key."""
    prefix = "#metadata#"
    return {key_hash.removeprefix(prefix): item for key_hash, item in items().items() if key_hash.startswith(prefix)}


def as_in_0_1_0(key: ApiKey) -> None:
    """Store the metadata as version 0.1.0 did."""
    in_key = {"metadata": json.dumps(key.metadata), "has_metadata": None}
    assert commit(API_KEYS.update(key.key_hash, set=in_key), API_KEYS.delete(f"#metadata#{key.key_hash}"))


def read(key: ApiKey) -> Any:
    found = find_key(key.id)
    assert found is not None
    return found.metadata


def change(key: ApiKey, **changes: Any) -> ApiKey:
    return update_key(by_session(key.user_id), key.id, KeyChanges(**changes), now=clock.now())


@contextmanager
def metadata_untouched() -> Iterator[None]:
    """No call to DynamoDB may name an item with metadata."""

    def check(request: Any, **_: object) -> None:
        assert b"#metadata#" not in request.body, request.body

    with hooked("before-send", check, aws.dynamodb()):
        yield


def test_the_item_of_a_key_does_not_grow_with_its_metadata(cloud: Cloud) -> None:
    key, _ = make(cloud)
    stored = items()[key.key_hash]
    assert "metadata" not in stored
    assert len(str(stored)) < 1_000
    assert metadata_items() == {key.key_hash: {"key_hash": f"#metadata#{key.key_hash}", "metadata": json.dumps(LARGE)}}


def test_a_key_without_metadata_has_no_second_item(cloud: Cloud) -> None:
    make(cloud, metadata=None)
    assert metadata_items() == {}


def test_no_index_contains_the_metadata(cloud: Cloud) -> None:
    make(cloud, team_id=cloud.team.id, expires_in_s=60)
    for index in ("by_id", "by_user", "by_team", "by_expiry"):
        found = aws.dynamodb().scan(TableName=settings().api_keys_table, IndexName=index)["Items"]
        assert found
        assert not [one for one in found if one["key_hash"]["S"].startswith("#metadata#")]


def test_it_is_read_by_those_who_show_it(cloud: Cloud) -> None:
    key, _ = make(cloud)
    plain, _ = make(cloud, metadata=None)
    ada = by_session(cloud.user.id)
    assert get_key(ada, key.id).metadata == LARGE
    assert read(key) == LARGE
    assert {one.id: one.metadata for one in list_keys(cloud.user.id)} == {
        cloud.key.id: None,
        key.id: LARGE,
        plain.id: None,
    }
    verified = verify(key.key_hash, READ, now=clock.now(), with_metadata=True).key
    assert verified is not None
    assert verified.metadata == LARGE


@pytest.mark.parametrize("properties", [{}, {"rate_limit": LIMIT}, {"remaining": 50}])
def test_requests_with_the_key_do_not_read_it(cloud: Cloud, properties: dict[str, Any]) -> None:
    _, raw = make(cloud, team_id=cloud.team.id, **properties)
    send = Sender(raw, slug=cloud.team.slug)
    with metadata_untouched():
        assert send("PUT", "/v8/artifacts/abc", body=b"x").status == 202
        assert send("GET", "/v8/artifacts/abc").status == 200
        assert send("GET", "/v8/artifacts/status").status == 200


def last_use(key: ApiKey, now: datetime) -> None:
    change_uses = KeyChanges(remaining=1)
    operator = by_session(key.user_id, is_operator=True)
    update_key(operator, key.id, change_uses, now=now)
    assert verify(key.key_hash, READ, now=now).valid


def expiry(key: ApiKey, now: datetime) -> None:
    assert commit(repository.ending(key, now, now=now))
    assert delete_expired_keys(now=now + timedelta(seconds=1)) == 1


DELETIONS: dict[str, Callable[[ApiKey, datetime], object]] = {
    "revoke": lambda key, now: revoke_key(key),
    "last use": last_use,
    "expiry": expiry,
    "all keys of the user": lambda key, now: delete_keys_of(key.user_id),
    "keys before a reset": lambda key, now: delete_keys_created_until(key.user_id, now),
    "keys of a member": lambda key, now: delete_keys_of_member(key.team_id or "", key.user_id),
    "keys of a team": lambda key, now: delete_keys_of_team(key.team_id or ""),
}


@pytest.mark.parametrize("how", DELETIONS)
@pytest.mark.parametrize("metadata", [LARGE, None])
def test_it_is_deleted_with_its_key(cloud: Cloud, how: str, metadata: Any) -> None:
    key, _ = make(cloud, team_id=cloud.team.id, metadata=metadata)
    DELETIONS[how](key, clock.now())
    assert find_key(key.id) is None
    assert metadata_items() == {}


def test_a_rotation_without_an_overlap_moves_it_to_the_new_key(cloud: Cloud) -> None:
    key, _ = make(cloud)
    rotated = rotate_key(key.id, overlap_s=0, now=clock.now())
    assert rotated is not None
    assert list(metadata_items()) == [rotated[0].key_hash]
    assert read(rotated[0]) == LARGE


def test_metadata_that_is_added_during_a_deletion_is_deleted(cloud: Cloud) -> None:
    key, _ = make(cloud, metadata=None)
    with just_before("dynamodb", "DeleteItem", lambda: change(key, metadata=LARGE)):
        assert repository.delete(key.key_hash)
    assert (find_key(key.id), metadata_items()) == (None, {})


def test_a_key_that_is_deleted_while_it_is_read_has_none(cloud: Cloud) -> None:
    key, _ = make(cloud)
    found = repository.find_by_id(key.id)
    assert found is not None
    assert found.metadata is UNREAD
    revoke_key(key)
    assert repository.with_metadata(found).metadata is None


def test_deleting_a_key_without_metadata_takes_one_write(cloud: Cloud) -> None:
    plain, _ = make(cloud, metadata=None)
    key, _ = make(cloud)
    with counted() as calls:
        assert repository.delete(plain.key_hash)
    assert calls.steps == [["DeleteItem"]]
    with counted() as calls:
        assert repository.delete(key.key_hash)
    assert calls.steps == [["DeleteItem"], ["TransactWriteItems"]]


def test_the_item_is_not_accepted_as_a_key(cloud: Cloud, option: SetOption) -> None:
    """Without hashing, a client can send the name of any item of the table."""
    option("disable_key_hashing", "true")
    _, raw = make(cloud)
    assert f"#metadata#{raw}" in items()
    answer = verify(f"#metadata#{raw}", {}, now=clock.now())
    assert (answer.refusal, answer.key) == (Refusal.INVALID, None)
    assert Sender(f"#metadata#{raw}")("GET", "/v8/artifacts/status").status == 401


class TestMetadataOf0_1_0:  # noqa: N801  # the name of the version
    """That version stored it in the item of the key."""

    @pytest.fixture
    def old(self, cloud: Cloud) -> ApiKey:
        key, _ = make(cloud)
        as_in_0_1_0(key)
        return key

    def test_it_is_read_where_it_is(self, old: ApiKey) -> None:
        with metadata_untouched():
            assert read(old) == LARGE
            assert list_keys(old.user_id)[-1].metadata == LARGE
            used = verify(old.key_hash, READ, now=clock.now(), with_metadata=True).key
        assert used is not None
        assert used.metadata == LARGE

    @pytest.mark.parametrize(
        ("changes", "after"), [({"name": "new"}, LARGE), ({"metadata": [1]}, [1]), ({"metadata": None}, None)]
    )
    def test_the_next_change_moves_it(self, old: ApiKey, changes: dict[str, Any], after: Any) -> None:
        assert change(old, **changes).metadata == after
        assert "metadata" not in items()[old.key_hash]
        stored = {} if after is None else {old.key_hash: json.dumps(after)}
        assert {name: one["metadata"] for name, one in metadata_items().items()} == stored
        assert read(old) == after

    @pytest.mark.parametrize("other", [[1], None])
    def test_moving_it_does_not_undo_another_change(self, old: ApiKey, other: Any) -> None:
        with just_before("dynamodb", "TransactWriteItems", lambda: change(old, metadata=other)):
            renamed = change(old, name="new")
        assert (renamed.name, renamed.metadata) == ("new", other)
        assert read(old) == other

    def test_a_rotation_takes_it_over(self, old: ApiKey) -> None:
        rotated = rotate_key(old.id, overlap_s=0, now=clock.now())
        assert rotated is not None
        assert read(rotated[0]) == LARGE

    def test_it_is_the_newest_after_going_back_to_that_version(self, cloud: Cloud) -> None:
        """That version does not know of the second item, and leaves it."""
        key, _ = make(cloud)
        assert commit(API_KEYS.update(key.key_hash, set={"metadata": "[2]"}))
        assert read(key) == [2]
        change(key, name="new")
        assert metadata_items()[key.key_hash]["metadata"] == "[2]"
        assert "metadata" not in items()[key.key_hash]
