"""The OpenAPI document is valid, complete, and what the code says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import Request
from openapi_spec_validator import validate

from larder import errors
from larder.errors import ArtifactNotFound, KeyNotFound, LarderError, TryAgain
from larder.web.parameters import client_info
from local.template import Function, Route, Template, load_template
from tools.openapi import Undocumented
from tools.openapi.document import is_operation, make_document
from tools.openapi.failures import raised_by
from tools.openapi.files import differing, document
from tools.openapi.requests import matching, parameters_of
from tools.openapi.shapes import Components, Interpreter, schema_of_type, union

TEMPLATE = load_template(environ={})
OPERATIONS = {
    (method.upper(), path): operation
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
}


def test_it_is_valid() -> None:
    validate(document())


def test_its_version_is_that_of_the_release() -> None:
    assert document()["info"]["version"] == version("larder")


def test_the_files_are_what_the_handlers_say() -> None:
    assert differing() == [], "make openapi"


def test_every_route_is_in_it_and_nothing_else() -> None:
    operations = filter(is_operation, TEMPLATE.routes)
    assert OPERATIONS.keys() == {(route.method, route.path) for route in operations}
    others = {route.path for route in TEMPLATE.routes if not is_operation(route)}
    assert others == {"/api/auth/{proxy+}", "$default"}


def test_operations_have_names_of_their_own_and_say_what_they_do() -> None:
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    assert all(operation["summary"] for operation in OPERATIONS.values())


def test_a_route_that_the_code_does_not_explain_is_named() -> None:
    function = replace(TEMPLATE.functions[0], handler="accounts.get_ok.handler")
    added = Route("PATCH", "/v9/unheard-of", function)
    with pytest.raises(Undocumented, match="PATCH /v9/unheard-of: no function"):
        make_document(Template(routes=[added]))


@pytest.mark.parametrize("error", ["invalid_body", "not_a_team_member", "try_again"])
def test_codes_stand_with_the_operations_that_can_have_them(error: str) -> None:
    told = str(OPERATIONS["PUT", "/v8/artifacts/{hash}"]["responses"])
    assert (f"'{error}'" in told) is (error != "invalid_body")


def test_every_code_is_told_somewhere() -> None:
    told = str(OPERATIONS)
    by_subclass = {errors.Throttled, errors.DeleteUserDisabled}
    of_no_operation = {errors.PathNotFound, errors.MethodNotAllowed}
    for error in _subclasses(LarderError):
        if error not in by_subclass | of_no_operation and error.__dict__.get("code"):
            assert f"'{error.code}'" in told or f"'{error.code.upper()}'" in told, error


def _subclasses(error: type[LarderError]) -> list[type[LarderError]]:
    return [one for direct in error.__subclasses__() for one in [direct, *_subclasses(direct)]]


def test_who_may_call_is_the_signatures() -> None:
    def schemes(method: str, path: str) -> list[list[str]]:
        return [list(one) for one in OPERATIONS[method, path]["security"]]

    assert schemes("GET", "/v8/artifacts/{hash}") == [["bearer"]]
    assert schemes("OPTIONS", "/v8/artifacts/{hash}") == [["bearer"], []]
    in_person = [["sessionCookie"], ["sessionToken"]]
    assert schemes("POST", "/api/auth/change-email") == in_person
    assert schemes("GET", "/api/auth/api-key/list") == [*in_person, ["apiKey"]]
    assert schemes("POST", "/api/auth/sign-in/email") == []
    assert schemes("POST", "/api/auth/sign-out") == [*in_person, []]


def test_examples_are_those_of_the_sample_events() -> None:
    body = OPERATIONS["POST", "/v8/artifacts"]["requestBody"]["content"]["application/json"]
    assert "hashes" in body["example"]


# How it is read out of the code ---------------------------------------------------------------------


def _finds() -> None:
    raise ArtifactNotFound


def _finds_or_waits() -> None:
    try:
        _finds()
    except ArtifactNotFound:
        raise TryAgain from None


def _passes_on() -> None:
    try:
        _finds()
    except LarderError:
        raise


def _asks(error: LarderError) -> bool:
    return isinstance(error, KeyNotFound)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (_finds, {ArtifactNotFound}),
        (_finds_or_waits, {TryAgain}),
        (_passes_on, {ArtifactNotFound}),
        (_asks, set()),
    ],
)
def test_errors_are_followed_through_calls(
    function: Callable[..., Any],
    expected: set[type[LarderError]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tools.openapi.failures._OURS", ("larder.", "tests."))
    assert raised_by(function) == expected


def _card(name: str, age: int | None, tags: list[str]) -> dict[str, Any]:
    card = {"name": name, "age": age, "tags": [tag for tag in tags], "known": True}  # noqa: C416
    if age is not None:
        card["next"] = age
    return card


def test_a_dict_is_read_from_its_literal_and_the_types_of_what_is_in_it() -> None:
    assert Interpreter(_card, Components()).returned() == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": ["integer", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "known": {"type": "boolean", "const": True},
            "next": {"type": "integer"},
        },
        "required": ["name", "age", "tags", "known"],
    }


def _riddle(name: str) -> dict[str, Any]:
    return {"name": name.join("-")}


def test_what_cannot_be_read_is_told_and_not_guessed() -> None:
    with pytest.raises(Undocumented, match=r"_riddle: name\.join"):
        Interpreter(_riddle, Components()).returned()
    with pytest.raises(Undocumented, match="no schema for the type"):
        schema_of_type(Function)


def _reads_more(request: Request) -> str:
    return request.headers.get("x-unheard-of", "")


def test_a_header_that_no_declaration_tells_of_is_named() -> None:
    with pytest.raises(Undocumented, match=r"reads .*x-unheard-of"):
        parameters_of(_reads_more)
    assert {one.name for one in parameters_of(client_info)} == {
        "x-artifact-client-ci",
        "x-artifact-client-interactive",
    }


def test_schemas_join() -> None:
    text, null = {"type": "string"}, {"type": "null"}
    assert union([text, null, text]) == {"type": ["string", "null"]}
    assert union([text, {}]) == {}
    assert union([{"type": "string", "const": "a"}, null]) == {
        "anyOf": [{"type": "string", "const": "a"}, null]
    }


def test_a_pattern_holds_for_the_whole_text() -> None:
    assert matching(r"[a-z]+|(?P<n>\d)") == {"type": "string", "pattern": r"^(?:[a-z]+|(?:\d))$"}
