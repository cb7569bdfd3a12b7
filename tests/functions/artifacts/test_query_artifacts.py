"""POST /v8/artifacts"""

import json

from larder.web.bodies.cache import MAX_QUERIED_LENGTH
from local.gateway.limits import MAX_EVENT_BYTES
from tests.conftest import SetOption
from tests.direct_uploads import offer, upload
from tests.requests import Sender

JSON = {"content-type": "application/json"}


def test_size_duration_and_tag_of_each_hash_and_null_for_unknown_ones(send: Sender) -> None:
    headers = {"x-artifact-duration": "1234", "x-artifact-tag": "QUJD"}
    send("PUT", "/v8/artifacts/a1", body=b"12345", headers=headers)
    send("PUT", "/v8/artifacts/a2", body=b"123")
    reply = send("POST", "/v8/artifacts", json_body={"hashes": ["a1", "a2", "a3"]})
    assert reply.status == 200
    assert reply.json == {
        "a1": {"size": 5, "taskDurationMs": 1234, "tag": "QUJD"},
        "a2": {"size": 3, "taskDurationMs": 0},
        "a3": None,
    }


def test_as_many_hashes_as_three_batches_hold(send: Sender) -> None:
    stored = [f"{number:04x}" for number in range(0, 150, 10)]
    for hash in stored:
        send("PUT", f"/v8/artifacts/{hash}", body=b"artifact")
    hashes = [f"{number:04x}" for number in range(150)]
    found = send("POST", "/v8/artifacts", json_body={"hashes": hashes}).json
    assert sorted(found) == hashes
    assert sorted(hash for hash, entry in found.items() if entry) == stored


def test_a_repeated_hash_is_returned_once(send: Sender) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"artifact")
    assert list(send("POST", "/v8/artifacts", json_body={"hashes": ["abc", "abc"]}).json) == ["abc"]


def test_an_empty_list_returns_an_empty_object(send: Sender) -> None:
    assert send("POST", "/v8/artifacts", json_body={"hashes": []}).json == {}


def test_an_invalid_hash_is_null_and_the_others_are_returned(send: Sender) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"artifact")
    odd = ["", "../abc", "a.b", "abc\n", "é", "\x00", "status", "events", "f" * 129]
    reply = send("POST", "/v8/artifacts", json_body={"hashes": [*odd, "abc", "abf"]})
    assert reply.status == 200
    assert reply.json == {**dict.fromkeys(odd), "abc": {"size": 8, "taskDurationMs": 0}, "abf": None}


def test_the_longest_reply_fits_into_lambdas_limit(send: Sender, option: SetOption) -> None:
    option("max_query_hashes", 1000)
    longest = [f"{number:03}".ljust(MAX_QUERIED_LENGTH, "\U0001f600") for number in range(1000)]
    reply = send("POST", "/v8/artifacts", json_body={"hashes": longest})
    assert reply.json == dict.fromkeys(longest)
    assert len(json.dumps({"body": reply.body.decode()})) < MAX_EVENT_BYTES


def test_client_headers_are_not_checked(send: Sender) -> None:
    headers = {"x-artifact-client-ci": "x" * 51, "x-artifact-client-interactive": "yes"}
    reply = send("POST", "/v8/artifacts", json_body={"hashes": ["abc"]}, headers=headers)
    assert (reply.status, reply.json) == (200, {"abc": None})


def test_only_uploads_that_have_arrived_are_found(send: Sender) -> None:
    upload(send, "a1", b"arrived")
    offer(send, "a2")
    reply = send("POST", "/v8/artifacts", json_body={"hashes": ["a1", "a2"]})
    assert reply.json == {"a1": {"size": 7, "taskDurationMs": 0}, "a2": None}


def test_400_for_too_many_hashes(send: Sender, option: SetOption) -> None:
    option("max_query_hashes", 3)
    assert send("POST", "/v8/artifacts", json_body={"hashes": ["a", "b", "c"]}).status == 200
    reply = send("POST", "/v8/artifacts", json_body={"hashes": ["a", "b", "c", "d"]})
    assert reply.message == "hashes: must hold at most 3 hashes, not 4"
