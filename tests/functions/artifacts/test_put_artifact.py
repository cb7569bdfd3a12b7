"""PUT /v8/artifacts/{hash}"""

from io import StringIO

import pytest

from larder import clock
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.artifacts.models import ArtifactHash, Totals
from larder.artifacts.repository.index import read_entry
from larder.artifacts.repository.totals import read_totals
from larder.settings import settings
from tests.conftest import SetOption
from tests.direct_uploads import object_keys, offer, put_object
from tests.faults import answering, error
from tests.invocations import handed_over
from tests.requests import Cloud, Sender, invoke, request_event


def test_the_reply_has_the_url_of_the_artifact_with_its_team(
    cloud: Cloud, send: Sender, personal: Sender, option: SetOption
) -> None:
    address = "https://cache.example.com/v8/artifacts/abc"
    bound = Sender(create_key(NewKey(user_id=cloud.user.id, team_id=cloud.team.id), now=clock.now())[1])
    for of_the_team in (send, bound):
        reply = of_the_team("PUT", "/v8/artifacts/abc", body=b"of the team")
        assert (reply.status, reply.json) == (202, {"urls": [f"{address}?teamId={cloud.team.id}"]})
    assert personal("PUT", "/v8/artifacts/abc", body=b"x").json == {"urls": [address]}
    # Without the team, another key of the same user would read the user's personal artifacts.
    assert personal("GET", f"/v8/artifacts/abc?teamId={cloud.team.id}").body == b"of the team"
    option("base_url", "https://builds.acme.example/")
    reply = personal("PUT", "/v8/artifacts/abc", body=b"x")
    assert reply.json == {"urls": ["https://builds.acme.example/v8/artifacts/abc"]}


def test_the_uploader_is_recorded(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"artifact")
    artifact = read_entry(cloud.team.id, ArtifactHash("abc")).artifact
    assert artifact is not None
    assert artifact.writer == cloud.writer


def test_a_second_upload_replaces_the_first_whose_object_stays_for_current_readers(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"first", headers={"x-artifact-duration": "1"})
    reply = cloud.send("PUT", "/v8/artifacts/abc", body=b"second!", headers={"x-artifact-duration": "2"})
    assert reply.status == 202
    fetched = cloud.send("GET", "/v8/artifacts/abc")
    assert (fetched.body, fetched.headers["x-artifact-duration"]) == (b"second!", "2")
    assert (read_totals(cloud.team.id), len(object_keys())) == (Totals(size_bytes=7, artifacts=1), 2)
    cloud.send("PUT", "/v8/artifacts/another", body=b"x" * 100)
    assert read_totals(cloud.team.id) == Totals(size_bytes=107, artifacts=2)


def test_a_busy_table_keeps_the_stored_artifact(cloud: Cloud) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"first")
    busy = error("TransactionCanceledException", CancellationReasons=[{"Code": "ThrottlingError"}])
    with answering("dynamodb", "TransactWriteItems", busy):
        reply = cloud.send("PUT", "/v8/artifacts/abc", body=b"second")
    assert (reply.status, reply.code) == (503, "try_again")
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"first"


def test_an_upload_through_the_function_replaces_an_earlier_offer(send: Sender) -> None:
    key = offer(send, "abc")
    send("PUT", "/v8/artifacts/abc", body=b"through the function")
    put_object(key, b"offered before")
    assert send("GET", "/v8/artifacts/abc").body == b"through the function"


@pytest.mark.parametrize("hash", ["08e4547d5347b63f", "12HKQaOmR5t5Uy6vdcQsNIiZgHGB", "A-_z", "f" * 128])
def test_202_for_a_hash_of_letters_digits_hyphens_and_underscores(send: Sender, hash: str) -> None:
    assert send("PUT", f"/v8/artifacts/{hash}", body=b"artifact").status == 202


@pytest.mark.parametrize("hash", ["events", "status"])
def test_400_for_a_hash_that_is_the_name_of_another_path(send: Sender, hash: str) -> None:
    assert send("PUT", f"/v8/artifacts/{hash}", body=b"artifact").status == 400


GOOD = {
    "x-artifact-duration": ["0", "10000000000", "12.5"],
    "x-artifact-tag": ["QQ==", "A" * 600],
    "x-artifact-client-ci": ["x" * 50, ""],
    "x-artifact-client-interactive": ["0", "1"],
}
BAD = {"x-artifact-tag": ["A" * 601, "QUJD\n", "é"], "content-length": ["7", "9", "-8", "eight", "9" * 5000]}
ODD = {
    "x-artifact-duration": ["-1", "NaN", "Infinity", "1e3", "0x10", "", "10000000001", "9" * 400, "١٢"],
    "x-artifact-client-ci": ["x" * 51, "é"],
    "x-artifact-client-interactive": ["2", "true", ""],
    "x-artifact-sha": ["../.."],
    "x-artifact-dirty-hash": ["a" * 129],
    "x-artifact-tag": [""],
}


