"""The OpenAPI document: every route of the template, described from its handler."""

from __future__ import annotations

import base64
import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from aws_lambda_powertools.event_handler.depends import Depends

from larder.errors import DeleteUserDisabled, LarderError
from larder.web import parameters
from larder.web.errors import (
    InternalError,
    InvalidRequest,
    NetworkNotAllowed,
    NotThroughProxy,
    PathNotFound,
)
from larder.web.guards import BODYLESS, check_rate, guard_request
from larder.web.origins import check_callbacks
from larder.web.principals import session as session_principals
from larder.web.principals import transfers
from larder.web.replies.errors import (
    REPLIES,
    AuthErrorJson,
    ErrorJson,
    OAuthErrorJson,
    auth_code,
    oauth_code,
)
from local.template import DEFAULT_PATH, Route, Template
from tools.openapi import Undocumented
from tools.openapi.failures import Errors, raised_by
from tools.openapi.replies import headers, replies_of
from tools.openapi.requests import PATHS, body_of, declares, named_in, parameters_of
from tools.openapi.shapes import Components, Schema, union

ROOT = Path(__file__).resolve().parents[2]

TAGS = {
    "artifacts": "The cache, and management of what it stores.",
    "usage": "Cache hits and misses, and storage.",
    "teams": "Teams, members and invitations, named as in the hosted service's REST API.",
    "accounts": "Users: sign-up, sign-in, sessions, passwords, email addresses.",
    "api_keys": "API keys, for the Better Auth client.",
    "pages": "Web pages, `turbo login`, and this document.",
}

_ABOUT = """\
A self-hosted remote build cache. It serves Turborepo, the Better Auth client, and any other client.

This document is generated from the code. It lists every reply, and the error codes of each 4xx and 5xx. \
docs/errors.md says what to do about each code.

A request to the cache applies to the team that `teamId` or `slug` names. Without both, it applies to the team that \
the key is bound to, and for an unbound key to the user.

OPTIONS on any path of `/api/auth` answers CORS preflights of trusted origins.

Every reply has `Cache-Control: no-store` and `X-Content-Type-Options: nosniff`, and over https \
`Strict-Transport-Security`. Only this document and the list of providers can be cached, for some minutes.

A wrong method for a path in this document gets 405 `method_not_allowed` with `Allow`. An unknown path gets 404 \
`not_found`: without a body under `/api/auth`, and as a page in a browser.
"""

_SCHEMES: dict[str, Schema] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (64 characters or more) or the token of a session (32 characters).",
    },
    "sessionToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of a session, from the reply to a sign-in.",
    },
    "sessionCookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Secure-better-auth.session_token",
        "description": "The signed cookie that a sign-in sets. Over plain HTTP, as in the local cloud, "
        "its name has no `__Secure-`. Requests that change data need the `Origin` of a trusted page.",
    },
    "apiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "An API key in place of a session, if the option `SessionForApiKeys` allows it.",
    },
}

_BEARER = [{"bearer": list[str]()}]
_IN_PERSON = [{"sessionCookie": list[str]()}, {"sessionToken": list[str]()}]
_BY_KEY = [*_IN_PERSON, {"apiKey": list[str]()}]
_NOBODY: Schema = {}

# The credentials that each dependency accepts, strictest first: the first one found decides.
_PRINCIPALS: dict[Callable[..., Any], list[Schema]] = {
    session_principals.signed_in_in_person: _IN_PERSON,
    session_principals.operator: _IN_PERSON,
    session_principals.signed_in: _BY_KEY,
    session_principals.key_maker: _BY_KEY,
    session_principals.maybe_signed_in_in_person: [*_IN_PERSON, _NOBODY],
    session_principals.maybe_signed_in: [*_BY_KEY, _NOBODY],
    transfers.preflight_writer: [*_BEARER, _NOBODY],
    parameters.bearer_token: _BEARER,
}

_GATEWAYS: dict[str, tuple[str, str]] = {
    "413": (
        "TooLarge",
        "The body is larger than about 4.5 MB. Upload it directly to storage: send OPTIONS first.",
    ),
    "429": ("TooMany", "More requests per second than the stack's throttling allows."),
    "431": ("HeadersTooLarge", "The headers are larger than 10,240 bytes."),
    "503": ("Unavailable", "The function did not reply within 30 seconds."),
}

_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_BEFORE_ALL = frozenset[type[LarderError]]({NetworkNotAllowed, NotThroughProxy})
"""The errors of larder.web.gateway."""


def make_document(template: Template) -> Schema:
    """The whole document. Raises Undocumented, which names the route."""
    components = Components()
    components.schemas["GatewayError"] = _GATEWAY_ERROR
    paths: dict[str, dict[str, Schema]] = {}
    for route in sorted(filter(is_operation, template.routes), key=lambda route: route.path):
        try:
            operation = _Operation(route, components).described()
        except Undocumented as error:
            raise Undocumented(f"{route.method} {route.path}: {error}") from None
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Larder",
            "version": _version(),
            "description": _ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/", "description": "The deployment that serves this document."}],
        "tags": [{"name": name, "description": description} for name, description in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.schemas.items())),
            "responses": {
                name: _of_the_gateway(description) for name, description in _GATEWAYS.values()
            },
            "securitySchemes": _SCHEMES,
        },
    }


