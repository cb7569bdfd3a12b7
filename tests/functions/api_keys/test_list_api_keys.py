"""GET /api/auth/api-key/list"""

from datetime import timedelta

from larder import clock
from larder.api_keys.models import NewKey
from larder.api_keys.service import create_key
from tests.functions.api_keys.people import API, refused
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

PATH = f"{API}/list"


def test_the_callers_keys_oldest_first_without_the_keys_themselves(
    ada: Sender, cloud: Cloud
) -> None:
    later = clock.now() + timedelta(seconds=1)
    second, raw = create_key(NewKey(user_id=cloud.user.id, name="second"), now=later)
    reply = ada("GET", PATH)
    assert reply.status == 200
    assert [key["id"] for key in reply.json] == [cloud.key.id, second.id]
    assert all("key" not in key for key in reply.json)
    for secret in (raw, second.key_hash, cloud.token):
        assert secret not in reply.body.decode()


def test_keys_of_other_users_are_not_listed(
    mallory: Sender, operator: Sender, cloud: Cloud
) -> None:
    assert mallory("GET", PATH).json == []
    assert operator("GET", PATH).json == []


def test_listing_removes_expired_keys(ada: Sender, cloud: Cloud) -> None:
    long_ago = clock.now() - timedelta(days=1)
    expired, _ = create_key(NewKey(user_id=cloud.user.id, expires_in_s=60), now=long_ago)
    ada("GET", PATH)
    assert expired.id not in [key["id"] for key in ada("GET", PATH).json]


def test_401_without_a_session(cloud: Cloud) -> None:
    assert refused(Sender(None)("GET", PATH)) == (401, "UNAUTHORIZED")


def test_it_reads_the_session_the_index_and_one_batch(ada: Sender, cloud: Cloud) -> None:
    for _ in range(5):
        create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    ada("GET", PATH)
    with counted() as calls:
        assert len(ada("GET", PATH).json) == 6
    assert calls.steps == [["BatchGetItem"], ["Query"], ["BatchGetItem"]]
