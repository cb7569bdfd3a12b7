"""GET /api/auth/api-key/get"""

import pytest

from larder import clock
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from tests.functions.api_keys.people import API, refused
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender

PATH = f"{API}/get"


def get(send: Sender, query: str) -> Reply:
    return Sender(send.token, query=query)("GET", PATH)


@pytest.mark.parametrize("name", ["id", "keyId"])
def test_the_record_of_the_callers_key_without_the_key(ada: Sender, cloud: Cloud, name: str) -> None:
    reply = get(ada, f"{name}={cloud.key.id}")
    assert (reply.status, reply.json["id"], reply.json["name"]) == (200, cloud.key.id, "ci")
    assert "key" not in reply.json
    assert cloud.token not in reply.body.decode()
    assert cloud.key.key_hash not in reply.body.decode()


def test_404_for_another_users_key(mallory: Sender, cloud: Cloud) -> None:
    assert refused(get(mallory, f"id={cloud.key.id}")) == (404, "KEY_NOT_FOUND")


@pytest.mark.parametrize("query", ["", "id=", "name=ci"])
def test_400_without_an_id_even_without_a_session(cloud: Cloud, query: str) -> None:
    reply = get(Sender(None), query)
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert reply.json["message"] == "[query.id] is required"


def test_an_operator_sees_any_key(operator: Sender, cloud: Cloud) -> None:
    assert get(operator, f"id={cloud.key.id}").json["userId"] == cloud.user.id


def test_it_reads_the_session_the_index_and_the_key(ada: Sender, cloud: Cloud) -> None:
    get(ada, f"id={cloud.key.id}")
    with counted() as calls:
        get(ada, f"id={cloud.key.id}")
    assert calls.steps == [["BatchGetItem"], ["Query"], ["GetItem"]]


def test_it_reads_metadata_in_another_call(ada: Sender, cloud: Cloud) -> None:
    new = NewKey(user_id=cloud.user.id, metadata={"repo": "web"})
    key, _ = create_key(new, now=clock.now())
    get(ada, f"id={key.id}")
    with counted() as calls:
        assert get(ada, f"id={key.id}").json["metadata"] == {"repo": "web"}
    assert calls.steps == [["BatchGetItem"], ["Query"], ["GetItem"], ["GetItem"]]
