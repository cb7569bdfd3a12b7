"""The OpenAPI document is valid, complete and generated from the code."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from aws_lambda_powertools.event_handler import Request
from openapi_spec_validator import validate

from larder.clock import IsoTime, to_iso
from larder.conditions import equals
from larder.errors import ArtifactNotFound, DeleteUserDisabled, KeyNotFound, LarderError, TryAgain
from larder.tables import TEAMS
from larder.teams.models import Role
from larder.web.artifact_responses import UploadOffer
from larder.web.errors import MethodNotAllowed, PathNotFound
from larder.web.parameters import client_info
from larder.web.replies.errors import REPLIES
from larder.web.responses import MAY_SET_COOKIES, JsonResponse, MayHave
from local.template import Function, Route, Template
from tests import documented
from tests.default_template import template
from tools.openapi import Undocumented
from tools.openapi.document import is_operation, make_document
from tools.openapi.failures import raised_by
from tools.openapi.files import differing, document
from tools.openapi.replies import replies_of
from tools.openapi.requests import matching, parameters_of
from tools.openapi.shapes import Components, union

TEMPLATE = template()
OPERATIONS = {
    (method.upper(), path): operation
    for path, methods in documented.document()["paths"].items()
    for method, operation in methods.items()
}


def test_it_is_valid() -> None:
    validate(document())


def test_its_version_is_that_of_the_release() -> None:
    assert document()["info"]["version"] == version("larder")


def test_the_files_match_the_handlers() -> None:
    assert differing() == [], "make generate"


def test_every_route_is_in_it_and_nothing_else() -> None:
    operations = filter(is_operation, TEMPLATE.routes)
    assert OPERATIONS.keys() == {(route.method, route.path) for route in operations}
    others = {route.path for route in TEMPLATE.routes if not is_operation(route)}
    assert others == {"/api/auth/{proxy+}", "/console/{proxy+}", "/docs/{proxy+}", "$default"}


def test_operations_have_unique_names_and_a_summary() -> None:
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    assert all(operation["summary"] for operation in OPERATIONS.values())


def test_a_route_without_a_handler_is_an_error() -> None:
    function = replace(TEMPLATE.functions[0], handler="accounts.get_ok.handler")
    added = Route("PATCH", "/v9/unheard-of", function)
    with pytest.raises(Undocumented, match="PATCH /v9/unheard-of: no function"):
        make_document(Template(routes=[added]))


@pytest.mark.parametrize("error", ["invalid_body", "not_a_team_member", "try_again"])
def test_codes_are_documented_with_the_operations_that_return_them(error: str) -> None:
    documented = str(OPERATIONS["PUT", "/v8/artifacts/{hash}"]["responses"])
    assert (f"'{error}'" in documented) is (error != "invalid_body")


def test_every_code_is_documented() -> None:
    documented = str(OPERATIONS)
    without_body = {DeleteUserDisabled}
    of_no_operation = {PathNotFound, MethodNotAllowed}
    for error, reply in REPLIES.items():
        if error not in without_body | of_no_operation:
            code = reply.code
            assert f"'{code}'" in documented or f"'{code.upper()}'" in documented, error


def test_security_follows_from_the_signatures() -> None:
    def schemes(method: str, path: str) -> list[list[str]]:
        return [list(one) for one in OPERATIONS[method, path]["security"]]

    assert schemes("GET", "/v8/artifacts/{hash}") == [["bearer"]]
    assert schemes("OPTIONS", "/v8/artifacts/{hash}") == [["bearer"], []]
    in_person = [["sessionCookie"], ["sessionToken"]]
    assert schemes("POST", "/api/auth/change-email") == in_person
    assert schemes("GET", "/api/auth/api-key/list") == [*in_person, ["apiKey"]]
    assert schemes("POST", "/api/auth/sign-in/email") == []
    assert schemes("POST", "/api/auth/sign-out") == [*in_person, []]


def test_examples_come_from_the_sample_events() -> None:
    body = OPERATIONS["POST", "/v8/artifacts"]["requestBody"]["content"]["application/json"]
    assert "hashes" in body["example"]


# How it is generated from the code ---------------------------------------------------------------------


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


def _reads() -> object:
    return list(TEAMS.query(equals(pk="team")))


def _asks(error: LarderError) -> bool:
    return isinstance(error, KeyNotFound)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (_finds, {ArtifactNotFound}),
        (_finds_or_waits, {TryAgain}),
        (_passes_on, {ArtifactNotFound}),
        (_reads, {TryAgain}),
        (_asks, set()),
    ],
)
def test_errors_are_followed_through_calls(
    function: Callable[..., Any], expected: set[type[LarderError]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.openapi.failures._OURS", ("larder.", "tests."))
    assert raised_by(function) == expected


class PersonJson(TypedDict):
    """Someone, and
    when they came.
    """

    name: str
    age: NotRequired[int | None]
    role: Role
    kind: Literal["person"]
    tags: dict[str, list[str]]
    came: IsoTime
    friend: "PersonJson | None"


def test_a_shape_is_read_from_its_types() -> None:
    components = Components()
    person = {"$ref": "#/components/schemas/Person"}
    assert components.schema_of(PersonJson) == person
    came = components.schemas["Person"]["properties"].pop("came")
    assert came["format"] == "date-time"
    assert components.schemas["Person"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": ["integer", "null"]},
            "role": {"type": "string", "enum": list(Role)},
            "kind": {"type": "string", "const": "person"},
            "tags": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
            "friend": {"anyOf": [person, {"type": "null"}]},
        },
        "required": ["name", "role", "kind", "tags", "came", "friend"],
        "description": "Someone, and when they came.",
    }


@pytest.mark.parametrize(
    ("moment", "is_one"),
    [
        (to_iso(datetime(2026, 11, 21, tzinfo=UTC)), True),
        ("2026-11-21T08:35:00Z", False),
        ("2026-11-21T08:35:00.123456Z", False),
        ("2026-11-21T08:35:00.000+00:00", False),
    ],
)
def test_times_have_three_fractional_digits(moment: str, is_one: bool) -> None:
    assert bool(re.search(Components().schema_of(IsoTime)["pattern"], moment)) is is_one


def test_a_type_without_a_json_form_is_an_error() -> None:
    with pytest.raises(Undocumented, match=r"no schema for .*Function"):
        Components().schema_of(Function)


def test_two_shapes_with_the_same_name_are_an_error() -> None:
    components = Components()
    components.schema_of(PersonJson)
    with pytest.raises(Undocumented, match="two shapes are named Person"):
        components.schema_of(TypedDict("PersonJson", {"id": str}))  # type: ignore[operator]


def _answers_a_dict() -> dict[str, str]:
    raise NotImplementedError


def _answers_or_sends_on() -> Annotated[JsonResponse[list[str]], MayHave("Location")] | UploadOffer:
    raise NotImplementedError


def _answers_twice() -> Annotated[JsonResponse[str], MAY_SET_COOKIES] | JsonResponse[int]:
    raise NotImplementedError


def test_replies_are_read_from_the_return_type() -> None:
    replies = replies_of(_answers_or_sends_on, Components())
    strings = {"type": "array", "items": {"type": "string"}}
    assert replies["200"]["content"] == {"application/json": {"schema": strings}}
    assert {status: _required(reply) for status, reply in replies.items()} == {
        "200": {"Location": False},
        "204": {"Location": True},
    }


def test_replies_with_one_status_are_joined() -> None:
    (reply,) = replies_of(_answers_twice, Components()).values()
    assert _required(reply) == {"Set-Cookie": False}
    either = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    assert reply["content"] == {"application/json": {"schema": either}}


def _required(reply: dict[str, Any]) -> dict[str, bool]:
    return {name: header["required"] for name, header in reply["headers"].items()}


def test_a_return_type_that_is_not_a_reply_is_an_error() -> None:
    with pytest.raises(Undocumented, match="is not a reply"):
        replies_of(_answers_a_dict, Components())


def _reads_more(request: Request) -> str:
    return request.headers.get("x-unheard-of", "")


def test_an_undeclared_header_is_an_error() -> None:
    with pytest.raises(Undocumented, match=r"reads .*x-unheard-of"):
        list(parameters_of(_reads_more))
    assert {one["name"] for one in parameters_of(client_info)} == {
        "x-artifact-client-ci",
        "x-artifact-client-interactive",
    }


def test_schemas_are_joined() -> None:
    text, null = {"type": "string"}, {"type": "null"}
    assert union([text, null, text]) == {"type": ["string", "null"]}
    assert union([text, {}]) == {}
    assert union([{"type": "string", "const": "a"}, null]) == {"anyOf": [{"type": "string", "const": "a"}, null]}


def test_a_pattern_matches_the_complete_text() -> None:
    assert matching(r"[a-z]+|(?P<n>\d)") == {"type": "string", "pattern": r"^(?:[a-z]+|(?:\d))$"}
