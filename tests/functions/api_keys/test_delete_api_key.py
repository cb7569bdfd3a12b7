"""POST /api/auth/api-key/delete"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from larder import clock
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.models import Refusal
from larder.api_keys.properties import NewKey
from larder.api_keys.verification import verify
from tests.conftest import SetOption
from tests.functions.api_keys.people import API, refused
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender
from tests.trust.scene import TRUSTED

PATH = f"{API}/delete"


def delete(send: Callable[..., Reply], key_id: Any) -> Reply:
    return send("POST", PATH, json_body={"keyId": key_id})


def test_the_callers_own_key_is_deleted(ada: Sender, cloud: Cloud) -> None:
    reply = delete(ada, cloud.key.id)
    assert (reply.status, reply.json) == (200, {"success": True})
    assert verify(cloud.key.key_hash, {}, now=clock.now()).refusal is Refusal.INVALID
    assert refused(delete(ada, cloud.key.id)) == (404, "KEY_NOT_FOUND")


def test_404_for_another_users_key_which_stays(mallory: Sender, cloud: Cloud) -> None:
    assert refused(delete(mallory, cloud.key.id)) == (404, "KEY_NOT_FOUND")
    assert find_key(cloud.key.id) is not None


def test_an_operator_deletes_any_key(operator: Sender, cloud: Cloud) -> None:
    assert delete(operator, cloud.key.id).status == 200
    assert find_key(cloud.key.id) is None


@pytest.fixture
def by_key(option: SetOption) -> Callable[[str], Callable[..., Reply]]:
    """Requests with a key in place of a session."""
    option("session_for_api_keys", "true")

    return lambda raw: partial(Sender(None), headers={"x-api-key": raw})


def test_a_key_deletes_and_changes_only_keys_that_it_could_create(
    cloud: Cloud, by_key: Callable[[str], Callable[..., Reply]]
) -> None:
    user, team = cloud.user.id, cloud.team.id
    trusted, raw = create_key(NewKey(user_id=user, team_id=team, permissions=TRUSTED), now=clock.now())
    unbound, _ = create_key(NewKey(user_id=user), now=clock.now())
    plain = by_key(cloud.token)
    for key in (trusted, unbound):
        code = "PERMISSION_NOT_HELD" if key is trusted else "NOT_A_TEAM_MEMBER"
        update = {"keyId": key.id, "enabled": False, "permissions": {"artifacts": ["read"]}}
        assert refused(delete(plain, key.id)) == (403, code)
        assert refused(plain("POST", f"{API}/update", json_body=update)) == (403, code)
        assert find_key(key.id) == key
    equal, _ = create_key(NewKey(user_id=user, team_id=team), now=clock.now())
    assert delete(plain, equal.id).status == 200
    assert delete(by_key(raw), cloud.key.id).status == 200
    assert delete(by_key(raw), trusted.id).status == 200


def test_a_key_that_expires_deletes_itself_and_none_that_lasts_longer(
    cloud: Cloud, by_key: Callable[[str], Callable[..., Reply]]
) -> None:
    new = NewKey(user_id=cloud.user.id, team_id=cloud.team.id, expires_in_s=86_400)
    short, raw = create_key(new, now=clock.now())
    assert refused(delete(by_key(raw), cloud.key.id)) == (403, "PERMISSION_NOT_HELD")
    assert delete(by_key(raw), short.id).status == 200


def test_it_reads_the_session_the_index_and_the_key_and_writes_in_one_transaction(ada: Sender, cloud: Cloud) -> None:
    ada("GET", f"{API}/list")
    with counted() as calls:
        delete(ada, cloud.key.id)
    assert calls.steps == [["BatchGetItem"], ["Query"], ["GetItem"], ["TransactWriteItems"]]
