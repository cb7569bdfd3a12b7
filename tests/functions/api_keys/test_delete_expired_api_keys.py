"""POST /api/auth/api-key/delete-all-expired-api-keys"""

from datetime import timedelta

from larder import clock
from larder.api_keys.models import NewKey
from larder.api_keys.service import create_key, find_key
from tests.functions.api_keys.people import API, refused
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

PATH = f"{API}/delete-all-expired-api-keys"


def test_everybodys_expired_keys_are_removed_and_no_others(operator: Sender, cloud: Cloud) -> None:
    now = clock.now()
    new = NewKey(user_id=cloud.user.id, expires_in_s=3600)
    ended, _ = create_key(new, now=now - timedelta(hours=2))
    lives, _ = create_key(new, now=now)
    reply = operator("POST", PATH, json_body={})
    assert (reply.status, reply.json) == (200, {"success": True, "error": None})
    assert find_key(ended.id) is None
    assert find_key(lives.id) == lives
    assert find_key(cloud.key.id) is not None


def test_no_body_is_needed_and_no_pause_between_two(operator: Sender, cloud: Cloud) -> None:
    for _ in range(2):
        past = clock.now() - timedelta(hours=2)
        ended, _ = create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=past)
        assert operator("POST", PATH).status == 200
        assert find_key(ended.id) is None


def test_403_for_everybody_else(ada: Sender, cloud: Cloud) -> None:
    assert refused(ada("POST", PATH, json_body={})) == (403, "OPERATOR_ONLY")


def test_401_without_a_session(cloud: Cloud) -> None:
    assert refused(Sender(None)("POST", PATH, json_body={})) == (401, "UNAUTHORIZED")


def test_it_costs_the_session_and_the_index_when_nothing_is_expired(operator: Sender) -> None:
    operator("POST", PATH)
    with counted() as calls:
        operator("POST", PATH)
    assert calls.steps == [["BatchGetItem"], ["Query"]]
