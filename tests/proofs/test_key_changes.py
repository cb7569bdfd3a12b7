"""Parallel changes and deletions of a key, and new keys for a user who is being deleted. On the local DynamoDB
server.
"""

import pytest

from larder import clock
from larder.accounts import repository as accounts
from larder.accounts.service import read_account
from larder.api_keys import repository
from larder.api_keys.keys import find_key, list_keys
from larder.api_keys.models import UNREAD, ApiKey
from larder.api_keys.properties import KeyChanges, NewKey
from larder.api_keys.repository import API_KEYS
from larder.api_keys.self_service import grant_key, update_key
from larder.errors import InvalidValue, KeyNotFound
from larder.tables import commit
from tests.principals import by_session
from tests.proofs.overlapping import Overlap, all_at_once, every_overlap
from tests.requests import Cloud

pytestmark = pytest.mark.slow

CHANGES, MAKERS = 10, 12


def metadata_of(key: ApiKey) -> str:
    """The name of the item with the metadata of the key."""
    return f"#metadata#{key.key_hash}"


@every_overlap
@pytest.mark.parametrize("from_0_1_0", [False, True])
def test_parallel_changes_keep_metadata_and_key_together(overlap: Overlap, from_0_1_0: bool, new_team: Cloud) -> None:
    """Some set it, some delete it, and some change another field, which moves what version 0.1.0 stored."""
    ada = by_session(new_team.user.id)
    new = NewKey(user_id=new_team.user.id, metadata="first")
    key, *_ = grant_key(ada, new, now=clock.now())
    if from_0_1_0:
        in_key = {"metadata": '"first"', "has_metadata": None}
        commit(API_KEYS.update(key.key_hash, set=in_key), API_KEYS.delete(metadata_of(key)))

    def change(changes: KeyChanges) -> bool:
        update_key(ada, key.id, changes, now=clock.now())
        return True

    def rename() -> bool:
        return change(KeyChanges(name="new"))

    def annotate() -> bool:
        return change(KeyChanges(metadata="second"))

    def clear() -> bool:
        return change(KeyChanges(metadata=None))

    assert all(one.answer for one in all_at_once([rename] * CHANGES, overlap))
    stored = find_key(key.id)
    assert stored is not None
    assert (stored.name, stored.metadata) == ("new", "first")
    jobs = [rename, annotate, clear] * (CHANGES // 2)
    assert all(one.answer for one in all_at_once(jobs, overlap))
    stored = repository.get(key.key_hash)
    assert stored is not None
    assert (stored.metadata is UNREAD) == (API_KEYS.get(metadata_of(key)) is not None)
    assert repository.with_metadata(stored).metadata in ("second", None)
    jobs = [rename, annotate] * (CHANGES // 2)
    assert all(one.answer for one in all_at_once(jobs, overlap))
    stored = find_key(key.id)
    assert stored is not None
    assert stored.metadata == "second"


@every_overlap
@pytest.mark.parametrize("deletions", [1, 3])
def test_no_metadata_is_left_of_a_deleted_key(overlap: Overlap, deletions: int, new_team: Cloud) -> None:
    ada = by_session(new_team.user.id)
    key, *_ = grant_key(ada, NewKey(user_id=new_team.user.id), now=clock.now())

    def annotate() -> bool:
        try:
            update_key(ada, key.id, KeyChanges(metadata={"seen": True}), now=clock.now())
        except KeyNotFound:
            return False
        return True

    def end() -> bool:
        return repository.delete(key.key_hash)

    *_, last = all_at_once([*[annotate] * CHANGES, *[end] * deletions], overlap)
    assert deletions > 1 or last.answer
    assert API_KEYS.get(key.key_hash) is None
    assert API_KEYS.get(metadata_of(key)) is None


@every_overlap
def test_no_key_is_created_after_its_user_was_deleted(overlap: Overlap, new_team: Cloud) -> None:
    """Keys that were created before the deletion returned are listed, so the sweep can delete them."""
    user_id = new_team.user.id
    ada = by_session(user_id)

    def make() -> str | None:
        try:
            return grant_key(ada, NewKey(user_id=user_id), now=clock.now())[0].id
        except InvalidValue:
            return None

    def delete() -> str | None:
        assert accounts.delete(read_account(user_id), now=clock.now())
        return None

    *made, deleted = all_at_once([*[make] * MAKERS, delete], overlap)
    assert all(one.answer is None for one in made if one.began > deleted.ended)
    assert make() is None
    found = {key.id for key in list_keys(user_id)}
    assert found == {one.answer for one in made if one.answer} | {new_team.key.id}
