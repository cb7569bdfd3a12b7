"""POST /api/auth/api-key/delete"""

from typing import Any

import pytest

from larder import clock
from larder.api_keys.models import Refusal
from larder.api_keys.service import find_key
from larder.api_keys.verification import verify
from tests.functions.api_keys.people import API, refused
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender

PATH = f"{API}/delete"


def delete(send: Sender, key_id: Any) -> Reply:
    return send("POST", PATH, json_body={"keyId": key_id})


def test_the_callers_own_key_is_deleted(ada: Sender, cloud: Cloud) -> None:
    reply = delete(ada, cloud.key.id)
    assert (reply.status, reply.json) == (200, {"success": True})
    assert verify(cloud.key.key_hash, {}, now=clock.now()).refusal is Refusal.INVALID
    assert refused(delete(ada, cloud.key.id)) == (404, "KEY_NOT_FOUND")


def test_404_for_another_users_key_which_stays(mallory: Sender, cloud: Cloud) -> None:
    assert refused(delete(mallory, cloud.key.id)) == (404, "KEY_NOT_FOUND")
    assert find_key(cloud.key.id) is not None


@pytest.mark.parametrize("key_id", ["A" * 32, "", "#clean-up", "a" * 3000, "\x00"])
def test_404_for_an_unknown_key_id(ada: Sender, key_id: str) -> None:
    assert refused(delete(ada, key_id)) == (404, "KEY_NOT_FOUND")


@pytest.mark.parametrize("body", [{}, {"keyId": None}, {"keyId": {"S": "x"}}, {"id": "x"}, []])
def test_400_without_an_id_even_without_a_session(cloud: Cloud, body: Any) -> None:
    headers = {"content-type": "application/json"}
    reply = Sender(None)("POST", PATH, body=str(body).encode(), headers=headers)
    assert reply.status == 400
    reply = Sender(None)("POST", PATH, json_body=body)
    assert refused(reply) == (400, "VALIDATION_ERROR")


def test_401_without_a_session(cloud: Cloud) -> None:
    assert refused(delete(Sender(None), cloud.key.id)) == (401, "UNAUTHORIZED")
    assert find_key(cloud.key.id) is not None


def test_an_operator_deletes_any_key(operator: Sender, cloud: Cloud) -> None:
    assert delete(operator, cloud.key.id).status == 200
    assert find_key(cloud.key.id) is None


def test_it_reads_the_session_the_index_and_the_key_and_writes_in_one_transaction(
    ada: Sender, cloud: Cloud
) -> None:
    ada("GET", f"{API}/list")
    with counted() as calls:
        delete(ada, cloud.key.id)
    assert calls.steps == [["BatchGetItem"], ["Query"], ["GetItem"], ["TransactWriteItems"]]
