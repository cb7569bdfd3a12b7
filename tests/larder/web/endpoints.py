"""Endpoints of `/api/auth` that return the request body, behind the guards of all endpoints."""

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools.event_handler import Request, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from larder.web.app import better_auth_api, lambda_handler
from larder.web.bodies.better_auth import auth_body
from larder.web.responses import json_response
from local.http_event import build_http_event
from tests.requests import DOMAIN, Context, Reply

CLIENT = "192.0.2.1"
APP_ORIGIN = f"https://{DOMAIN}"

Headers = Mapping[str, str] | Sequence[tuple[str, str]]


def http_event(
    method: str = "GET",
    path: str = "/api/auth/ok",
    *,
    query: str = "",
    headers: Headers = (),
    body: bytes = b"",
    client: str = CLIENT,
    domain: str = DOMAIN,
) -> dict[str, Any]:
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    return build_http_event(
        method,
        path,
        query,
        pairs,
        body,
        route_key=f"{method} {path}",
        path_parameters={},
        source_ip=client,
        request_id="request-1",
        now=datetime.now(UTC),
        domain_name=domain,
    )


def http_request(**event: Any) -> Request:
    """A request as dependencies receive it."""
    made = APIGatewayProxyEventV2(http_event(**event))
    return Request(made.raw_path, {}, made)


def ask(method: str, path: str, *, pattern: str | None = None, **event: Any) -> Reply:
    """Send a request under `/api/auth` to an endpoint whose path is `pattern`, by default the path of the request."""
    app = better_auth_api()

    def endpoint(request: Request) -> Response[str]:
        # Handlers read the body with this call too.
        return json_response(None if request.method == "GET" else auth_body(request))

    app.route(f"/api/auth{pattern or path}", method=method)(endpoint)
    made = http_event(method, f"/api/auth{path}", **event)
    reply = lambda_handler(app)(made, Context())  # type: ignore[arg-type]
    text = reply.get("body") or ""
    content = base64.b64decode(text) if reply.get("isBase64Encoded") else text.encode()
    reply_headers = {name.lower(): value for name, value in reply.get("headers", {}).items()}
    return Reply(reply["statusCode"], reply_headers, content)


def post(path: str, body: Any = None, *, headers: Headers = (), **event: Any) -> Reply:
    """POST a JSON body as a server does: without cookies and without an origin."""
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    data = json.dumps({} if body is None else body).encode()
    return ask("POST", path, body=data, headers=[("content-type", "application/json"), *pairs], **event)


def outcome(reply: Reply) -> tuple[int, str | None]:
    """The status, and the code of an error."""
    return reply.status, reply.json.get("code") if reply.status >= 400 else None
