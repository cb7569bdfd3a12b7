"""Requests to every endpoint of `/api/auth`: without a session, and with a body that no endpoint takes.

What is wrong with a body is reported before a missing session, and without a call to AWS.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.catalogue import operations, valid
from tests.documented import document
from tests.larder.web.test_guards import CODES
from tests.proofs.aws_calls import counted
from tests.requests import Reply, Sender

pytestmark = pytest.mark.usefixtures("aws_in_memory")

OPERATIONS = [
    operation
    for operation in operations()
    if " /api/auth/" in operation and "{proxy+}" not in operation and "OPTIONS" not in operation
]
POSTS = [operation for operation in OPERATIONS if operation.startswith("POST ")]

SESSION_FIRST = {"POST /api/auth/link-social", "POST /api/auth/unlink-account"}
"""These report a missing session before what is wrong with a field."""

JSON = "application/json"

UNREADABLE = {
    "half an object": b'{"name":',
    "no UTF-8": b"\xff\xfe",
    "no number of JSON": b'{"email": NaN}',
    "a number of 5000 digits": b'{"metadata": ' + b"9" * 5000 + b"}",
    "deep lists": b'{"metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "lists without an end": b"[" * 100_000,
}

NO_OBJECTS = [b"null", b"[]", b'"text"', b"1", b"1e999", b"true", b'[{"name": "ci"}]']

NOT_TEXTS: list[Any] = [1, 1.5, True, [], ["a"], {}, {"$ne": ""}, [["a"] * 3]]


def sent(operation: str, body: bytes, media_type: str = JSON) -> Reply:
    """The reply to a request without a session, which must cost no call to AWS."""
    request = valid(operation)
    headers = {**request.headers, "content-type": media_type}
    with counted() as calls:
        reply = Sender(None)(request.method, request.path, body=body, headers=headers)
    assert calls.made == []
    return reply


def described(operation: str) -> Any:
    """The operation in the OpenAPI document."""
    method, path = operation.split()
    return document()["paths"][path][method.lower()]


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if valid(one).by == "session"])
def test_without_a_session(operation: str) -> None:
    reply = valid(operation)(Sender(None))
    if {} in described(operation)["security"]:
        assert reply.status == 200
        return
    content = described(operation)["responses"]["401"]["content"]["application/json"]
    *_, code = content["schema"]["allOf"][1]["properties"]["code"]["enum"]
    # The endpoints that create and change keys have a second code for it, that of Better Auth.
    assert reply.refusal == (401, code)


@pytest.mark.parametrize("operation", POSTS)
def test_400_for_a_body_that_is_not_json(operation: str) -> None:
    for name, body in UNREADABLE.items():
        assert sent(operation, body).refusal == (400, "BAD_REQUEST"), name


@pytest.mark.parametrize("operation", POSTS)
def test_415_for_another_media_type(operation: str) -> None:
    takes_forms = operation.startswith(("POST /api/auth/sign-in/", "POST /api/auth/sign-up/"))
    forms = [] if takes_forms else [("application/x-www-form-urlencoded", b"name=ci")]
    others = [("text/plain", b'{"name": "ci"}'), ("multipart/form-data; boundary=x", b"--x--")]
    for media_type, body in forms + others:
        reply = sent(operation, body, media_type)
        assert reply.refusal == (415, "UNSUPPORTED_MEDIA_TYPE"), media_type


def schemas() -> dict[str, dict[str, Any]]:
    """The operations that check their fields first, and the documented schemas of their bodies."""
    found = {}
    for operation in POSTS:
        body = described(operation).get("requestBody")
        if body and operation not in SESSION_FIRST:
            found[operation] = body["content"][JSON]["schema"]
    return found


@pytest.mark.parametrize("operation", schemas())
def test_400_for_json_that_is_not_an_object(operation: str) -> None:
    for body in NO_OBJECTS:
        reply = sent(operation, body)
        assert reply.refusal in {(400, "VALIDATION_ERROR"), (400, "BAD_REQUEST")}, body
        assert len(reply.body) < 1000


@pytest.mark.parametrize(
    ("operation", "field"), [(one, field) for one, schema in schemas().items() for field in schema.get("required", [])]
)
def test_400_without_a_required_field(operation: str, field: str) -> None:
    body = {name: value for name, value in valid(operation).json.items() if name != field}
    body["\ud800"] = "a name that UTF-8 cannot hold"
    reply = sent(operation, json.dumps(body).encode())
    assert reply.refusal == (400, "VALIDATION_ERROR")
    assert reply.json["message"].startswith(f"[body.{field}] ")


def texts() -> Iterator[tuple[str, str, bool]]:
    """The fields that are texts, and whether they can be null."""
    for operation, schema in schemas().items():
        for name, value in schema["properties"].items():
            types = {one.get("type") for one in value.get("anyOf", [value])}
            if "string" in types and types <= {"string", "null"}:
                yield operation, name, "null" in types


@pytest.mark.parametrize(("operation", "field", "nullable"), [*texts()])
def test_400_for_a_text_of_another_type(operation: str, field: str, nullable: bool) -> None:
    for value in NOT_TEXTS if nullable else [*NOT_TEXTS, None]:
        reply = sent(operation, json.dumps({**valid(operation).json, field: value}).encode())
        assert reply.refusal == (400, "VALIDATION_ERROR"), value
        assert reply.json["message"].startswith(f"[body.{field}] ")


@pytest.mark.parametrize(
    ("operation", "field"),
    [(one, name) for one, schema in schemas().items() for name in schema["properties"] if name in CODES],
)
def test_403_for_a_callback_at_another_site(operation: str, field: str) -> None:
    body = {**valid(operation).json, field: "https://evil.example/"}
    assert sent(operation, json.dumps(body).encode()).refusal == (403, CODES[field])
