"""Every operation of the OpenAPI document over HTTP, with requests that schemathesis generates from it. Half of them
follow the document, and half of them do not.

Each reply must have a status, content type, headers and body of the document. None is a server error. Larder refuses
data that the document forbids, and requests without the required credentials. No reply has data of another user.
API_EXAMPLES is the number of requests to each operation. FUZZ_SEED selects others.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Ok
from schemathesis.generation.case import Case
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks

from tests.e2e import cloud as local_clouds
from tests.layer_on import LayerOn
from tests.proofs.api_scene import MARK, ORIGIN, Scene, new_stranger

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("API_EXAMPLES") or 3)
SEED = int(os.environ.get("FUZZ_SEED") or 0)

OPTIONS = {
    # All requests have the same address, so the rate limits would refuse them.
    "LARDER_HTTP_RATE_LIMIT_ENABLED": "false",
    "LARDER_MAX_TEAMS_PER_USER": "0",
    "LARDER_MAX_OPEN_INVITATIONS": "500",
    "LARDER_SCRYPT_COST": "1024",
    "LARDER_SESSION_FOR_API_KEYS": "true",
}

DOCUMENT = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
# The scene provides the credentials.
SCHEMA.config.generation.with_security_parameters = False
OPERATIONS = {
    operation.definition.raw["operationId"]: operation
    for operation in (result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok))
}
load_all_checks()
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
AUTH_PROBES = 3
"""The number of successful requests of an operation that are sent again without credentials and with wrong ones."""

LOCATIONS = {
    "path_parameters": ParameterLocation.PATH,
    "query": ParameterLocation.QUERY,
    "headers": ParameterLocation.HEADER,
    "body": ParameterLocation.BODY,
}

text = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40).map(
    str.strip
)
other_headers = st.fixed_dictionaries(
    {"x-request": st.integers(0, 2**40).map(str)},
    optional={
        "x-forwarded-for": st.sampled_from(["127.0.0.1", "::1", "' OR 1=1", "a, b, c"]) | text,
        "x-forwarded-host": st.just("evil.example"),
        "x-http-method-override": st.sampled_from(["DELETE", "PUT"]),
        "accept": st.sampled_from(["text/html", "application/xml", "*/*;q=0"]),
        "accept-language": text,
    },
)
"""Headers that are not in the document and must change nothing. The number makes each request different."""

PEOPLE = [*["key", "session"] * 2, "cookie", "x-api-key", "reader", "viewer", "unknown", "nobody"]


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[local_clouds.LocalCloud]:
    folder = tmp_path_factory.mktemp("documented")
    with local_clouds.running(request.config.rootpath, folder / "data", **OPTIONS) as running:
        yield running


@pytest.mark.parametrize("operation_id", OPERATIONS)
def test_every_reply_is_as_documented(
    operation_id: str,
    server: local_clouds.LocalCloud,
    layer_on: LayerOn,
    record_property: Callable[[str, object], None],
) -> None:
    layer_on(server)
    operation = OPERATIONS[operation_id]
    scene, statuses = Scene(new_stranger()), Counter[int]()
    session, probes = requests.Session(), Counter[str]()
    session.trust_env = False
    found: dict[str, str] = {}

    def ask(case: Case, who: str, more: dict[str, str], data: st.DataObject) -> None:
        scene.renewed(operation_id)
        _fill_in(case, scene, operation_id, data)
        own = {"Origin": ORIGIN} if operation_id == "grant_login" else {}
        headers = {
            name: value.replace(ORIGIN, server.url) for name, value in {**more, **own, **scene.credentials(who)}.items()
        }
        # If both have a header, the one of the document counts.
        given = {name.lower() for name in case.headers or {}}
        headers = {name: value for name, value in headers.items() if name.lower() not in given}
        response = case.call(base_url=server.url, session=session, headers=headers)
        statuses[response.status_code] += 1
        # A preflight for another method than PUT is accepted without a check (docs/decisions/clients.md).
        is_unread = operation_id == "preflight" and response.status_code == 204
        asked = [check for check in CHECKS if check is not checks.negative_data_rejection or not is_unread]
        if response.status_code < 300 and probes["auth"] < AUTH_PROBES and who != "cookie":
            probes["auth"] += 1
            asked.append(checks.ignored_auth)
        try:
            case.validate_response(response, checks=asked, headers=headers, transport_kwargs={"session": session})
            assert MARK not in response.text or MARK.lower() in str(response.request.url)
        except FailureGroup as group:
            for failure in group.exceptions:
                found.setdefault(_named(failure), _example(case, headers, response, failure))
        except Failure as failure:
            found.setdefault(_named(failure), _example(case, headers, response, failure))

    for mode, examples in _shares(operation):
        _attack(operation, mode, examples, ask)
    line = f"{operation.label:<58} {sum(statuses.values()):>6}  "
    line += "  ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    record_property("report_line", f"{line}  failures: {len(found)}")
    assert not found, "\n\n".join(found.values())
    assert sum(statuses.values()) >= EXAMPLES


def _shares(operation: APIOperation[Any, Any, Any, Any]) -> list[tuple[GenerationMode, int]]:
    """Half of the requests do not follow the document, if it has any rule to break."""
    definition = operation.definition.raw
    can_break = any(_has_rules(parameter) for parameter in definition.get("parameters", []))
    if not can_break and not operation.body:
        return [(GenerationMode.POSITIVE, EXAMPLES)]
    return [(GenerationMode.POSITIVE, EXAMPLES - EXAMPLES // 2), (GenerationMode.NEGATIVE, EXAMPLES // 2)]


def _has_rules(definition: dict[str, Any]) -> bool:
    schema = definition["schema"]
    is_missed = definition.get("required", False) and definition["in"] != "path"
    is_free = set(schema) <= {"type", "minLength"} and schema["type"] == "string"
    return is_missed or not is_free


def _attack(operation: Any, mode: GenerationMode, examples: int, ask: Any) -> None:
    @seed(SEED)
    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(operation.as_strategy(generation_mode=mode), st.sampled_from(PEOPLE), other_headers, st.data())
    def attack(case: Case, who: str, more: dict[str, str], data: st.DataObject) -> None:
        ask(case, who, more, data)

    attack()


def _fill_in(case: Case, scene: Scene, operation_id: str, data: st.DataObject) -> None:
    """Replace generated values by existing ones, except those that are wrong on purpose."""
    for name, location in LOCATIONS.items():
        container = getattr(case, name)
        if not isinstance(container, dict) and not hasattr(container, "keys"):
            continue
        if case.meta is not None and case.meta.is_negative_at(location):
            continue
        known = _properties(case, location)
        for key in known:
            values = scene.values(key, operation_id)
            # Generated values match nothing that exists, so nine in ten are replaced.
            if values and data.draw(st.integers(0, 9)) < (7 if key in container else 3):
                container[key] = data.draw(st.sampled_from(values))()


def _properties(case: Case, location: ParameterLocation) -> list[str]:
    """The names that the document has at a place of the request, or in a JSON body that is an object."""
    definition = case.operation.definition.raw
    if location is not ParameterLocation.BODY:
        place = {"PATH": "path", "QUERY": "query", "HEADER": "header"}[location.name]
        return [parameter["name"] for parameter in definition.get("parameters", []) if parameter["in"] == place]
    content = definition["requestBody"]["content"].get(case.media_type, {})
    schema = content.get("schema", {})
    for one in [schema, *schema.get("anyOf", [])]:
        if "properties" in one:
            return list(one["properties"])
    return []


def _named(failure: BaseException) -> str:
    return f"{type(failure).__name__} {str(failure)[:60]}"


def _example(case: Case, headers: dict[str, str], response: Any, failure: BaseException) -> str:
    return (
        f"{case.operation.label}: {type(failure).__name__}: {failure}\n"
        f"  {response.status_code} {response.text[:400]}\n  {case.as_curl_command(headers=headers)[:1500]}"
    )
