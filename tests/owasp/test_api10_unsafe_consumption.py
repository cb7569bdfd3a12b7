"""API10: Unsafe consumption of APIs. Input from S3 and from other functions is checked like input from clients."""

from __future__ import annotations

from typing import Any

import pytest

from larder.accounts.email_jobs import parse_job
from larder.artifacts.models import ArtifactHash
from larder.artifacts.repository import index
from larder.settings import settings
from tests.owasp.conftest import HASH, Person, stored
from tests.requests import invoke

COMMIT = "artifacts.commit_upload.handler"
ID = "019356f0a1b2" + "0" * 16


def arrived(key: str) -> dict[str, Any]:
    bucket = {"name": settings().artifacts_bucket}
    return {"detail": {"bucket": bucket, "object": {"key": key, "size": 9}}}


@pytest.mark.parametrize(
    "key",
    [
        "", "artifacts/", f"other/{HASH}/{ID}", f"artifacts/../{HASH}/{ID}", f"artifacts/ADA/../{ID}",
        f"artifacts/ADA/{HASH}/../../evil/{HASH}/{ID}", f"artifacts/ADA/{HASH}/{ID}/more",
        f"artifacts/ADA/{HASH}/{ID}\n", f"artifacts/ADA/{HASH}%2F..%2Fx/{ID}", f"artifacts/ADA/#totals/{ID}",
        f"artifacts/ADA/{'a' * 129}/{ID}",
    ],
)  # fmt: skip
def test_an_event_for_an_object_that_larder_did_not_name_changes_nothing(key: str, ada: Person) -> None:
    before = stored()
    invoke(COMMIT, arrived(key.replace("ADA", ada.user.id)))
    assert stored() == before


def test_an_event_for_a_missing_object_creates_no_artifact(ada: Person) -> None:
    invoke(COMMIT, arrived(f"artifacts/{ada.user.id}/never/{ID}"))
    assert index.read_entry(ada.user.id, ArtifactHash("never")).artifact is None


@pytest.mark.parametrize("job", [{}, {"kind": "shell", "email": "a@b.example"}, {"kind": "verify_email"}, []], ids=str)
def test_an_invalid_mail_job_is_an_error(job: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        parse_job(job)


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: a=b", "a\nb", "\x00", "é"])
def test_stored_client_values_cannot_add_a_header(value: str, ada: Person) -> None:
    headers = {"x-artifact-tag": value}
    put = ada.by_key("PUT", "/v8/artifacts/headers", body=b"x", headers=headers)
    assert (put.status, put.code) == (400, "bad_request")
    headers = {"x-artifact-sha": value, "x-artifact-dirty-hash": value}
    assert ada.by_key("PUT", "/v8/artifacts/headers", body=b"x", headers=headers).status == 202
    read = ada.by_key("GET", "/v8/artifacts/headers")
    assert not [name for name in read.headers if "hash" in name or "sha" in name or "set" in name]
