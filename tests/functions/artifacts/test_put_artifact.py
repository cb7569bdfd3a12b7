"""PUT /v8/artifacts/{hash}"""

from io import StringIO

import pytest

from larder import clock
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.artifacts.models import ArtifactHash, Totals
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import read_totals
from larder.teams.state import change_state
from tests.conftest import SetOption
from tests.direct_uploads import object_keys, offer, put_object
from tests.faults import answering, error
from tests.requests import Cloud, Sender

TAG = "Tc0BmHvJYMIYJ62/zx87YqO0Flxk+5Ovip25NY825CQ="


def test_202_with_the_url_of_the_artifact(cloud: Cloud) -> None:
    reply = cloud.send("PUT", "/v8/artifacts/0a1b2c3d4e5f6071", body=b"artifact")
    assert reply.status == 202
    address = "https://cache.example.com/v8/artifacts/0a1b2c3d4e5f6071"
    assert reply.json == {"urls": [f"{address}?teamId={cloud.team.id}"]}


def test_the_url_names_the_keys_team_if_the_request_names_none(cloud: Cloud, personal: Sender) -> None:
    new = NewKey(user_id=cloud.user.id, team_id=cloud.team.id)
    bound = Sender(create_key(new, now=clock.now())[1])
    (address,) = bound("PUT", "/v8/artifacts/abc", body=b"of the team").json["urls"]
    path = address.removeprefix("https://cache.example.com")
    # Without the team, another key of the same user would read the user's personal artifacts.
    assert personal("GET", path).body == b"of the team"


def test_the_url_of_a_personal_artifact_names_no_team(personal: Sender) -> None:
    reply = personal("PUT", "/v8/artifacts/abc", body=b"x")
    assert reply.json == {"urls": ["https://cache.example.com/v8/artifacts/abc"]}


def test_get_returns_the_bytes_and_every_header(send: Sender) -> None:
    headers = {
        "x-artifact-duration": "1234",
        "x-artifact-tag": TAG,
        "x-artifact-sha": "0123456789abcdef0123456789abcdef01234567",
        "x-artifact-dirty-hash": "89abcdef",
        "x-artifact-client-ci": "GITHUB_ACTIONS",
        "x-artifact-client-interactive": "0",
    }
    body = bytes(range(256)) * 8
    assert send("PUT", "/v8/artifacts/abc", body=body, headers=headers).status == 202
    fetched = send("GET", "/v8/artifacts/abc")
    assert fetched.body == body
    for name in ("duration", "tag", "sha", "dirty-hash"):
        assert fetched.headers[f"x-artifact-{name}"] == headers[f"x-artifact-{name}"]


def test_the_key_of_the_uploader_is_recorded(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact")
    artifact = read_entry(cloud.team.id, ArtifactHash("abc")).artifact
    assert artifact is not None
    assert artifact.writer == cloud.writer


def test_a_second_upload_of_a_hash_replaces_the_first_with_202(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"first", headers={"x-artifact-duration": "1"})
    reply = cloud.send("PUT", "/v8/artifacts/abc", body=b"second!", headers={"x-artifact-duration": "2"})
    assert reply.status == 202
    fetched = cloud.send("GET", "/v8/artifacts/abc")
    assert (fetched.body, fetched.headers["x-artifact-duration"]) == (b"second!", "2")
    assert read_totals(cloud.team.id) == Totals(size_bytes=7, artifacts=1)


def test_a_busy_table_keeps_the_stored_artifact(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"first")
    busy = error("TransactionCanceledException", CancellationReasons=[{"Code": "ThrottlingError"}])
    with answering("dynamodb", "TransactWriteItems", busy):
        reply = cloud.send("PUT", "/v8/artifacts/abc", body=b"second")
    assert (reply.status, reply.code) == (503, "try_again")
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"first"


def test_a_replaced_object_stays_for_current_readers(send: Sender) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"first")
    send("PUT", "/v8/artifacts/abc", body=b"second")
    assert len(object_keys()) == 2


def test_the_url_uses_the_deployments_base_url(personal: Sender, option: SetOption) -> None:
    option("base_url", "https://builds.acme.example/")
    reply = personal("PUT", "/v8/artifacts/abc", body=b"x")
    assert reply.json == {"urls": ["https://builds.acme.example/v8/artifacts/abc"]}


