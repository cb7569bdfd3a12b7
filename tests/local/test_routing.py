"""Routing works as in an HTTP API of API Gateway."""

import pytest

from local.gateway.routing import Routes
from local.template import DEFAULT_PATH
from tests.default_template import template

ROUTES = Routes(template().routes)


@pytest.mark.parametrize(
    ("method", "path", "key", "parameters"),
    [
        ("GET", "/v8/artifacts/status", "GET /v8/artifacts/status", {}),
        ("GET", "/v8/artifacts/abc", "GET /v8/artifacts/{hash}", {"hash": "abc"}),
        ("GET", "/api/auth/ok", "GET /api/auth/ok", {}),
        ("OPTIONS", "/api/auth/ok", "OPTIONS /api/auth/{proxy+}", {"proxy": "ok"}),
        ("OPTIONS", "/api/auth/sign-in/email", "OPTIONS /api/auth/{proxy+}", {"proxy": "sign-in/email"}),
        ("GET", "/console/t/acme/keys", "GET /console/{proxy+}", {"proxy": "t/acme/keys"}),
    ],
)
def test_the_most_specific_route_wins_and_a_greedy_parameter_takes_slashes(
    method: str, path: str, key: str, parameters: dict[str, str]
) -> None:
    found = ROUTES.find(method, path)
    assert found is not None
    assert found[1:] == (key, parameters)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/auth/sign-in/email"), ("OPTIONS", "/api/auth/"), ("OPTIONS", "/v8/artifacts/a/b")],
)
def test_unmatched_requests_go_to_the_default_route(method: str, path: str) -> None:
    found = ROUTES.find(method, path)
    assert found is not None
    assert (found[0].logical_id, *found[1:]) == ("AnswerUnknown", "$default", {})


def test_without_a_default_route_unmatched_requests_have_no_route() -> None:
    others = [route for route in template().routes if route.path != DEFAULT_PATH]
    assert Routes(others).find("GET", "/nowhere") is None
