"""Hostile input to every operation: a valid request of the catalogue in which one part is wrong.

What breaks the OpenAPI document gets 4xx with the name of the part, and changes nothing. What the document allows gets
any reply but 5xx. No reply has data of another user, and no log line a secret.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from io import StringIO
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import jsonschema_rs
import pytest

from larder.api_keys.properties import MAX_METADATA_DEPTH, MAX_METADATA_LENGTH
from larder.instance import restart
from larder.settings import region
from tests.catalogue import Names, Request, operations, path_parameters, valid
from tests.conftest import BeginWith
from tests.documented import document
from tests.mailbox import Mailbox
from tests.moto_stores import Stores
from tests.owasp.conftest import Person, person, stored
from tests.proofs.aws_calls import counted
from tests.requests import Sender

JSON_VALUES: list[Any] = [
    None, True, 0, -1, 0.5, 10**30, "", "\x00", "a\r\nx-injected: 1", "\ud800", "x" * 20_000, "../..",
    "\u202e", "%0d%0ax-injected:%201", "<script>alert(1)</script>", "https://evil.example", "MALLORY",
    [], {}, [None], [["a"]], {"$ne": ""}, {"__proto__": {"admin": True}},
]  # fmt: skip
TEXTS = [
    "", " ", "-1", "1,2", "1.5", "1e3", "\u0661", "9" * 400, "NaN", "\x00", "a\r\nx-injected: 1", "\ud800", "x" * 8_000,
    "../..", "<script>", "#", "2026-02-29", "MALLORY",
]  # fmt: skip
"""MALLORY becomes each id of another user in turn."""

UNREADABLE = {
    "half an object": b'{"name":',
    "no UTF-8": b"\xff\xfe",
    "no number of JSON": b'{"email": NaN}',
    "a number of 5000 digits": b'{"metadata": ' + b"9" * 5000 + b"}",
    "deep lists": b'{"metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "lists without an end": b"[" * 100_000,
}
FORM = "application/x-www-form-urlencoded"
ONLY_DESCRIBES = {
    "x-artifact-client-ci", "x-artifact-client-interactive", "x-artifact-duration", "x-artifact-sha",
    "x-artifact-dirty-hash",
}  # fmt: skip
"""A wrong header of these is left out (docs/artifacts.md)."""

OF_AUTH = [one for one in operations() if " /api/auth/" in one and "OPTIONS" not in one and "{proxy+}" not in one]
SESSION_FIRST = {"POST /api/auth/link-social", "POST /api/auth/unlink-account"}
"""These report a missing session before what is wrong with a field."""


def described(operation: str) -> dict[str, Any]:
    """The operation in the OpenAPI document."""
    method, path = operation.split()
    found: dict[str, Any] = document()["paths"].get(path, {}).get(method.lower(), {})
    return found


def schema(operation: str) -> dict[str, Any]:
    """The schema of the JSON body, `{}` without one."""
    content = described(operation).get("requestBody", {}).get("content", {})
    found: dict[str, Any] = content.get("application/json", {}).get("schema", {})
    return found


WITH_BODY = [one for one in operations() if schema(one)]


@dataclass(frozen=True)
class Wrong:
    """A request with one part replaced. `breaks` says whether the document forbids it."""

    part: str
    request: Request
    breaks: bool


def texts_for(mallory: Person) -> Iterator[str]:
    for text in TEXTS:
        yield from mallory.ids if text == "MALLORY" else [text]


def is_broken(rules: dict[str, Any], value: object) -> bool:
    try:
        return not _validator(json.dumps(rules)).is_valid(value)
    except ValueError:  # a lone surrogate, which no schema excludes
        return False


@cache
def _validator(rules: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(json.loads(rules))


Path = tuple[str | int, ...]


def places(rules: dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The path and schema of the body and of each of its properties."""
    for way in rules.get("anyOf", [rules]):
        if way.get("type") != "null":
            yield path, way
        for name, inner in way.get("properties", {}).items():
            yield from places(inner, (*path, name))
        if way.get("items"):
            yield from places(way["items"], (*path, 0))


