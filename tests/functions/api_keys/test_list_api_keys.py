"""GET /api/auth/api-key/list"""

import json
from datetime import timedelta

import pytest

from larder import clock
from larder.api_keys.keys import create_key, list_keys
from larder.api_keys.properties import NewKey
from tests.conftest import SetOption
from tests.functions.api_keys.people import API, refused
from tests.proofs.aws_calls import counted
from tests.requests import Cloud, Sender

PATH = f"{API}/list"


def test_the_callers_keys_oldest_first_without_the_keys_themselves(ada: Sender, cloud: Cloud) -> None:
    later = clock.now() + timedelta(seconds=1)
    second, raw = create_key(NewKey(user_id=cloud.user.id, name="second"), now=later)
    reply = ada("GET", PATH)
    assert reply.status == 200
    assert [key["id"] for key in reply.json] == [cloud.key.id, second.id]
    assert all("key" not in key for key in reply.json)
    for secret in (raw, second.key_hash, cloud.token):
        assert secret not in reply.body.decode()


def test_keys_of_other_users_are_not_listed(mallory: Sender, operator: Sender, cloud: Cloud) -> None:
    assert mallory("GET", PATH).json == []
    assert operator("GET", PATH).json == []


def test_all_keys_are_in_one_reply(ada: Sender, cloud: Cloud, option: SetOption) -> None:
    option("max_keys_per_user", "1000")
    for second in range(1, 121):
        later = clock.now() + timedelta(seconds=second)
        create_key(NewKey(user_id=cloud.user.id), now=later)
    every = [key.id for key in list_keys(cloud.user.id)]
    reply = ada("GET", PATH)
    assert [key["id"] for key in reply.json] == every
    assert "link" not in reply.headers
    middle = ada("GET", f"{PATH}?limit=2&offset=50")
    assert [key["id"] for key in middle.json] == every[50:52]
    assert middle.headers["link"] == f'<{PATH}?limit=2&offset=52>; rel="next"'
    assert ada("GET", f"{PATH}?offset=121").json == []


@pytest.mark.slow
def test_keys_that_do_not_fit_into_a_reply_of_lambda_are_on_the_next_page(
    ada: Sender, cloud: Cloud, option: SetOption
) -> None:
    option("max_keys_per_user", "1000")
    largest = NewKey(user_id=cloud.user.id, metadata=['"' * 14] * 312)
    for second in range(1, 301):
        create_key(largest, now=clock.now() + timedelta(seconds=second))
    every = [key.id for key in list_keys(cloud.user.id)]
    first = ada("GET", PATH)
    assert len(json.dumps(first.body.decode())) < 6_000_000
    rest = ada("GET", first.headers["link"].partition(">")[0].removeprefix("<"))
    assert [key["id"] for key in [*first.json, *rest.json]] == every


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=", "[query.limit] must be a whole number from 1 to 1000"),
        ("configId=default&organizationId=acme", "[query.organizationId] needs configId team"),
    ],
)
def test_400_for_a_page_that_cannot_be(ada: Sender, query: str, message: str) -> None:
    reply = ada("GET", f"{PATH}?{query}")
    assert refused(reply) == (400, "VALIDATION_ERROR")
    assert reply.json["message"] == message


def test_it_reads_the_session_the_index_and_one_batch(ada: Sender, cloud: Cloud) -> None:
    for _ in range(5):
        create_key(NewKey(user_id=cloud.user.id), now=clock.now())
    ada("GET", PATH)
    with counted() as calls:
        assert len(ada("GET", PATH).json) == 6
    assert calls.steps == [["BatchGetItem"], ["Query"], ["BatchGetItem"]]


def test_it_reads_the_metadata_of_the_page_in_one_more_batch(ada: Sender, cloud: Cloud) -> None:
    for number in range(3):
        create_key(NewKey(user_id=cloud.user.id, metadata=[number]), now=clock.now())
    ada("GET", PATH)
    with counted() as calls:
        keys = ada("GET", f"{PATH}?limit=3").json
    assert [key["metadata"] for key in keys] == [None, [0], [1]]
    assert calls.steps == [["BatchGetItem"], ["Query"], ["BatchGetItem"], ["BatchGetItem"]]
