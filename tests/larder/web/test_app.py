"""The errors of each kind of app for a path with characters that its route does not allow."""

import json
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver

from larder.errors import TeamNotFound
from larder.web.app import better_auth_api, cache_api, lambda_handler, vercel_api
from larder.web.responses import JsonResponse, json_response
from tests.larder.web.endpoints import http_event
from tests.requests import Context

pytestmark = pytest.mark.usefixtures("environment")


def ask(app: APIGatewayHttpResolver, path: str) -> tuple[int, Any, dict[str, str]]:
    """Status, body and headers of the reply to a GET of an endpoint that takes `/v1/things/<name>`."""

    def endpoint(name: str) -> JsonResponse[str]:
        return json_response(name)

    app.get("/v1/things/<name>")(endpoint)
    reply = lambda_handler(app)(http_event(path=path), Context())  # type: ignore[arg-type]
    body = json.loads(reply["body"]) if reply.get("body") else None
    return reply["statusCode"], body, reply["headers"]


@pytest.mark.parametrize("app", [vercel_api(), cache_api()])
def test_a_path_that_the_route_allows_reaches_the_handler(app: APIGatewayHttpResolver) -> None:
    assert ask(app, "/v1/things/one")[:2] == (200, "one")


def test_a_cache_api_names_the_hash_and_adds_its_headers() -> None:
    status, body, headers = ask(cache_api({"X-Added": "yes"}), '/v1/things/"')
    assert (status, body["code"], headers["X-Added"]) == (400, "bad_request", "yes")
    assert "hash" in body["message"]


def test_a_vercel_api_says_that_there_is_no_such_path_or_thing() -> None:
    status, body, _ = ask(vercel_api(), '/v1/things/"')
    assert (status, body["code"], body["error"]["code"]) == (404, "not_found", "not_found")
    status, body, _ = ask(vercel_api(no_route=TeamNotFound), '/v1/things/"')
    assert (status, body["code"]) == (404, "team_not_found")


def test_a_better_auth_api_has_no_body() -> None:
    assert ask(better_auth_api(guarded=False), '/v1/things/"')[:2] == (404, None)
