"""The document: every route of the template, with what its handler says of itself."""

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

from larder import errors
from larder.errors import LarderError
from larder.web import auth, parameters, signed_in
from larder.web.origins import check_callbacks
from larder.web.pages import Page
from larder.web.request_guards import BODYLESS, check_rate, guard_request
from local.template import DEFAULT_PATH, Route, Template
from tools.openapi import Undocumented
from tools.openapi.failures import Errors, raised_by
from tools.openapi.replies import described, replies_of
from tools.openapi.requests import PARAMETERS, PATHS, body_of, named_in, parameters_of
from tools.openapi.shapes import Components, Schema, union

ROOT = Path(__file__).resolve().parents[2]

TAGS = {
    "artifacts": "The cache, and the management of what it stores.",
    "usage": "What the cache did.",
    "teams": "Teams, members and invitations, named as in the hosted service's REST API.",
    "accounts": "People: sign-up, sign-in, sessions, passwords, addresses.",
    "api_keys": "API keys, as the Better Auth client asks for them.",
    "pages": "Pages for people, `turbo login`, and this document.",
}

_ABOUT = """\
A remote build cache that a team owns. It answers Turborepo, the Better Auth client, and whatever else reads this.

Made of the service's own code. Every reply of a request that reaches a handler is here; each 4xx and 5xx tells which \
codes it can have. docs/errors.md says what to do about each of them.

A request for the cache acts for the team that `teamId` or `slug` names, else for the one that the key is bound to, \
else for the caller alone.

OPTIONS on any path of `/api/auth` answers the preflight of a browser for pages of trusted origins.

Another method of a path here is answered 405 `method_not_allowed`, with `Allow`. Any other path is answered 404 \
`not_found`; under `/api/auth` without a body, and to a browser with a page.
"""

_SCHEMES: dict[str, Schema] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, of 64 characters or more, or the token of a session, of 32.",
    },
    "sessionToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of a session, as a sign-in answers it.",
    },
    "sessionCookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "__Secure-better-auth.session_token",
        "description": "The signed cookie that a sign-in sets. On plain http, which only the local cloud has, its name "
        "lacks `__Secure-`. Whatever changes something has to come with the `Origin` of a trusted page.",
    },
    "apiKey": {
        "type": "apiKey",
        "in": "header",
        "name": "x-api-key",
        "description": "An API key, where `SessionForApiKeys` lets it stand for a session of its user.",
    },
}

_BEARER = [{"bearer": list[str]()}]
_IN_PERSON = [{"sessionCookie": list[str]()}, {"sessionToken": list[str]()}]
_BY_KEY = [*_IN_PERSON, {"apiKey": list[str]()}]
_NOBODY: Schema = {}

# Who may call, by the dependency that finds out; of several the strictest decides.
_CALLERS: dict[Callable[..., Any], list[Schema]] = {
    signed_in.signed_in_in_person: _IN_PERSON,
    signed_in.operator: _IN_PERSON,
    signed_in.signed_in: _BY_KEY,
    signed_in.key_maker: _BY_KEY,
    signed_in.maybe_signed_in_in_person: [*_IN_PERSON, _NOBODY],
    signed_in.maybe_signed_in: [*_BY_KEY, _NOBODY],
    auth.announced_writer: [*_BEARER, _NOBODY],
    parameters.bearer_token: _BEARER,
}

_GATEWAYS: dict[str, tuple[str, str]] = {
    "413": ("TooLarge", "The body is larger than a function takes, about 4.5 MB: use preflight."),
    "429": ("TooMany", "More requests a second than the stack's throttling allows."),
    "431": ("HeadersTooLarge", "The headers are larger than 10,240 bytes."),
    "503": ("Unavailable", "The function did not answer within 30 seconds."),
}

_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def make_document(template: Template) -> Schema:
    """The whole document. Raises Undocumented, which names the route."""
    components = Components()
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
        "tags": [{"name": name, "description": told} for name, told in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": dict(sorted({**components.schemas, **_ERROR_SCHEMAS}.items())),
            "responses": {name: _of_the_gateway(told) for name, told in _GATEWAYS.values()},
            "securitySchemes": _SCHEMES,
        },
    }