def is_operation(route: Route) -> bool:
    """Whether a route has one path. Excludes greedy routes, of CORS preflights and the console, and `$default`."""
    return not route.path.endswith("+}") and route.path != DEFAULT_PATH


def _version() -> str:
    project = tomllib.loads((ROOT / "layers" / "larder" / "pyproject.toml").read_text())
    return str(project["project"]["version"])


def _of_the_gateway(description: str) -> Schema:
    return {
        "description": description,
        "content": {"application/json": {"schema": _GATEWAY_REFERENCE}},
    }


_GATEWAY_REFERENCE: Schema = {"$ref": "#/components/schemas/GatewayError"}
_GATEWAY_ERROR: Schema = {
    "type": "object",
    "description": "An error of the API gateway in front of the functions.",
    "properties": {"message": {"type": "string"}},
    "required": ["message"],
}


@dataclass
class _Operation:
    """One route, and the function that handles it."""

    route: Route
    components: Components

    @property
    def handler(self) -> Callable[..., Any]:
        """The function of the module that the route leads to."""
        if self._is_page:
            return self._named(self.module.__name__.rpartition(".")[2])
        pattern = _unnamed(self.route.path)
        app = self.module.app
        for route in app._static_routes + app._dynamic_routes:
            methods = [route.method] if isinstance(route.method, str) else route.method
            if self.route.method in methods and _unnamed(route.path) == pattern:
                function: Callable[..., Any] = route.func
                return function
        raise Undocumented("no function of the module handles this route")

    @cached_property
    def module(self) -> ModuleType:
        return importlib.import_module(self.route.function.handler.rpartition(".")[0])

    def _named(self, name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self.module, name)
        return function

    @property
    def _is_page(self) -> bool:
        return not hasattr(self.module, "app")

    @property
    def _is_auth(self) -> bool:
        return not self._is_page and guard_request in self.module.app._router_middlewares

    @property
    def _is_oauth(self) -> bool:
        return hasattr(self.module, "oauth_api")

    def described(self) -> Schema:
        summary, _, more = (inspect.getdoc(self.handler) or "").partition("\n")
        operation: Schema = {
            "operationId": self._operation_id,
            "tags": [self.module.__name__.partition(".")[0]],
            "summary": summary,
        }
        if more.strip():
            operation["description"] = " ".join(more.split())
        if self.parameters:
            operation["parameters"] = self.parameters
        if body := self._body():
            operation["requestBody"] = body
        operation["security"] = self._security()
        operation["responses"] = self._responses()
        return operation

    @property
    def _operation_id(self) -> str:
        """The name of the handler, with a suffix if it handles several routes."""
        name = self.handler.__name__
        version = re.match(r"/(v\d+)/", self.route.path)
        twin = {"invite_members": version and version[1], "join_team": None}.get(name)
        if name == "preflight_others":
            return "preflight_" + (
                self.route.path.removeprefix("/v8/artifacts/")
                .strip("/")
                .replace("v8/artifacts", "query")
            )
        if name == "join_team" and "{" in self.route.path:
            twin = "of_team"
        return f"{name}_{twin}" if twin else name

    @cached_property
    def dependencies(self) -> list[Callable[..., Any]]:
        """Every dependency of the handler, in the order in which they run."""
        found: list[Callable[..., Any]] = []
        for dependency in _dependencies(inspect.unwrap(self.handler)):
            if dependency not in found:
                found.append(dependency)
        return found

    @cached_property
    def sample(self) -> dict[str, Any]:
        name = self.module.__name__.rpartition(".")[2]
        event: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
        return event

    @cached_property
    def parameters(self) -> list[Schema]:
        found = {}
        for name in re.findall(r"\{(\w+)\}", self.route.path):
            schema, description = PATHS[name]
            found[name, "path"] = {
                "name": name,
                "in": "path",
                "description": description,
                "required": True,
                "schema": schema,
            }
        for dependency in self.dependencies:
            for one in parameters_of(dependency):
                found[one["name"], one["in"]] = one
        samples = {
            "path": self.sample.get("pathParameters", {}),
            "query": dict(parse_qsl(self.sample["rawQueryString"])),
            "header": self.sample["headers"],
        }
        for (name, place), parameter in found.items():
            example = samples[place].get(name)
            if example is not None and name not in ("user-agent", "content-length"):
                kind = parameter["schema"].get("type")
                parameter["example"] = int(example) if kind in ("integer", "number") else example
        return list(found.values())

    def _body(self) -> Schema | None:
        bodies = [body for dependency in self.dependencies if (body := body_of(dependency))]
        if len(bodies) > 1:
            raise Undocumented(f"several dependencies parse the body: {bodies}")
        if not bodies:
            return None
        ((media_type, schema),) = bodies
        content: Schema = {"schema": schema}
        text = self.sample.get("body")
        if text and media_type == "application/json":
            plain = base64.b64decode(text) if self.sample["isBase64Encoded"] else text
            content["example"] = json.loads(plain)
        media_types = [media_type]
        if self._is_auth and self.route.path.startswith(("/api/auth/sign-in", "/api/auth/sign-up")):
            media_types.append("application/x-www-form-urlencoded")
        return {
            # Under `/api/auth`, a missing body counts as an empty object.
            "required": not self._is_auth or bool(schema.get("required")),
            "content": dict.fromkeys(media_types, content),
        }

    def _security(self) -> list[Schema]:
        for dependency, schemes in _PRINCIPALS.items():
            if dependency in self.dependencies:
                return schemes
        return []

    def _responses(self) -> Schema:
        if self._is_page:
            return self._of_a_page()
        responses: dict[str, Schema] = replies_of(self.handler, self.components)
        for failure, raised in self._errors().items():
            responses[str(failure)] = self._failed(raised)
        if self._is_auth and "{" in self.route.path:
            responses["404"] = {"description": "The path has characters that a token cannot have."}
        for status, (name, description) in _GATEWAYS.items():
            if status == "413" and self.route.method not in _METHODS_WITH_BODY:
                continue
            if status in responses:
                content = responses[status].get("content", {}).get("application/json")
                if content:
                    content["schema"] = union([content["schema"], _GATEWAY_REFERENCE])
                responses[status]["description"] += f". From the gateway: {description}"
            else:
                responses[status] = {"$ref": f"#/components/responses/{name}"}
        return dict(sorted(responses.items()))

    def _of_a_page(self) -> Schema:
        return {
            **replies_of(self.handler, self.components),
            "403": self._failed(_BEFORE_ALL),
            "429": {"$ref": "#/components/responses/TooMany"},
            "431": {"$ref": "#/components/responses/HeadersTooLarge"},
            "503": {"$ref": "#/components/responses/Unavailable"},
        }

    def _errors(self) -> dict[int, Errors]:
        """The errors that the handler and everything before it can raise, by status."""
        functions = [self.handler, *self.dependencies]
        if self._is_auth and self.route.method in BODYLESS:
            functions += [check_rate, check_callbacks]
        elif self._is_auth:
            functions.append(guard_request)
        raised = frozenset[type[LarderError]]({InternalError, *_BEFORE_ALL}).union(
            *(raised_by(function) for function in functions)
        )
        if not self._is_auth and "{" in self.route.path:
            raised |= {self._no_route()}
        return {
            status: frozenset(error for error in raised if REPLIES[error].status == status)
            for status in sorted({REPLIES[error].status for error in raised})
        }

    def _no_route(self) -> type[LarderError]:
        """The error of the app for a path parameter with invalid characters."""
        if hasattr(self.module, "cache_api"):
            return InvalidRequest
        error: type[LarderError] = self._given_to_app("no_route") or PathNotFound
        return error

    def _given_to_app(self, argument: str) -> Any:
        """The constant that the module passes to its app as this argument, or None."""
        named = re.search(rf"{argument}=(\w+)", inspect.getsource(self.module))
        return getattr(self.module, named[1]) if named else None

    def _failed(self, raised: Errors) -> Schema:
        codes = sorted({self._code(error) for error in raised})
        response: Schema = {"description": ", ".join(f"`{code}`" for code in codes)}
        sent = [{*REPLIES[error].headers, *self._headers_with(error)} for error in raised]
        if names := set[str]().union(*sent):
            is_ours = not {str(REPLIES[error].status) for error in raised} & _GATEWAYS.keys()
            always = set.intersection(*sent) if is_ours else set[str]()
            response["headers"] = headers(names, always)
        if self.route.method == "HEAD" or raised == {DeleteUserDisabled}:
            return response
        shape = AuthErrorJson if self._is_auth else OAuthErrorJson if self._is_oauth else ErrorJson
        base = self.components.schema_of(shape)
        named = "error" if self._is_oauth else "code"
        schema: Schema = {"allOf": [base, {"properties": {named: {"enum": codes}}}]}
        return {**response, "content": {"application/json": {"schema": schema}}}

    def _headers_with(self, error: type[LarderError]) -> list[str]:
        """The headers that cache_api() adds to the replies of errors that it handles."""
        return [] if error in _BEFORE_ALL else list(self._given_to_app("error_headers") or ())

    def _code(self, error: type[LarderError]) -> str:
        if self._is_oauth:
            return oauth_code(error)
        return auth_code(error) if self._is_auth else REPLIES[error].code


def _unnamed(path: str) -> str:
    return re.sub(r"[{<]\w+[}>]", "{}", path)


def _dependencies(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    for hint in get_type_hints(function, include_extras=True).values():
        for part in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
            if isinstance(part, Depends):
                yield from _dependencies(part.dependency)
                yield part.dependency
    # Some functions call a dependency themselves, because they do not always need it.
    for named in named_in(function):
        if not inspect.isfunction(named) or named.__module__ == function.__module__:
            continue
        if named.__module__.startswith("larder.web") and (
            named is parameters.bearer_token or declares(named)
        ):
            yield named