def rows(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, values in table.items() for value in values]


@pytest.mark.parametrize(("name", "value"), rows(GOOD))
def test_202_for_a_header_within_its_rule(send: Sender, name: str, value: str) -> None:
    assert send("PUT", "/v8/artifacts/abc", body=b"artifact", headers={name: value}).status == 202


def test_400_for_a_body_that_the_gateway_decodes_with_a_loss(cloud: Cloud) -> None:
    """Nobody knows whether it does that to a body under a type of text that is no UTF-8."""
    body = b"\x1f\x8b\xff artifact"
    headers = {"authorization": f"Bearer {cloud.token}", "content-type": "text/plain", "content-length": str(len(body))}
    _, event = request_event("PUT", "/v8/artifacts/abc", "", list(headers.items()), body)
    damaged = {"body": body.decode(errors="replace"), "isBase64Encoded": False}
    assert invoke("artifacts.put_artifact.handler", event)["statusCode"] == 202
    assert invoke("artifacts.put_artifact.handler", event | damaged)["statusCode"] == 400


@pytest.mark.parametrize(("name", "value"), rows(BAD))
def test_400_names_the_header_that_breaks_its_rule(send: Sender, name: str, value: str) -> None:
    reply = send("PUT", "/v8/artifacts/abc", body=b"artifact", headers={name: value})
    assert (reply.status, reply.code) == (400, "bad_request")
    assert reply.message.startswith(f"{name}: ")
    assert object_keys() == []


@pytest.mark.parametrize(("name", "value"), rows(ODD))
def test_a_header_that_only_describes_is_left_out(send: Sender, log: StringIO, name: str, value: str) -> None:
    """It never costs the artifact. The log names it."""
    reply = send("PUT", "/v8/artifacts/abc", body=b"artifact", headers={name: value})
    assert reply.status == 202
    read = send("GET", "/v8/artifacts/abc")
    assert (read.body, name in read.headers) == (b"artifact", False)
    assert (f"dropped_{name.replace('-', '_')}" in log.getvalue()) == bool(value)


TAGS = [
    "QQ==",
    "Tc0BmHvJYMIYJ62/zx87YqO0Flxk+5Ovip25NY825CQ=",
    "v=1:sha256:abc123",
    "build#app",
    "a-b_c",
    "two words",
    '{"v": 1}',
    "A" * 600,
]


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


@pytest.mark.parametrize(
    ("name", "value"),
    [("transfer-encoding", "chunked"), ("content-type", "text/plain"), ("content-type", "application/json")],
)
def test_chunks_and_texts_are_stored_byte_for_byte(send: Sender, name: str, value: str) -> None:
    body = "grüße".encode()
    assert send("PUT", "/v8/artifacts/abc", body=body, headers={name: value}).status == 202
    assert send("GET", "/v8/artifacts/abc").body == body


def test_the_same_hash_in_two_teams_is_two_artifacts(send: Sender, personal: Sender) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"the team's")
    personal("PUT", "/v8/artifacts/abc", body=b"my own")
    assert send("GET", "/v8/artifacts/abc").body == b"the team's"
    assert personal("GET", "/v8/artifacts/abc").body == b"my own"


@pytest.mark.parametrize("body", [b"second", b"x" * 40_000])
@pytest.mark.parametrize("failing", ["UpdateItem", "TransactWriteItems"])
def test_commit_upload_completes_what_a_busy_table_refused(cloud: Cloud, failing: str, body: bytes) -> None:
    cloud.send("PUT", "/v8/artifacts/abc", body=b"first!")
    with handed_over(settings().commit_function) as handed:
        with answering("dynamodb", failing, error("InternalServerError", 500)):
            assert cloud.send("PUT", "/v8/artifacts/abc", body=body).status == 503
        assert cloud.send("PUT", "/v8/artifacts/of-no-fault", body=body).status == 202
    assert cloud.send("GET", "/v8/artifacts/abc").body == b"first!"
    (event,) = handed
    invoke("artifacts.commit_upload.handler", event)
    assert cloud.send("GET", "/v8/artifacts/abc").body == body


def test_an_upload_that_is_not_stored_is_not_handed_over(cloud: Cloud, option: SetOption) -> None:
    with handed_over(settings().commit_function) as handed:
        with answering("s3", "PutObject", error("InternalError", 500)):
            assert cloud.send("PUT", "/v8/artifacts/abc", body=b"first").status == 503
        option("default_quota_bytes", "1")
        assert cloud.send("PUT", "/v8/artifacts/abc", body=b"too large").status == 403
    assert handed == []
