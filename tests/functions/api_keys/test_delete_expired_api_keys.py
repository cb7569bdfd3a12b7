"""POST /api/auth/api-key/delete-all-expired-api-keys"""

from datetime import timedelta

from larder import clock
from larder.api_keys.keys import create_key, find_key
from larder.api_keys.properties import NewKey
from tests.functions.api_keys.people import API
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

PATH = f"{API}/delete-all-expired-api-keys"


def test_only_the_expired_keys_of_all_users_are_deleted(operator: Sender, cloud: Cloud) -> None:
    now = clock.now()
    new = NewKey(user_id=cloud.user.id, expires_in_s=3600)
    ended, _ = create_key(new, now=now - timedelta(hours=2))
    lives, _ = create_key(new, now=now)
    reply = operator("POST", PATH, json_body={})
    assert (reply.status, reply.json) == (200, {"success": True, "error": None})
    assert find_key(ended.id) is None
    assert find_key(lives.id) == lives
    assert find_key(cloud.key.id) is not None


def test_the_body_is_optional_and_calls_need_no_pause(operator: Sender, cloud: Cloud) -> None:
    for _ in range(2):
        past = clock.now() - timedelta(hours=2)
        ended, _ = create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=past)
        assert operator("POST", PATH).status == 200
        assert find_key(ended.id) is None


def test_it_reads_the_session_and_the_index_when_no_key_has_expired(operator: Sender) -> None:
    operator("POST", PATH)
    with counted() as calls:
        operator("POST", PATH)
    assert calls.steps == [["BatchGetItem"], ["Query"]]
