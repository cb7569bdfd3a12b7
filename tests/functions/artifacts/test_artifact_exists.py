"""HEAD /v8/artifacts/{hash}"""

from tests.direct_uploads import upload
from tests.requests import Sender


def test_200_with_the_headers_of_get_and_no_body(send: Sender) -> None:
    headers = {"x-artifact-duration": "1234", "x-artifact-tag": "QUJD"}
    send("PUT", "/v8/artifacts/abc", body=b"artifact", headers=headers)
    reply = send("HEAD", "/v8/artifacts/abc")
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["content-length"] == "8"
    assert reply.headers["x-artifact-duration"] == "1234"
    assert reply.headers["x-artifact-tag"] == "QUJD"


def test_404_for_a_hash_that_is_not_stored(send: Sender) -> None:
    assert send("HEAD", "/v8/artifacts/abc").status == 404


def test_an_uploaded_object_is_found_before_its_event_arrives(send: Sender) -> None:
    upload(send, "abc", b"straight to S3")
    assert send("HEAD", "/v8/artifacts/abc").headers["content-length"] == "14"


def test_client_headers_are_not_checked(send: Sender) -> None:
    send("PUT", "/v8/artifacts/abc", body=b"artifact")
    headers = {"x-artifact-client-ci": "x" * 51, "x-artifact-client-interactive": "yes"}
    assert send("HEAD", "/v8/artifacts/abc", headers=headers).status == 200
