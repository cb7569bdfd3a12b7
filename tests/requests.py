"""Requests to the handlers as the gateway sends them: by the template's routes, in payload format 2.0."""

import base64
import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from larder import clock
from larder.accounts.models import User
from larder.accounts.sessions import start_session
from larder.actor import Actor
from larder.api_keys.models import ApiKey
from larder.artifacts import uploads
from larder.artifacts.models import UNPROTECTED, Artifact, ArtifactHash, ArtifactMetadata, CacheRequest
from larder.artifacts.repository.index import read_entry
from larder.signing import sign
from larder.teams.models import Team
from local.gateway.routing import Routes
from local.http_event import build_http_event
from local.template import Function
from tests.default_template import template
from tests.documented import undocumented
from tests.moto_sockets import in_memory
from tests.own_variables import only_its_variables
from tests.permissions import held_to_its_grants

DOMAIN = "cache.example.com"
SESSION_COOKIE = "__Secure-better-auth.session_token"

Headers = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Reply:
    """The reply that the client gets."""

    status: int
    headers: dict[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()
    """The values of Set-Cookie in order."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error in the nested shape that build clients read."""
        return str(self.json["error"]["code"])

    @property
    def refusal(self) -> tuple[int, str]:
        """The status and code of an error of `/api/auth`, in the flat shape that its client reads."""
        return self.status, str(self.json["code"])

    @property
    def message(self) -> str:
        return str(self.json["error"]["message"])


@dataclass(frozen=True)
class Sender:
    """Sends requests with one token for one team. None omits the token or the team.

    `authorization` and `query` replace the values made from the token and the team. A query in the path is added.
    """

    token: str | None
    slug: str | None = None
    team_id: str | None = None
    authorization: str | None = None
    query: str | None = None

    def __call__(
        self, method: str, path: str, *, body: bytes = b"", json_body: Any = None, headers: Headers | None = None
    ) -> Reply:
        if json_body is not None:
            body = json.dumps(json_body).encode()
        pairs = self._headers(headers, body, is_json=json_body is not None)
        path, _, more = path.partition("?")
        query = "&".join(part for part in (self._query(), more) if part)
        return deliver(method, path, query, pairs, body)

    def asking(self, **query: str) -> "Sender":
        """The same sender with additional query parameters."""
        more = [f"{name}={value}" for name, value in query.items()]
        return replace(self, query="&".join([part for part in [self._query(), *more] if part]))

    def _query(self) -> str:
        if self.query is not None:
            return self.query
        scope = (("teamId", self.team_id), ("slug", self.slug))
        return "&".join(f"{name}={value}" for name, value in scope if value is not None)

    def _authorization(self) -> str | None:
        if self.authorization is not None:
            return self.authorization
        return None if self.token is None else f"Bearer {self.token}"

    def _headers(self, headers: Headers | None, body: bytes, *, is_json: bool) -> list[tuple[str, str]]:
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers or [])
        names = {name.lower() for name, _ in pairs}
        if "transfer-encoding" in names:
            names.add("content-length")
        defaults = {
            "authorization": self._authorization(),
            "content-type": "application/json" if is_json else "application/octet-stream",
            "content-length": str(len(body)) if body else None,
            "x-forwarded-proto": "https",
        }
        added = [(k, v) for k, v in defaults.items() if v is not None and k not in names]
        return [*added, *pairs]