def test_a_stored_artifact_is_counted(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/a1", body=b"x" * 100)
    cloud.send("PUT", "/v8/artifacts/a2", body=b"x" * 50)
    assert read_totals(cloud.team.id) == Totals(size_bytes=150, artifacts=2)


def test_an_upload_through_the_function_replaces_an_earlier_offer(send: Sender) -> None:
    key = offer(send, "abc")
    send("PUT", "/v8/artifacts/abc", body=b"through the function")
    put_object(key, b"offered before")
    assert send("GET", "/v8/artifacts/abc").body == b"through the function"


@pytest.mark.parametrize(
    "hash",
    ["08e4547d5347b63f", "12HKQaOmR5t5Uy6vdcQsNIiZgHGB", "A-_z", "f" * 128],
    ids=["build client's", "another client's", "every kind of character", "longest"],
)
def test_202_for_a_hash_of_letters_digits_hyphens_and_underscores(send: Sender, hash: str) -> None:
    assert send("PUT", f"/v8/artifacts/{hash}", body=b"artifact").status == 202


@pytest.mark.parametrize("hash", ["events", "status"])
def test_400_for_a_hash_that_is_the_name_of_another_path(send: Sender, hash: str) -> None:
    assert send("PUT", f"/v8/artifacts/{hash}", body=b"artifact").status == 400


GOOD_HEADERS = [
    ("x-artifact-duration", "0"),
    ("x-artifact-duration", "10000000000"),
    ("x-artifact-duration", "12.5"),
    ("x-artifact-tag", "QQ=="),
    ("x-artifact-tag", "A" * 600),
    ("x-artifact-client-ci", "x" * 50),
    ("x-artifact-client-ci", ""),
    ("x-artifact-client-interactive", "0"),
    ("x-artifact-client-interactive", "1"),
]

BAD_HEADERS = [
    ("x-artifact-tag", "A" * 601),
    ("x-artifact-tag", "QUJD\n"),
    ("x-artifact-tag", "é"),
    ("content-length", "7"),
    ("content-length", "9"),
    ("content-length", "-8"),
    ("content-length", "eight"),
    ("content-length", "9" * 5000),
]

ODD_HEADERS = [
    ("x-artifact-duration", "-1"),
    ("x-artifact-duration", "NaN"),
    ("x-artifact-duration", "Infinity"),
    ("x-artifact-duration", "1e3"),
    ("x-artifact-duration", "0x10"),
    ("x-artifact-duration", ""),
    ("x-artifact-duration", "10000000001"),
    ("x-artifact-duration", "9" * 400),
    ("x-artifact-duration", "١٢"),
    ("x-artifact-client-ci", "x" * 51),
    ("x-artifact-client-ci", "é"),
    ("x-artifact-client-interactive", "2"),
    ("x-artifact-client-interactive", "true"),
    ("x-artifact-client-interactive", ""),
    ("x-artifact-sha", "../.."),
    ("x-artifact-dirty-hash", "a" * 129),
    ("x-artifact-tag", ""),
]


@pytest.mark.parametrize(("name", "value"), GOOD_HEADERS)
def test_202_for_a_header_within_its_rule(send: Sender, name: str, value: str) -> None:
    reply = send("PUT", "/v8/artifacts/abc", body=b"artifact", headers={name: value})
    assert reply.status == 202


@pytest.mark.parametrize(("name", "value"), BAD_HEADERS)
def test_400_names_the_header_that_breaks_its_rule(send: Sender, name: str, value: str) -> None:
    reply = send("PUT", "/v8/artifacts/abc", body=b"artifact", headers={name: value})
    assert (reply.status, reply.code) == (400, "bad_request")
    assert reply.message.startswith(f"{name}: ")
    assert object_keys() == []


@pytest.mark.parametrize(("name", "value"), ODD_HEADERS)
def test_a_header_that_only_describes_is_left_out(send: Sender, log: StringIO, name: str, value: str) -> None:
    """It never costs the artifact. The log names it."""
    reply = send("PUT", "/v8/artifacts/abc", body=b"artifact", headers={name: value})
    assert reply.status == 202
    read = send("GET", "/v8/artifacts/abc")
    assert (read.body, name in read.headers) == (b"artifact", False)
    assert (f"dropped_{name.replace('-', '_')}" in log.getvalue()) == bool(value)


TAGS = ["QQ==", "v=1:sha256:abc123", "build#app", "a-b_c", "two words", '{"v": 1}', "A" * 600]


@pytest.mark.parametrize("tag", TAGS)
def test_every_reader_gets_what_was_sent(send: Sender, tag: str) -> None:
    """GET, HEAD and the query name the same, field by field."""
    sent = {
        "x-artifact-duration": "1200",
        "x-artifact-tag": tag,
        "x-artifact-sha": "0828" * 10,
        "x-artifact-dirty-hash": "a96b",
    }
    assert send("PUT", "/v8/artifacts/abc", body=b"artifact", headers=sent).status == 202
    for method in ("GET", "HEAD"):
        headers = send(method, "/v8/artifacts/abc").headers
        assert {name: headers[name] for name in sent} == sent
    entry = send("POST", "/v8/artifacts", json_body={"hashes": ["abc"]}).json["abc"]
    assert entry == {"size": 8, "taskDurationMs": 1200, "tag": tag, "sha": "0828" * 10, "dirtyHash": "a96b"}


def test_a_duration_with_decimals_is_stored_in_whole_milliseconds(send: Sender) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"x", headers={"x-artifact-duration": "12.7"})
    assert send("GET", "/v8/artifacts/abc").headers["x-artifact-duration"] == "13"