def is_operation(route: Route) -> bool:
    """Whether a route is of one path, not of all that begin alike, where browsers ask by CORS, and not `$default`."""
    return not route.path.endswith("+}") and route.path != DEFAULT_PATH


def _version() -> str:
    project = tomllib.loads((ROOT / "layers" / "larder" / "pyproject.toml").read_text())
    return str(project["project"]["version"])


def _of_the_gateway(told: str) -> Schema:
    return {
        "description": told,
        "content": {"application/json": {"schema": _reference("GatewayError")}},
    }


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_TEXT: Schema = {"type": "string"}
_CODED: Schema = {"code": _TEXT, "message": _TEXT}
_ERROR_SCHEMAS: dict[str, Schema] = {
    "Error": {
        "type": "object",
        "description": "An error of the cache API. Build clients read the nested part.",
        "properties": {
            "error": {"type": "object", "properties": _CODED, "required": ["code", "message"]},
            **_CODED,
        },
        "required": ["error", "code", "message"],
    },
    "AuthError": {
        "type": "object",
        "description": "An error of `/api/auth`. That of the limit by address and path has no code.",
        "properties": _CODED,
        "required": ["message"],
    },
    "GatewayError": {
        "type": "object",
        "description": "An error of the gateway in front of the functions.",
        "properties": {"message": _TEXT},
        "required": ["message"],
    },
}