def edges(rules: dict[str, Any], known: Any) -> Iterator[Any]:
    """Values right outside of what a schema allows, or what it allows with one property more or less."""
    if "maximum" in rules:
        yield rules["maximum"] + 1
    if "minimum" in rules:
        yield rules["minimum"] - 1
    if "maxLength" in rules:
        yield "x" * (rules["maxLength"] + 1)
    if "maxItems" in rules and isinstance(known, list) and known:
        yield known[:1] * (rules["maxItems"] + 1)
    if "maxProperties" in rules and rules["maxProperties"] < 1000:
        yield {f"x{number}": [] for number in range(rules["maxProperties"] + 1)}
    if isinstance(known, dict):
        if rules.get("additionalProperties") is False:
            yield {**known, "unknown": 1}
        yield from ({other: known[other] for other in known if other != name} for name in rules.get("required", []))


def with_value(body: Any, path: Path, value: object) -> Any:
    if not path:
        return value
    first, rest = path[0], path[1:]
    if first == 0:
        items = body if isinstance(body, list) and body else [body]
        return [with_value(items[0], rest, value), *items[1:]]
    known = body if isinstance(body, dict) else {}
    return {**known, first: with_value(known.get(first), rest, value)}


def value_at(body: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, int) and isinstance(body, list):
            body = body[0] if body else None
        elif isinstance(step, str):
            body = body.get(step) if isinstance(body, dict) else None
    return body


TYPES: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    "integer": (int, float),
    "number": (int, float),
    "array": list,
    "object": dict,
}


def worth_trying(rules: dict[str, Any], *, every: int) -> Iterator[Any]:
    """The values of the described type, and some of the others, which all meet the same check. Deep in a report, only
    some, so that the test takes a second.
    """
    described = TYPES.get(rules.get("type", ""), object)
    for number, value in enumerate(JSON_VALUES):
        if number % every == 0 or (every < 9 and isinstance(value, described)):
            yield value


def wrong_bodies(operation: str, request: Request, mallory: Person) -> Iterator[Wrong]:
    rules = schema(operation)
    for path, inner in places(rules) if rules else ():
        values = worth_trying(inner, every=9 if len(path) > 2 else 5)
        for value in [*values, *edges(inner, value_at(request.json, path))]:
            for one in mallory.ids if value == "MALLORY" else [value]:
                body = with_value(request.json, path, one)
                part = ".".join(map(str, path)) or "body"
                breaks = is_broken(rules, body) and (part, value) != ("configId", "")
                yield Wrong(part, replace(request, json=None, body=json.dumps(body).encode()), breaks)
    for name in rules.get("required", []):
        # Of two values of a field, the last one counts, so it is the one that is checked.
        twice = json.dumps(request.json)[:-1] + f', "{name}": [[]]}}'
        yield Wrong(name, replace(request, json=None, body=twice.encode()), breaks=True)


OPERATIONS = [one for one in operations() if described(one)]
OFTEN = 8
ALL = bool(os.environ.get("HOSTILE"))
"""`make proofs` sends all of them. Otherwise each operation gets a fifteenth, and the next operation another one."""


@cache
def operations_with(name: str, place: str) -> int:
    """How many operations have the parameter."""
    found = [(one["name"], one["in"]) for each in OPERATIONS for one in described(each).get("parameters", [])]
    return found.count((name, place))


def wrong_parameters(operation: str, request: Request, names: Names, mallory: Person) -> Iterator[Wrong]:
    for parameter in described(operation).get("parameters", []):
        name, rules = parameter["name"], parameter["schema"]
        texts = [*texts_for(mallory)]
        if operations_with(name, parameter["in"]) > OFTEN:
            # One parser reads it for all of them. Each gets some of the texts, and four have all.
            texts = texts[OPERATIONS.index(operation) % 4 :: 4]
        for text in [*texts, *map(str, edges(rules, None))]:
            value: object = text
            if rules.get("type") in ("integer", "number"):
                value = json.loads(text) if text.lstrip("-").isdecimal() and text.isascii() else [text]
            breaks = is_broken(rules, value) and bool(text) and name not in ONLY_DESCRIBES
            if changed := _PLACES[parameter["in"]](request, operation, name, text, names):
                yield Wrong(name, changed, breaks)


def _in_query(request: Request, operation: str, name: str, text: str, names: Names) -> Request:
    kept = [f"{known}={quote(value, safe='')}" for known, value in parse_qsl(request.query) if known != name]
    return replace(request, query="&".join([*kept, f"{name}={_encoded(text)}"]))


