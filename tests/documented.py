"""Compares replies with the OpenAPI document."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

OF_EVERY_REPLY = frozenset({"cache-control", "x-content-type-options"})
"""The document has these in its description, not in each reply."""

_DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "openapi.json"


def undocumented(
    route_key: str, status: int, headers: Mapping[str, str], cookies: Sequence[str], body: bytes
) -> str | None:
    """What the document lacks about a reply of the route, such as `GET /v2/teams`; None if it has everything.

    `headers` has lower-case names.
    """
    if route_key.endswith("+}") or route_key == "$default":
        return None
    response = _response(route_key, status)
    if response is None:
        return f"{route_key} returns {status}"
    if lacking := OF_EVERY_REPLY - headers.keys():
        return f"{route_key} returns {status} without {set(lacking)}"
    declared = {name.lower(): header for name, header in response.get("headers", {}).items()}
    sent = {*headers, *(["set-cookie"] if cookies else [])}
    if missing := {name for name, header in declared.items() if header["required"]} - sent:
        return f"{route_key} returns {status} without {missing}"
    if others := sent & _headers() - declared.keys():
        return f"{route_key} returns {status} with {others}"
    # A function replies to HEAD as to GET. The gateway removes the body.
    if not body or route_key.startswith("HEAD "):
        return None
    media_type = headers.get("content-type", "")
    if media_type not in response.get("content", {}):
        return f"{route_key} returns {status} with {media_type or 'no content type'}"
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    if media_type == "application/json":
        return _wrong_json(route_key, status, body)
    return None


def _wrong_json(route_key: str, status: int, body: bytes) -> str | None:
    error = next(_validator(route_key, status).iter_errors(json.loads(body)), None)
    if error is None:
        return None
    place = "/".join(map(str, error.instance_path))
    return f"{route_key} returns {status} with a body that breaks its schema: {place}: {error.message}"


@cache
def document() -> dict[str, Any]:
    """docs/openapi.json. To generate it takes two seconds, so only the tests of the generator do."""
    read: dict[str, Any] = json.loads(_DOCUMENT.read_text(encoding="utf-8"))
    return read


@cache
def _headers() -> frozenset[str]:
    """The headers that the document has, by lower-case names. Those of CORS are not in it."""
    operations = [one for path in document()["paths"].values() for one in path.values()]
    responses = [response for operation in operations for response in operation["responses"].values()]
    return frozenset(name.lower() for response in responses for name in response.get("headers", {}))


@cache
def _response(route_key: str, status: int) -> dict[str, Any] | None:
    method, _, path = route_key.partition(" ")
    operation = document()["paths"].get(path, {}).get(method.lower())
    assert operation is not None, f"docs/openapi.json has no {route_key}: run `make generate`"
    responses = operation["responses"]
    response: dict[str, Any] | None = responses.get(str(status))
    if response and "$ref" in response:
        name = response["$ref"].rpartition("/")[2]
        response = document()["components"]["responses"][name]
    return response


@cache
def _validator(route_key: str, status: int) -> jsonschema_rs.Draft202012Validator:
    response = _response(route_key, status)
    assert response is not None
    schema = response["content"]["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator(
        {**schema, "components": {"schemas": document()["components"]["schemas"]}}, validate_formats=True
    )