@dataclass
class _Operation:
    """One route, and the function that answers it."""

    route: Route
    components: Components

    @property
    def handler(self) -> Callable[..., Any]:
        """The function of the module that the route leads to."""
        if self._is_page:
            return self._named(self.module.__name__.rpartition(".")[2])
        pattern = _unnamed(self.route.path)
        app = self.module.app
        for one in app._static_routes + app._dynamic_routes:
            methods = [one.method] if isinstance(one.method, str) else one.method
            if self.route.method in methods and _unnamed(one.path) == pattern:
                function: Callable[..., Any] = one.func
                return function
        raise Undocumented("no function of the module takes it")

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

    def described(self) -> Schema:
        told = inspect.getdoc(self.handler) or ""
        summary, _, more = told.partition("\n")
        operation: Schema = {
            "operationId": self._operation_id,
            "tags": [self.module.__name__.partition(".")[0]],
            "summary": summary.partition(": ")[2] or summary,
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
        """Of a function that answers several routes, with what tells them apart."""
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
        """Every function that the signature leads to, in the order in which they run."""
        found: list[Callable[..., Any]] = []
        for one in _dependencies(inspect.unwrap(self.handler)):
            if one not in found:
                found.append(one)
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
            schema, told = PATHS[name]
            found[name, "path"] = {
                "name": name,
                "in": "path",
                "description": told,
                "required": True,
                "schema": schema,
            }
        for dependency in self.dependencies:
            for one in parameters_of(dependency):
                found[one.name, one.place] = one.described
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
        bodies = [body for one in self.dependencies if (body := body_of(one))]
        if len(bodies) > 1:
            raise Undocumented(f"several dependencies parse the body: {bodies}")
        if not bodies:
            return None
        (body,) = bodies
        content: Schema = {"schema": body.schema}
        text = self.sample.get("body")
        if text and body.media_type == "application/json":
            plain = base64.b64decode(text) if self.sample["isBase64Encoded"] else text
            content["example"] = json.loads(plain)
        media_types = [body.media_type]
        if self._is_auth and self.route.path.startswith(("/api/auth/sign-in", "/api/auth/sign-up")):
            media_types.append("application/x-www-form-urlencoded")
        return {
            "required": body.required,
            "content": dict.fromkeys(media_types, content),
        }

    def _security(self) -> list[Schema]:
        for dependency, schemes in _CALLERS.items():
            if dependency in self.dependencies:
                return schemes
        return []

    def _responses(self) -> Schema:
        if self._is_page:
            return self._of_a_page()
        responses: dict[str, Schema] = dict(described(replies_of(self.handler, self.components)))
        for failure, raised in self._errors().items():
            responses[str(failure)] = self._failed(raised)
        if self._is_auth and "{" in self.route.path:
            responses["404"] = {"description": "The path holds what no token has."}
        for status, (name, told) in _GATEWAYS.items():
            if status == "413" and self.route.method not in _METHODS_WITH_BODY:
                continue
            if status in responses:
                content = responses[status].get("content", {}).get("application/json")
                if content:
                    content["schema"] = union([content["schema"], _reference("GatewayError")])
                responses[status]["description"] += f". Of the gateway: {told}"
            else:
                responses[status] = {"$ref": f"#/components/responses/{name}"}
        return dict(sorted(responses.items()))

    def _of_a_page(self) -> Schema:
        made = get_type_hints(self.handler)["return"]
        media_type = "text/html; charset=utf-8" if made is Page else "application/json"
        schema: Schema = {"type": "string"} if made is Page else {"type": "object"}
        return {
            "200": {"description": "The page.", "content": {media_type: {"schema": schema}}},
            "429": {"$ref": "#/components/responses/TooMany"},
            "431": {"$ref": "#/components/responses/HeadersTooLarge"},
            "503": {"$ref": "#/components/responses/Unavailable"},
        }

    def _errors(self) -> dict[int, Errors]:
        """What can be raised on the way to the handler and in it, by status."""
        functions = [self.handler, *self.dependencies]
        if self._is_auth and self.route.method in BODYLESS:
            functions += [check_rate, check_callbacks]
        elif self._is_auth:
            functions.append(guard_request)
        raised = frozenset[type[LarderError]]({errors.InternalError}).union(
            *(raised_by(function) for function in functions)
        )
        if not self._is_auth and "{" in self.route.path:
            raised |= {self._no_route()}
        if self._is_auth and errors.InvalidRequest in raised:
            raised |= {errors.InvalidBody}
        return {
            status: frozenset(error for error in raised if error.status == status)
            for status in sorted({error.status for error in raised})
        }

    def _no_route(self) -> type[LarderError]:
        """What cache_api() raises for a path with characters that the parameter cannot have."""
        source = inspect.getsource(self.module)
        named = re.search(r"no_route=(\w+)", source)
        error: type[LarderError] = (
            getattr(self.module, named[1]) if named else errors.InvalidRequest
        )
        return error

    def _failed(self, raised: Errors) -> Schema:
        told = ", ".join(sorted({f"`{self._code(error)}`" for error in raised}))
        if self.route.method == "HEAD" or raised == {errors.DeleteUserDisabled}:
            return {"description": told}
        codes = sorted({self._code(error) for error in raised})
        base = _reference("AuthError" if self._is_auth else "Error")
        schema: Schema = {"allOf": [base, {"properties": {"code": {"enum": codes}}}]}
        response: Schema = {
            "description": told,
            "content": {"application/json": {"schema": schema}},
        }
        headers = {name for error in raised for name in _headers_of(error)}
        if headers:
            always = [set(_headers_of(error)) for error in raised]
            is_ours = not {str(error.status) for error in raised} & _GATEWAYS.keys()
            response["headers"] = {
                name: {
                    "description": _HEADERS[name],
                    "required": is_ours and all(name in one for one in always),
                    "schema": {"type": "string"},
                }
                for name in sorted(headers)
            }
        return response

    def _code(self, error: type[LarderError]) -> str:
        return error.code.upper() if self._is_auth else error.code


_HEADERS = {
    "Retry-After": "Seconds after which to try again.",
    "X-Retry-After": "The same, as the Better Auth client reads it.",
    "WWW-Authenticate": "`Bearer`",
}


def _headers_of(error: type[LarderError]) -> list[str]:
    """The class says them, or its initializer sets them."""
    if error in (errors.RateLimited, errors.TooManyRequests):
        return list(error(1).headers)
    return list(error.headers)


def _unnamed(path: str) -> str:
    return re.sub(r"[{<]\w+[}>]", "{}", path)


def _dependencies(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    for hint in get_type_hints(function, include_extras=True).values():
        for part in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
            if isinstance(part, Depends):
                yield from _dependencies(part.dependency)
                yield part.dependency
    # Some call others themselves, because only they know whether they need them.
    for named in named_in(function):
        if callable(named) and (named in PARAMETERS or named is parameters.bearer_token):
            yield named