@dataclass
class Browser:
    """A browser on a page of this deployment: stores the cookies of replies and sends them to `/api/auth`."""

    https: bool = True
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, *, headers: Headers | None = None) -> Reply:
        return self._ask("GET", path, headers, b"")

    def post(self, path: str, body: Any = None, *, raw: bytes | None = None, headers: Headers | None = None) -> Reply:
        content = json.dumps({} if body is None else body).encode() if raw is None else raw
        return self._ask("POST", path, headers, content)

    def _ask(self, method: str, path: str, headers: Headers | None, body: bytes) -> Reply:
        scheme = "https" if self.https else "http"
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers or [])
        all_headers = {
            "x-forwarded-proto": scheme,
            "origin": f"{scheme}://{DOMAIN}",
            "user-agent": "Browser/1.0",
            **({"content-type": "application/json"} if method == "POST" else {}),
            **dict(pairs),
        }
        if self.cookies:
            all_headers["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        path, _, query = path.partition("?")
        reply = deliver(method, f"/api/auth{path}", query, list(all_headers.items()), body)
        for line in reply.cookies:
            self._keep(line)
        return reply

    def _keep(self, line: str) -> None:
        cookie, *attributes = line.split("; ")
        name, _, value = cookie.partition("=")
        self.cookies.pop(name, None)
        if "Max-Age=0" not in attributes:
            self.cookies[name] = value


NO_METADATA = ArtifactMetadata()


@dataclass(frozen=True)
class Cloud:
    """The data that most tests start with."""

    user: User
    team: Team
    key: ApiKey
    token: str
    send: Sender

    @property
    def writer(self) -> Actor:
        """The writer of uploads with `token`."""
        return Actor(self.key.id, self.user.id)

    def asking(self, hash: str, *, now: datetime | None = None, **more: Any) -> CacheRequest:
        """The request of the key's user for an artifact of the team, with further fields of it."""
        request = CacheRequest(
            owner=self.team.id,
            hash=ArtifactHash(hash),
            writer=self.writer,
            view=UNPROTECTED,
            now=now or clock.now(),
            entry=read_entry(self.team.id, ArtifactHash(hash)),
        )
        return request._replace(**more)

    def store(
        self,
        hash: str,
        body: bytes = b"artifact",
        metadata: ArtifactMetadata = NO_METADATA,
        *,
        now: datetime | None = None,
        **more: Any,
    ) -> Artifact:
        """Store an artifact, as if it were uploaded at that time."""
        return uploads.store(self.asking(hash, now=now, **more), body, metadata)

    def offer(self, hash: str, *, now: datetime | None = None) -> str:
        """The address to upload to, as if it were offered at that time."""
        url = uploads.offer_upload(self.asking(hash, now=now))
        assert url is not None
        return url


@dataclass
class Context:
    """The parts of Lambda's context that functions use."""

    remaining_ms: int = 60_000
    aws_request_id: str = "b2f7a9a0-0000-4000-8000-000000000000"
    function_name: str = "under-test"
    memory_limit_in_mb: int = 256
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:000000000000:function:under-test"
    identity: Any = field(default_factory=SimpleNamespace)

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


def browser_of(user: User, *, token: str | None = None) -> Browser:
    """A browser where the user is signed in, with a new session or with the session of `token`."""
    if token is None:
        _, token = start_session(user, now=clock.now())
    return Browser(cookies={SESSION_COOKIE: quote(f"{token}.{sign(token)}", safe="")})


@cache
def _routes() -> Routes:
    return Routes(template().routes)


def invoke(handler: str, event: dict[str, Any], context: Context | None = None) -> Any:
    """Call a function by its handler in the template. AWS calls without a permission fail, and so does reading an
    option without its variable.
    """
    module, _, name = handler.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    with held_to_its_grants(handler), only_its_variables(handler):
        return function(event, context or Context())


def request_event(
    method: str, path: str, query: str, headers: Sequence[tuple[str, str]], body: bytes
) -> tuple[Function, dict[str, Any]]:
    """The function for a request by the template's routes, and the event that the gateway sends to it."""
    found = _routes().find(method, path)
    assert found is not None, f"the template has no route {method} {path}"
    function, route_key, path_parameters = found
    event = build_http_event(
        method,
        path,
        query,
        list(headers),
        body,
        route_key=route_key,
        path_parameters=path_parameters,
        source_ip="192.0.2.1",
        request_id="request-1",
        now=datetime.now(UTC),
        domain_name=DOMAIN,
    )
    return function, event


def deliver(method: str, path: str, query: str, headers: Sequence[tuple[str, str]], body: bytes) -> Reply:
    function, event = request_event(method, path, query, headers, body)
    # moto replies in this process, so only a busy machine can use up the function's time.
    limit_s = 3600 if in_memory() else function.timeout_s
    reply = invoke(function.handler, event, Context(remaining_ms=limit_s * 1000))
    text = reply.get("body") or ""
    content = base64.b64decode(text) if reply.get("isBase64Encoded") else text.encode()
    reply_headers = {name.lower(): value for name, value in reply.get("headers", {}).items()}
    cookies = tuple(reply.get("cookies", []))
    # Every reply in every test must match the OpenAPI document.
    mismatch = undocumented(event["routeKey"], reply["statusCode"], reply_headers, cookies, content)
    assert mismatch is None, mismatch
    return Reply(reply["statusCode"], reply_headers, content, cookies)
