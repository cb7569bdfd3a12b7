"""API9: Improper inventory management. The documented operations are exactly the existing ones."""

from __future__ import annotations

import re

from tests.default_template import template
from tests.owasp.conftest import operations
from tests.permissions import grants

TEMPLATE = template()


def test_unknown_routes_reach_a_function_without_read_permissions() -> None:
    # CORS preflights get the same reply on all paths, and the console and the documentation read no table.
    greedy = [(route.method, route.path) for route in TEMPLATE.routes if "+" in route.path]
    assert greedy == [("OPTIONS", "/api/auth/{proxy+}"), ("GET", "/console/{proxy+}"), ("GET", "/docs/{proxy+}")]
    assert [route.path for route in TEMPLATE.routes if route.method == "ANY"] == ["$default"]
    (default,) = (route for route in TEMPLATE.routes if route.path == "$default")
    assert default.function.logical_id == "AnswerUnknown"
    assert grants("AnswerUnknown") == set()


def test_old_paths_kept_for_clients_are_listed() -> None:
    versions: dict[str, set[str]] = {}
    for method, path in operations():
        if match := re.fullmatch(r"/(v\d+)(/.*)", path):
            versions.setdefault(f"{method} {match[2]}", set()).add(match[1])
    assert {path for path, known in versions.items() if len(known) > 1} == {
        "GET /artifacts/{hash}",  # the artifact, and its properties
        "POST /teams/{idOrSlug}/members",  # the hosted service has both versions
    }
