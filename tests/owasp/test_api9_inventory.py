"""API9: Improper inventory management. What there is, is documented; what is not documented, is not there."""

from __future__ import annotations

import re
from pathlib import Path

from local.template import load_template
from tests.owasp.conftest import operations
from tests.permissions import grants
from tools.openapi.document import is_operation
from tools.openapi.files import differing

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = load_template(environ={})


def test_every_route_is_documented_and_every_documented_one_is_there() -> None:
    asked = filter(is_operation, TEMPLATE.routes)
    assert operations().keys() == {(route.method, route.path) for route in asked}
    assert differing() == []


def test_whatever_else_is_asked_reaches_what_may_read_nothing() -> None:
    # What browsers ask before they send is answered alike for all paths.
    greedy = [(one.method, one.path) for one in TEMPLATE.routes if "+" in one.path]
    assert greedy == [("OPTIONS", "/api/auth/{proxy+}")]
    assert [one.path for one in TEMPLATE.routes if one.method == "ANY"] == ["$default"]
    (default,) = (one for one in TEMPLATE.routes if one.path == "$default")
    assert default.function.logical_id == "AnswerUnknown"
    assert grants("AnswerUnknown") == set()


def test_every_handler_has_a_route_or_another_reason() -> None:
    """A module that nothing leads to would be deployed and forgotten."""
    modules = {
        f"{path.parent.name}.{path.stem}"
        for path in (ROOT / "functions").glob("*/*.py")
        if path.stem != "__init__"
    }
    assert modules == {function.handler.rpartition(".")[0] for function in TEMPLATE.functions}


def test_versions_of_a_path_that_are_kept_for_clients_are_known() -> None:
    versions: dict[str, set[str]] = {}
    for method, path in operations():
        if match := re.fullmatch(r"/(v\d+)(/.*)", path):
            versions.setdefault(f"{method} {match[2]}", set()).add(match[1])
    assert {path for path, known in versions.items() if len(known) > 1} == {
        "GET /artifacts/{hash}",  # an artifact, and what is known of it
        "POST /teams/{idOrSlug}/members",  # the hosted service has both
    }
