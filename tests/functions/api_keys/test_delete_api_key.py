"""POST /api/auth/api-key/delete"""

from typing import Any

import pytest

from larder import clock
from larder.api_keys.models import Refusal
from larder.api_keys.service import find_key, verify
from tests.functions.api_keys.people import API, refused
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Reply, Sender

PATH = f"{API}/delete"


def delete(send: Sender, key_id: Any) -> Reply:
    return send("POST", PATH, json_body={"keyId": key_id})


def test_ones_own_key_ends_with_the_answer(ada: Sender, cloud: Cloud) -> None:
    reply = delete(ada, cloud.key.id)
    assert (reply.status, reply.json) == (200, {"success": True})
    assert verify(cloud.key.key_hash, {}, now=clock.now()).refusal is Refusal.INVALID
    assert refused(delete(ada, cloud.key.id)) == (404, "KEY_NOT_FOUND")


def test_404_for_a_key_of_somebody_else_which_lives_on(mallory: Sender, cloud: Cloud) -> None:
    assert refused(delete(mallory, cloud.key.id)) == (404, "KEY_NOT_FOUND")
    assert find_key(cloud.key.id) is not None


@pytest.mark.parametrize("key_id", ["A" * 32, "", "#clean-up", "a" * 3000, "\x00"])
def test_404_for_what_is_no_key(ada: Sender, key_id: str) -> None:
    assert refused(delete(ada, key_id)) == (404, "KEY_NOT_FOUND")


@pytest.mark.parametrize("body", [{}, {"keyId": None}, {"keyId": {"S": "x"}}, {"id": "x"}, []])
def test_400_without_an_id_also_for_nobody(cloud: Cloud, body: Any) -> None:
    headers = {"content-type": "application/json"}
    reply = Sender(None)("POST", PATH, body=str(body).encode(), headers=headers)
    assert reply.status == 400
    reply = Sender(None)("POST", PATH, json_body=body)
    assert refused(reply) == (400, "VALIDATION_ERROR")


def test_401_without_a_session(cloud: Cloud) -> None:
    assert refused(delete(Sender(None), cloud.key.id)) == (401, "UNAUTHORIZED")
    assert find_key(cloud.key.id) is not None


def test_an_operator_ends_anybodys(operator: Sender, cloud: Cloud) -> None:
    assert delete(operator, cloud.key.id).status == 200
    assert find_key(cloud.key.id) is None


def test_it_costs_the_session_the_index_the_key_and_one_write(ada: Sender, cloud: Cloud) -> None:
    ada("GET", f"{API}/list")
    with counted() as calls:
        delete(ada, cloud.key.id)
    assert calls.steps == [["BatchGetItem"], ["Query"], ["GetItem"], ["DeleteItem"]]
