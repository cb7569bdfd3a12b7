"""The parameters and bodies of requests that the handlers' dependencies parse by hand.

Patterns, limits and choices come from the parsers, so no rule is written twice. A declaration must list exactly the
parameters that its parser reads; otherwise the generator raises Undocumented.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from larder.artifacts import models
from larder.artifacts.lists import ALL_SCOPES, Order
from larder.artifacts.models import HASH_PATTERN, SCOPE_PATTERN
from larder.hashing import RANDOM_ID
from larder.settings import settings
from larder.teams import slugs
from larder.teams.models import MAX_LISTED, RULE_ID, SHARED_SCOPE
from larder.usage.events import UsageEvent
from larder.web import parameters
from larder.web.bodies import cache as cache_bodies
from larder.web.bodies import credentials as credential_bodies
from larder.web.bodies import oauth as oauth_bodies
from larder.web.bodies import teams as team_bodies
from larder.web.principals import transfers
from larder.web.queries import api_keys as api_key_query
from larder.web.queries import artifacts as artifact_query
from larder.web.queries import audit as audit_query
from larder.web.queries import links as link_query
from larder.web.queries import runs as runs_query
from larder.web.queries import teams as team_query
from larder.web.queries import usage as usage_query
from larder.web.turbo_login import code as login_code
from larder.web.turbo_login import loopback
from larder.web.turbo_login import parameters as login_parameters
from tools.openapi import Undocumented
from tools.openapi.shapes import Schema

Place = Literal["query", "header", "path"]


@dataclass(frozen=True)
class Parameter:
    name: str
    place: Place
    schema: Schema
    description: str
    required: bool = False

    @property
    def described(self) -> Schema:
        return {
            "name": self.name,
            "in": self.place,
            "description": self.description,
            "required": self.required or self.place == "path",
            "schema": self.schema,
        }


@dataclass(frozen=True)
class Body:
    media_type: str
    schema: Schema
    required: bool = True


def _query(name: str, schema: Schema, description: str, *, required: bool = False) -> Parameter:
    return Parameter(name, "query", schema, description, required)


def _header(name: str, schema: Schema, description: str) -> Parameter:
    return Parameter(name, "header", schema, description)


def matching(pattern: str | re.Pattern[str], *, empty: bool = False) -> Schema:
    """A string that matches the pattern completely."""
    text = pattern if isinstance(pattern, str) else pattern.pattern
    # JSON Schema has no named groups. No pattern refers back to one, so the names can go.
    text = re.sub(r"\(\?P<\w+>", "(?:", text)
    return {"type": "string", "pattern": f"^(?:{text}){'?' if empty else ''}$"}


def _text(most: int | None = None) -> Schema:
    return {"type": "string"} | ({} if most is None else {"maxLength": most})


def _number(least: int, most: int, default: int | None = None) -> Schema:
    schema: Schema = {"type": "integer", "minimum": least, "maximum": most}
    return schema if default is None else {**schema, "default": default}


HASH: Schema = matching(HASH_PATTERN)

_REVISION = matching(models.REVISION)
_ANY_TEXT: Schema = {"type": "string"}

# The parameters that each parser reads.
_PERIOD = (
    _query("from", {"type": "string", "format": "date"}, "The first day, in UTC."),
    _query("to", {"type": "string", "format": "date"}, "The last day, in UTC. Today by default."),
)
_ARTIFACTS = (
    _query(
        "limit",
        _number(1, artifact_query.MAX_ARTIFACTS, artifact_query.DEFAULT_ARTIFACTS),
        "The maximum number of artifacts to return.",
    ),
    _query("cursor", _ANY_TEXT, "`next` of the previous page."),
    _query(
        "scope",
        matching(rf"{SHARED_SCOPE}|{ALL_SCOPES}|{SCOPE_PATTERN}"),
        "Only artifacts in this scope. By default, those in the shared one.",
    ),
)

PARAMETERS: dict[Callable[..., Any], Sequence[Parameter]] = {
    parameters.team_query: (
        _query(
            "teamId",
            matching(slugs.TEAM_ID, empty=True),
            "The id of the team to act for. Empty for no team. Takes precedence over `slug`.",
        ),
        _query("slug", matching(slugs.SLUG, empty=True), "The slug of the team to act for."),
    ),
    parameters.client_info: (
        _header(
            "x-artifact-client-ci",
            {**matching(models.PRINTABLE, empty=True), "maxLength": models.MAX_CI_LENGTH},
            "The CI that the client runs in.",
        ),
        _header(
            "x-artifact-client-interactive",
            {"type": "string", "enum": ["0", "1"]},
            "Whether the client runs in an interactive shell.",
        ),
    ),
    parameters.artifact_metadata: (
        _header(
            "x-artifact-duration",
            {"type": "number", "minimum": 0, "maximum": models.MAX_DURATION_MS},
            "Milliseconds that the task took.",
        ),
        _header(
            "x-artifact-tag",
            {
                **matching(models.BASE64),
                "minLength": 1,
                "maxLength": models.MAX_TAG_LENGTH,
            },
            "A signature. Larder returns it unchanged with the artifact.",
        ),
        _header("x-artifact-sha", _REVISION, "The commit that the artifact was built from."),
        _header("x-artifact-dirty-hash", _REVISION, "The hash of uncommitted changes."),
    ),
    transfers.announced_writer: (
        _header(
            "access-control-request-method",
            _ANY_TEXT,
            "The method of the request that follows. For `PUT`, the reply has a signed URL to upload to.",
        ),
    ),
    transfers.direct_uploads_of_client: (
        _header(
            "user-agent",
            _ANY_TEXT,
            "Versions of turbo that break presigned URLs get no URL, or only one of the edge.",
        ),
    ),
    artifact_query.artifact_query: _ARTIFACTS,
    artifact_query.artifacts_query: (
        *_ARTIFACTS,
        _query("prefix", HASH, "Only artifacts whose hash begins with this."),
        _query(
            "writer",
            matching(f"{RANDOM_ID.pattern}|{RULE_ID.pattern}"),
            "Only artifacts of this key, session, user or rule.",
        ),
        _query("ci", _text(models.MAX_CI_LENGTH), "Only artifacts of this CI vendor."),
        _query(
            "from",
            _number(0, 10**14 - 1),
            "Only artifacts stored at this time or later, in milliseconds since 1970.",
        ),
        _query("until", _number(0, 10**14 - 1), "Only artifacts stored before this time."),
        _query(
            "order",
            {"type": "string", "enum": [one.value for one in Order], "default": Order.HASH.value},
            "By hash, or the newest first.",
        ),
        _query(
            "hidden",
            {"type": "string", "enum": ["true"]},
            "Also those that readers do not see, because the team hides them.",
        ),
    ),
    audit_query.audit_query: (
        _query(
            "limit",
            _number(1, audit_query.MAX_ENTRIES, audit_query.DEFAULT_ENTRIES),
            "The maximum number of entries to return.",
        ),
        _query("before", matching(audit_query.ENTRY_ID), "`next` of the previous page."),
        _query(
            "action",
            matching(r"[a-z_]+(?:,[a-z_]+)*"),
            "Only entries with these actions, separated by commas. A page can then have fewer entries than `limit`, "
            "even none, without being the last: one request reads 1,000 entries at most.",
        ),
    ),
    artifact_query.scope_query: (
        _query(
            "scope",
            matching(rf"{SHARED_SCOPE}|{SCOPE_PATTERN}"),
            "The scope of the artifact. By default, the shared one.",
        ),
    ),
    artifact_query.removals_query: (
        _query(
            "limit",
            _number(1, artifact_query.MAX_ARTIFACTS, artifact_query.DEFAULT_ARTIFACTS),
            "The maximum number of removals to return.",
        ),
        _query("cursor", _ANY_TEXT, "`next` of the previous page."),
    ),
    artifact_query.removal_query: (
        _query(
            "writer",
            matching(f"{RANDOM_ID.pattern}|{RULE_ID.pattern}"),
            "The id of a key, a session, a user or a rule.",
        ),
        _query(
            "scope",
            matching(SCOPE_PATTERN),
            "The id of an own scope. The request names one of `writer`, `scope`, both `from` and `until`, or `all`.",
        ),
        _query(
            "from",
            _number(0, 10**14 - 1),
            "Delete what was stored at this time or later, in milliseconds since 1970.",
        ),
        _query("until", _number(0, 10**14 - 1), "Delete what was stored before this time."),
        _query(
            "all",
            _ANY_TEXT,
            "Delete everything: the slug of the team, or the id of the user without a team.",
        ),
    ),
    api_key_query.keys_query: (
        _query(
            "limit",
            _number(1, api_key_query.MAX_KEYS, api_key_query.MAX_KEYS),
            "The maximum number of keys to return.",
        ),
        _query(
            "offset",
            _number(0, api_key_query.MAX_OFFSET, 0),
            "The number of keys to skip.",
        ),
    ),
    team_query.teams_query: (
        _query(
            "limit",
            _number(1, MAX_LISTED, team_query.DEFAULT_LIMIT),
            "The maximum number of teams to return.",
        ),
        _query("until", matching(slugs.TEAM_ID), "`next` of the previous page."),
    ),
    team_query.members_query: (
        _query(
            "limit",
            _number(1, MAX_LISTED, team_query.DEFAULT_LIMIT),
            "The maximum number of members to return.",
        ),
        _query(
            "since",
            _number(0, 10**14 - 1),
            "Only members who joined after this time, in milliseconds since 1970.",
        ),
        _query(
            "until",
            _number(0, 10**14 - 1),
            "Only members who joined before this time: `next` of the previous page.",
        ),
    ),
    team_query.scopes_query: (
        _query(
            "limit",
            _number(1, MAX_LISTED, team_query.DEFAULT_LIMIT),
            "The maximum number of scopes to return.",
        ),
        _query("cursor", matching(SCOPE_PATTERN), "`next` of the previous page."),
    ),
    team_query.team_keys_query: (
        _query(
            "limit",
            _number(1, MAX_LISTED, team_query.DEFAULT_LIMIT),
            "The maximum number of keys to return.",
        ),
        _query("offset", _number(0, team_query.MAX_OFFSET, 0), "`next` of the previous page."),
    ),
    usage_query.period_query: _PERIOD,
    usage_query.period_by_key_query: (
        _query(
            "what",
            {"type": "string", "enum": ["key"]},
            "The dimension to group by.",
            required=True,
        ),
        *_PERIOD,
    ),
    runs_query.runs_query: (
        *_PERIOD,
        _query(
            "limit",
            _number(1, runs_query.MAX_RUNS, runs_query.DEFAULT_RUNS),
            "The maximum number of runs to return.",
        ),
        _query("before", _ANY_TEXT, "`next` of the previous page."),
        _query("id", _ANY_TEXT, "The id of one run to get with its tasks. Needs `startedAt`."),
        _query("startedAt", _ANY_TEXT, "`startedAt` of the run."),
    ),
    runs_query.runs_to_delete: (
        _query("id", _ANY_TEXT, "The id of the run to delete. Needs `startedAt`."),
        _query("startedAt", _ANY_TEXT, "`startedAt` of the run."),
        _query(
            "reporter",
            _ANY_TEXT,
            "In place of `id`: the id of a key, session, user or rule. Its newest 200 runs are deleted.",
        ),
    ),
    credential_bodies.new_password: (
        _query("token", _ANY_TEXT, "The token of the link, if the body has none."),
    ),
    link_query.verification_link: (
        _query("token", _ANY_TEXT, "The token of the link.", required=True),
        _query("callbackURL", _ANY_TEXT, "The page to redirect to."),
        _query("callback", _ANY_TEXT, "The same as a signed token, in the links of emails."),
    ),
    link_query.reset_page: (
        _query("callbackURL", _ANY_TEXT, "The page on which the user enters the new password."),
        _query("callback", _ANY_TEXT, "The same as a signed token, in the links of emails."),
    ),
    api_key_query.queried_key: (
        _query("id", _ANY_TEXT, "The id of a key."),
        _query("keyId", _ANY_TEXT, "Another name for `id`."),
    ),
    login_parameters.login_request: (
        _query(
            "redirect_uri",
            matching(loopback.ADDRESS),
            "The URL on which the build client waits for its token.",
            required=True,
        ),
        _query("team", {"type": "string", "minLength": 1}, "The team that the login is for."),
        _header("user-agent", _ANY_TEXT, "The default name of the key is derived from it."),
    ),
    login_parameters.sso_page: (
        _query("teamId", _ANY_TEXT, "The id or slug of the team that the login is for."),
        _query("slug", _ANY_TEXT, "Another name for `teamId`."),
        _query("next", _ANY_TEXT, "The URL on which the build client waits for its token."),
        _query("state", _ANY_TEXT, "Returned to the client unchanged."),
    ),
    login_code.sent_code: (
        _query("token", _ANY_TEXT, "The code from the end of the login."),
        _query("tokenName", _ANY_TEXT, "The name of the client."),
    ),
}

PATHS: dict[str, tuple[Schema, str]] = {
    "hash": (HASH, "The hash of the artifact."),
    "idOrSlug": (_ANY_TEXT, "The id or slug of the team."),
    "keyId": (_ANY_TEXT, "The id of a key that is bound to the team."),
    "uid": (_ANY_TEXT, "The id of a member or of an open invitation."),
    "ruleId": (_ANY_TEXT, "The id of a rule of the team."),
    "token": (_ANY_TEXT, "The token of the link."),
}


def _events() -> Schema:
    settable = inspect.signature(UsageEvent).parameters
    assert {"session_id", "source", "event", "hash", "duration_ms"} == set(settable)
    event: Schema = {
        "type": "object",
        "properties": {
            "sessionId": {**matching(f"(?:{_any_case(cache_bodies.UUID)})"), "format": "uuid"},
            "source": {"type": "string", "enum": ["LOCAL", "REMOTE"]},
            "event": {"type": "string", "enum": ["HIT", "MISS"]},
            "hash": _ANY_TEXT,
            "duration": {"type": "number", "minimum": 0, "maximum": models.MAX_DURATION_MS},
        },
        "required": ["sessionId", "source", "event", "hash"],
        "additionalProperties": False,
    }
    assert set(event["properties"]) == cache_bodies.EVENT_PROPERTIES
    return {"type": "array", "items": event, "maxItems": settings().max_events}


def _any_case(pattern: re.Pattern[str]) -> str:
    return pattern.pattern.replace("[0-9a-f]", "[0-9a-fA-F]")


def _hashes() -> Schema:
    hashes = {
        "type": "array",
        "items": _text(cache_bodies.MAX_QUERIED_LENGTH),
        "maxItems": settings().max_query_hashes,
    }
    return {"type": "object", "properties": {"hashes": hashes}, "required": ["hashes"]}


def _caching() -> Schema:
    status = {"type": "string", "enum": [one.value for one in cache_bodies.SETTABLE]}
    return {"type": "object", "properties": {"status": status}, "required": ["status"]}


def _exchange_form() -> Schema:
    texts = ("team_id", "teamId", "slug", "policy_id", "scope", "audience", "resource", "client_id")
    properties: dict[str, Schema] = {
        "grant_type": {"type": "string", "const": oauth_bodies.GRANT},
        "subject_token": {
            **_ANY_TEXT,
            "description": "The id token of the CI. Its audience is the address of this service.",
        },
        "subject_token_type": {"type": "string", "enum": list(oauth_bodies.ID_TOKEN_TYPES)},
        "requested_token_type": {"type": "string", "const": oauth_bodies.ACCESS_TOKEN_TYPE},
        "team_id_or_slug": {**_ANY_TEXT, "description": "The team, by its id or slug."},
        **dict.fromkeys(texts, _ANY_TEXT),
    }
    return {
        "type": "object",
        "properties": properties,
        "required": ["grant_type", "subject_token", "team_id_or_slug"],
    }


def _revoked_form() -> Schema:
    return {
        "type": "object",
        "properties": {"token": _ANY_TEXT, "token_type_hint": _ANY_TEXT},
        "required": ["token"],
    }


BODIES: dict[Callable[..., Any], Callable[[], Body]] = {
    parameters.artifact_body: lambda: Body(
        "application/octet-stream", {"type": "string", "format": "binary", "minLength": 1}
    ),
    cache_bodies.usage_events: lambda: Body("application/json", _events()),
    cache_bodies.query_hashes: lambda: Body("application/json", _hashes()),
    cache_bodies.caching_to_set: lambda: Body("application/json", _caching()),
    oauth_bodies.exchange_form: lambda: Body(oauth_bodies.FORM, _exchange_form()),
    oauth_bodies.revoked_token: lambda: Body(oauth_bodies.FORM, _revoked_form()),
    team_bodies.sent_invitations: lambda: Body(
        "application/json",
        {
            "anyOf": [
                _schema_of_model(team_bodies.INVITATION),
                {
                    **_schema_of_model(team_bodies.INVITATIONS),
                    "minItems": 1,
                    "maxItems": team_bodies.MAX_INVITATIONS,
                },
            ]
        },
    ),
}


def parameters_of(dependency: Callable[..., Any]) -> Sequence[Parameter]:
    """The query parameters and headers that the dependency reads. Raises Undocumented if its code reads others."""
    declared = PARAMETERS.get(dependency, ())
    read = set(_read_by(dependency))
    named = {one.name for one in declared}
    if read != named:
        raise Undocumented(
            f"{dependency.__module__}.{dependency.__name__} reads {sorted(read)}, but "
            f"tools/openapi/requests.py declares {sorted(named)}"
        )
    return declared


_DOCUMENTED_ELSEWHERE = frozenset({"authorization", "content-length", "origin", "sec-fetch-site"})
"""Headers that the security schemes describe, and the length of a body, which HTTP defines."""


_SOURCES = ("headers", "request.headers", "query", "request.query_parameters or {}")


def _read_by(dependency: Callable[..., Any]) -> Iterator[str]:
    """The names in `headers.get("...")`, in `query["..."]`, and in calls of helpers that get the request."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(dependency)))
    for node in ast.walk(tree):
        texts: list[ast.expr] = []
        match node:
            case ast.Call(func=ast.Attribute(value=base, attr="get"), args=[name, *_]):
                if ast.unparse(base) in _SOURCES:
                    texts = [name]
            case ast.Call(func=ast.Name(id=called), args=[ast.Name(id="request"), *rest]):
                texts = list(rest)
                helper = dependency.__globals__[called]
                if helper.__name__ == "_limit":
                    yield from _read_by(helper)
            case ast.Subscript(value=ast.Name(id="query"), slice=name):
                texts = [name]
        for text in texts:
            read = text.value if isinstance(text, ast.Constant) else None
            if isinstance(read, str) and read not in _DOCUMENTED_ELSEWHERE:
                yield read


