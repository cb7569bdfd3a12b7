"""Parallel changes, uses and deletions of a key, and new keys for a user who is being deleted. On the local DynamoDB
server.
"""

import pytest

from larder import clock
from larder.accounts import repository as accounts
from larder.accounts.service import read_account
from larder.api_keys import repository
from larder.api_keys.manage import grant_key, update_key
from larder.api_keys.models import KeyChanges, NewKey
from larder.api_keys.service import find_key, list_keys, verify
from larder.errors import InvalidValue, KeyNotFound
from tests.principals import by_session
from tests.proofs.overlapping import Overlap, all_at_once, every_overlap
from tests.requests import Cloud

pytestmark = pytest.mark.slow

READ = {"artifacts": ("read",)}
USES, CHANGES, MAKERS = 30, 10, 12


@every_overlap
def test_parallel_changes_and_uses_do_not_overwrite_each_other(
    overlap: Overlap, new_team: Cloud
) -> None:
    ada = by_session(new_team.user.id)
    operator = by_session("A" * 32, is_operator=True)
    new = NewKey(user_id=new_team.user.id, remaining=100)
    key, _ = grant_key(operator, new, now=clock.now())

    def use() -> bool:
        return verify(key.key_hash, READ, now=clock.now()).valid

    def rename() -> bool:
        return update_key(ada, key.id, KeyChanges(name="new"), now=clock.now()).name == "new"

    def annotate() -> bool:
        changes = KeyChanges(metadata={"seen": True}, expires_in_s=3600)
        return update_key(ada, key.id, changes, now=clock.now()).expires_at is not None

    jobs = [use] * USES + [rename, annotate] * (CHANGES // 2)
    assert all(one.answer for one in all_at_once(jobs, overlap))
    stored = repository.get(key.key_hash)
    assert stored is not None
    assert (stored.remaining, stored.request_count) == (100 - USES, USES)
    assert (stored.name, stored.metadata) == ("new", {"seen": True})


@every_overlap
def test_an_update_does_not_restore_a_deleted_key(overlap: Overlap, new_team: Cloud) -> None:
    ada = by_session(new_team.user.id)

    def change() -> bool:
        try:
            update_key(ada, new_team.key.id, KeyChanges(enabled=True), now=clock.now())
        except KeyNotFound:
            return False
        return True

    def end() -> bool:
        return repository.delete(new_team.key.key_hash)

    *_, ended = all_at_once([*[change] * CHANGES, end], overlap)
    assert ended.answer
    assert find_key(new_team.key.id) is None


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