def test_400_for_an_empty_body(send: Sender) -> None:
    reply = send("PUT", "/v8/artifacts/abc", headers={"content-length": "0"})
    assert (reply.status, reply.message) == (400, "body: must hold the artifact; it is empty")


def test_400_for_an_artifact_above_the_deployments_limit(send: Sender, option: SetOption) -> None:
    option("max_upload_bytes", 7)
    assert send("PUT", "/v8/artifacts/abc", body=b"7 bytes").status == 202
    reply = send("PUT", "/v8/artifacts/abc", body=b"8 bytes.")
    assert (reply.status, reply.message) == (400, "content-length: must be at most 7 bytes, not 8")


def test_uploads_in_chunks_without_a_length_are_accepted(send: Sender) -> None:
    chunked = {"transfer-encoding": "chunked"}
    assert send("PUT", "/v8/artifacts/abc", body=b"chunks", headers=chunked).status == 202
    assert send("GET", "/v8/artifacts/abc").body == b"chunks"


@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
def test_a_text_content_type_does_not_change_the_bytes(send: Sender, content_type: str) -> None:
    body = "grüße".encode()
    reply = send("PUT", "/v8/artifacts/abc", body=body, headers={"content-type": content_type})
    assert reply.status == 202
    assert send("GET", "/v8/artifacts/abc").body == body


@pytest.mark.usefixtures("refusing")
def test_403_over_limit_if_the_artifact_would_exceed_the_quota(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=100)
    assert cloud.send("PUT", "/v8/artifacts/a1", body=b"x" * 60).status == 202
    reply = cloud.send("PUT", "/v8/artifacts/a2", body=b"x" * 41)
    assert (reply.status, reply.code) == (403, "remote_caching_over_limit")
    assert cloud.send("GET", "/v8/artifacts/a2").status == 404
    assert cloud.send("PUT", "/v8/artifacts/a2", body=b"x" * 40).status == 202
    assert read_totals(cloud.team.id) == Totals(size_bytes=100, artifacts=2)


def test_the_quota_counts_the_growth_of_a_replacement(cloud: Cloud) -> None:
    change_state(cloud.team.id, quota_bytes=100)
    cloud.send("PUT", "/v8/artifacts/a1", body=b"x" * 90)
    assert cloud.send("PUT", "/v8/artifacts/a1", body=b"y" * 95).status == 202
    assert read_totals(cloud.team.id).size_bytes == 95


def test_the_same_hash_in_two_teams_is_two_artifacts(send: Sender, personal: Sender) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"the team's")
    personal("PUT", "/v8/artifacts/abc", body=b"my own")
    assert send("GET", "/v8/artifacts/abc").body == b"the team's"
    assert personal("GET", "/v8/artifacts/abc").body == b"my own"