def named_in(function: Callable[..., Any]) -> Iterator[Any]:
    """The globals of its module that a function names."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    for statement in definition.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in function.__globals__:
                yield function.__globals__[node.id]


def body_of(dependency: Callable[..., Any]) -> Body | None:
    """The body that the dependency parses, by hand or with a pydantic model."""
    if dependency in BODIES:
        return BODIES[dependency]()
    models = list(named_in(dependency))
    parsers = [
        one
        for one in models
        if isinstance(one, TypeAdapter) or _is_model_of(dependency.__module__, one)
    ]
    if len(parsers) > 1:
        raise Undocumented(f"{dependency.__name__} parses the body with several models: {parsers}")
    if not parsers:
        return None
    schema = _schema_of_model(parsers[0])
    # Under `/api/auth`, a missing body counts as an empty object.
    return Body("application/json", schema, required=bool(schema.get("required")))


def _is_model_of(module: str, one: object) -> bool:
    return isinstance(one, type) and issubclass(one, BaseModel) and one.__module__ == module


def _schema_of_model(model: Any) -> Schema:
    adapter = model if isinstance(model, TypeAdapter) else TypeAdapter(model)
    schema = adapter.json_schema(by_alias=True, ref_template="#/$defs/{model}")
    inlined: Schema = _inlined(schema, schema.pop("$defs", {}))
    return inlined


def _inlined(schema: Any, definitions: dict[str, Schema]) -> Any:
    """The schema without references, and without the titles that pydantic derives from names."""
    if isinstance(schema, list):
        return [_inlined(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    inlined: Schema = {
        name: {one: _inlined(inner, definitions) for one, inner in value.items()}
        if name == "properties"
        else _inlined(value, definitions)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str))
    }
    return inlined
