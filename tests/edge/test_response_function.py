"""deploy/edge/response.js: clients get the headers of the artifact, and nothing of S3's own."""

from typing import Any

import pytest

from local.edge.engine import EdgeFunction
from local.edge.events import check_response, response_event
from tests.edge.requests import FOLDER, TAG

FORCED = {
    "content-type": "application/octet-stream",
    "content-disposition": "attachment",
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-store",
}
FUNCTION = EdgeFunction((FOLDER / "response.js").read_text(), lambda name: None)


def returned(method: str, headers: dict[str, str], status: int = 200) -> dict[str, str]:
    event = response_event({"method": method}, status, list(headers.items()))
    response: dict[str, Any] = FUNCTION(event)
    check_response(event["response"], response)
    assert response["statusCode"] == status
    return {name: header["value"] for name, header in response["headers"].items()}


def test_metadata_becomes_the_headers_of_the_artifact() -> None:
    stored = {
        "x-amz-meta-tag": TAG,
        "x-amz-meta-duration-ms": "1831",
        "x-amz-meta-sha": "abc",
        "x-amz-meta-dirty-hash": "0",
        "x-amz-meta-ci": "GITHUB_ACTIONS",
        "x-amz-meta-writer": "keyId",
        "x-amz-meta-user-id": "userId",
        "x-amz-meta-sha256": "0" * 64,
        "x-amz-version-id": "v",
        "x-amz-id-2": "z",
        "x-amz-server-side-encryption": "AES256",
        "content-type": "text/html",
        "content-disposition": "inline",
        "cache-control": "public",
        "etag": '"e"',
        "content-length": "5",
    }
    assert returned("GET", stored) == {
        **FORCED,
        "x-artifact-tag": TAG,
        "x-artifact-duration": "1831",
        "x-artifact-sha": "abc",
        "x-artifact-dirty-hash": "0",
        "etag": '"e"',
        "content-length": "5",
    }


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("stored", [{}, {"x-amz-meta-duration-ms": "1.5"}, {"x-amz-meta-duration-ms": ""}])
def test_a_duration_that_turbo_would_refuse_is_zero(method: str, stored: dict[str, str]) -> None:
    assert returned(method, stored) == {**FORCED, "x-artifact-duration": "0"}


def test_the_reply_to_an_upload_has_nothing_of_s3s_own() -> None:
    stored = {"x-amz-request-id": "z", "x-amz-version-id": "v", "etag": '"e"'}
    assert returned("PUT", stored) == {"etag": '"e"'}