def _in_header(request: Request, operation: str, name: str, text: str, names: Names) -> Request | None:
    is_possible = not set(text) & {"\x00", "\r", "\ud800"}
    return replace(request, headers={**request.headers, name: text}) if is_possible else None


def _in_path(request: Request, operation: str, name: str, text: str, names: Names) -> Request | None:
    _, path = operation.split()
    for known, value in path_parameters(names).items():
        path = path.replace(f"{{{known}}}", _encoded(text) if known == name else value)
    return replace(request, path=path) if text else None


_PLACES: dict[str, Callable[..., Request | None]] = {"query": _in_query, "header": _in_header, "path": _in_path}


def _encoded(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def sender(request: Request, names: Names) -> Sender:
    return Sender(request.token(names), slug=names.team if request.for_team else None)


def whole(operation: str, names: Names) -> Request:
    """The request of the catalogue, with all parts of a report of a run."""
    request = valid(operation, names)
    if operation == "POST /v1/runs":
        more = valid("POST /v1/causes", names).json
        request = replace(request, json={**request.json, "inputs": more["inputs"], "hints": more["hints"]})
    return request


def secrets(names: Names) -> list[str]:
    kept = ("key", "id_token", "session", "other_session", "password", "invitation_token", "login_code")
    return [getattr(names, one.name) for one in fields(names) if one.name in kept or one.name.endswith("_token")]


def is_named(part: str, message: str) -> bool:
    """Whether an error names the part. What is in the place of an object can be refused by the fields that it lacks."""
    around = part.rpartition(".")[0] if part != "body" else ""
    named = "The address that receives the token" if part == "redirect_uri" else part
    return named in message or ("Field required" in message and around in message) or part == "body"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_wrong_part_is_refused_by_its_name_and_changes_nothing(
    operation: str, names: Names, begin_with: BeginWith, mailbox: Mailbox, log: StringIO
) -> None:
    mallory = begin_with(person, "mallory")
    Sender(names.session)("PATCH", f"/v2/teams/{names.team}", json_body={"runInputs": "values"})
    start, before = Stores(region()), stored(but_of=names.key_id)
    request = whole(operation, names)
    wrongs = [*wrong_bodies(operation, request, mallory), *wrong_parameters(operation, request, names, mallory)]
    for wrong in wrongs if ALL else wrongs[OPERATIONS.index(operation) % 15 :: 15]:
        headers = {"content-type": "application/json"} if wrong.request.body and schema(operation) else {}
        reply = replace(wrong.request, headers={**headers, **wrong.request.headers})(sender(request, names))
        assert reply.status < 500, (wrong, reply)
        assert set(reply.headers) & {"x-injected"} == set()
        assert all(re.fullmatch(r"[\x20-\x7e]*", text) for text in (*reply.headers.values(), *reply.cookies))
        assert "evil" not in (urlsplit(reply.headers.get("location", "")).hostname or "")
        assert [one for one in (mallory.user.email, mallory.member_id, mallory.key) if one in str(reply)] == []
        if wrong.breaks:
            assert 400 <= reply.status < 500, (wrong, reply)
            assert is_named(wrong.part, reply.json["message"]), (wrong, reply)
            assert len(reply.body) < 2500
        else:
            # What it has requested can be sent.
            if mailbox.payloads:
                mailbox.deliver()
            start.put_back()
            restart()
    assert stored(but_of=names.key_id) ^ before == set()
    assert [one for one in secrets(names) if one in log.getvalue()] == []


@pytest.mark.parametrize("operation", [*WITH_BODY, *(one for one in OF_AUTH if one.startswith("POST "))])
def test_400_for_a_body_that_is_not_json(operation: str, names: Names) -> None:
    request = valid(operation, names)
    before = stored(but_of=names.key_id)
    for name, body in UNREADABLE.items():
        headers = {**request.headers, "content-type": "application/json"}
        reply = replace(request, json=None, body=body, headers=headers)(sender(request, names))
        assert (reply.status, reply.json["code"].lower()) == (400, "bad_request"), name
    assert stored(but_of=names.key_id) ^ before == set()


@pytest.mark.parametrize("operation", [one for one in OF_AUTH if one.startswith("POST ")])
def test_415_for_another_media_type(operation: str, names: Names) -> None:
    request = valid(operation, names)
    takes_forms = operation.startswith(("POST /api/auth/sign-in/", "POST /api/auth/sign-up/"))
    for media_type in ["text/plain", "multipart/form-data", *([] if takes_forms else [FORM])]:
        headers = {**request.headers, "content-type": media_type}
        reply = replace(request, json=None, body=b"name=ci", headers=headers)(sender(request, names))
        assert reply.refusal == (415, "UNSUPPORTED_MEDIA_TYPE"), media_type


@pytest.mark.usefixtures("aws_in_memory")
@pytest.mark.parametrize("operation", [one for one in WITH_BODY if one in OF_AUTH and one not in SESSION_FIRST])
def test_what_is_wrong_with_a_body_is_reported_before_a_missing_session_and_without_a_call_to_aws(
    operation: str,
) -> None:
    request = valid(operation)
    for name in schema(operation)["properties"]:
        if is_broken(schema(operation), {**request.json, name: [[]]}):
            with counted() as calls:
                reply = replace(request, json={**request.json, name: [[]]})(Sender(None))
            assert (reply.refusal, calls.made) == ((400, "VALIDATION_ERROR"), [])


NESTED: Any = "x"
for _ in range(MAX_METADATA_DEPTH + 1):
    NESTED = [NESTED]

OF_A_KEY: dict[tuple[int, str], list[dict[str, Any]]] = {
    (401, "UNAUTHORIZED_SESSION"): [{"userId": "A" * 32}, {"userId": "email#ada@acme.example"}, {"userId": ""}],
    (400, "SERVER_ONLY_PROPERTY"): [
        {"remaining": 5}, {"refillAmount": 5}, {"refillInterval": 5}, {"rateLimitEnabled": False},
        {"rateLimitTimeWindow": 5}, {"rateLimitMax": 5},
    ],
    (403, "PERMISSION_NOT_HELD"): [
        {"permissions": {"billing": ["refund"]}}, {"permissions": {"artifacts": ["delete"]}},
    ],
    (400, "VALIDATION_ERROR"): [
        {"permissions": {"__proto__": ["read"]}}, {"permissions": {"constructor": []}},
        {"permissions": {"artifacts": ["prototype"]}}, {"permissions": {"a\nb": ["read"]}},
        {"permissions": {"": ["read"]}}, {"permissions": {"artifacts": ["read"] * 101}},
        {"permissions": {f"r{number}": [] for number in range(101)}}, {"name": "\ud800"}, {"name": "\x1b[2J"},
    ],
    (400, "INVALID_METADATA_TYPE"): [
        {"metadata": {"__proto__": {"admin": True}}}, {"metadata": [{"a": {"constructor": {}}}]},
        {"metadata": "x" * (MAX_METADATA_LENGTH - 1)}, {"metadata": NESTED},
    ],
    (400, "INVALID_NAME_LENGTH"): [{"name": "n" * 33}, {"name": ""}],
    (400, "EXPIRES_IN_IS_TOO_SMALL"): [{"expiresIn": 0}],
    (400, "EXPIRES_IN_IS_TOO_LARGE"): [{"expiresIn": 31_536_001}, {"expiresIn": 10**30}],
}  # fmt: skip


@pytest.mark.parametrize("operation", ["POST /api/auth/api-key/create", "POST /api/auth/api-key/update"])
def test_what_a_key_of_a_user_cannot_have_is_refused_by_its_code(operation: str, ada: Person) -> None:
    request, before = valid(operation, ada.names), stored()
    for refusal, bodies in OF_A_KEY.items():
        for body in bodies:
            assert replace(request, json={**request.json, **body})(ada.by_session).refusal == refusal, body
    assert stored() == before


METHODS = {"GET", "PUT", "POST", "PATCH", "DELETE"}
PATHS = sorted({one.split()[1] for one in operations() if "+}" not in one})


def test_no_path_takes_another_method(names: Names) -> None:
    """Each path is tried with one of them, in turn."""
    before = stored(but_of=names.key_id)
    for number, path in enumerate(PATHS):
        others = sorted(METHODS - {one.split()[0] for one in operations() if one.split()[1] == path})
        method = others[number % len(others)]
        reply = Sender(names.session)(method, valid(f"POST {path}", names).path, json_body={"name": "x"})
        # In a path such as `/v1/artifacts/removals`, another endpoint takes the last part for a name.
        assert reply.status in (400, 404, 405), (method, path)
    assert stored(but_of=names.key_id) ^ before == set()
