"""`/_local/provider` in front of the gateway: an OpenID provider for requests from this machine.

It asks for a person at each sign-in, so every login is new, as `prompt=login` and `max_age` require.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from local.provider.grants import LIFE_S, Grant, Grants
from local.provider.keys import SigningKey
from local.provider.markup import people_page
from local.provider.people import PEOPLE
from local.this_machine import is_from_this_machine, is_loopback

PATH = "/_local/provider"
ID = "example"
NAME = "Example Company"
CLIENT_ID = "larder"
CLIENT_SECRET = "of-the-local-cloud"  # noqa: S105 - it protects nothing: anyone on this machine can be anyone
SCOPES = ("openid", "email", "profile", "groups")

_CALLBACKS = "/api/auth/callback/"
_HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none';"
    " form-action 'none'"
)


class LocalProvider:
    """ASGI middleware: handles `/_local/provider/...` and passes the rest to `app`.

    `url` is its address. `issuer` is its name in tokens, the address of the first start.
    """

    def __init__(self, app: ASGIApp, url: str, issuer: str, key_file: Path) -> None:
        self._app = app
        self._url = url
        self._issuer = issuer
        self._key = SigningKey(key_file)
        self._codes = Grants()
        self._tokens = Grants()
        self._router = Router(
            [
                Mount(
                    PATH,
                    routes=[
                        Route("/.well-known/openid-configuration", self._configuration),
                        Route("/keys", self._keys),
                        Route("/authorize", self._authorize),
                        Route("/token", self._token, methods=["POST"]),
                        Route("/userinfo", self._userinfo),
                    ],
                )
            ],
            redirect_slashes=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_own = scope["type"] == "http" and scope["path"].startswith(f"{PATH}/")
        app = self._router if is_own and is_from_this_machine(scope) else self._app
        await app(scope, receive, send)

    async def _configuration(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self._issuer,
                "authorization_endpoint": f"{self._url}/authorize",
                "token_endpoint": f"{self._url}/token",
                "userinfo_endpoint": f"{self._url}/userinfo",
                "jwks_uri": f"{self._url}/keys",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                "scopes_supported": SCOPES,
                "claims_supported": [
                    "sub",
                    "name",
                    "email",
                    "email_verified",
                    "groups",
                    "auth_time",
                ],
            }
        )

    async def _keys(self, _request: Request) -> Response:
        return JSONResponse({"keys": [await asyncio.to_thread(self._key.public)]})

    async def _authorize(self, request: Request) -> Response:
        """The page with the people. With `person`, which its links have, back to the client with a code."""
        asked = request.query_params
        redirect_uri = asked.get("redirect_uri", "")
        if asked.get("client_id") != CLIENT_ID or not self._is_callback(redirect_uri):
            return PlainTextResponse("The client or its redirect URI is unknown.\n", 400)
        if wrong := _wrong(asked):
            return self._back(asked, error=wrong)
        person = PEOPLE.get(asked.get("person", ""))
        if person is None:
            urls = {one: f"?{urlencode({**asked, 'person': one})}" for one in PEOPLE}
            page = people_page(NAME, urls, cancel=self._url_back(asked, error="access_denied"))
            return HTMLResponse(page, headers={**_HEADERS, "content-security-policy": _POLICY})
        grant = Grant(
            person=person,
            redirect_uri=redirect_uri,
            nonce=asked.get("nonce"),
            challenge=asked["code_challenge"],
        )
        return self._back(asked, code=self._codes.add(grant))

    async def _token(self, request: Request) -> Response:
        if not _is_client(request.headers.get("authorization", "")):
            return _refused("invalid_client", 401)
        form = dict(parse_qsl((await request.body()).decode("latin-1")))
        if form.get("grant_type") != "authorization_code":
            return _refused("unsupported_grant_type")
        grant = self._codes.take(form.get("code", ""))
        if (
            grant is None
            or grant.redirect_uri != form.get("redirect_uri")
            or not grant.is_proven_by(form.get("code_verifier", ""))
        ):
            return _refused("invalid_grant")
        return JSONResponse(
            {
                "access_token": self._tokens.add(grant),
                "token_type": "Bearer",
                "expires_in": LIFE_S,
                "id_token": await asyncio.to_thread(self._key.sign, self._claims(grant)),
            },
            headers=_HEADERS,
        )

    async def _userinfo(self, request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        grant = self._tokens.find(token) if scheme.lower() == "bearer" else None
        if grant is None:
            return _refused("invalid_token", 401)
        return JSONResponse(grant.person.claims, headers=_HEADERS)

    def _claims(self, grant: Grant) -> dict[str, Any]:
        now = int(time.time())
        nonce = {} if grant.nonce is None else {"nonce": grant.nonce}
        return {
            **grant.person.claims,
            **nonce,
            "iss": self._issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + LIFE_S,
            "auth_time": grant.signed_in_at,
        }

    def _is_callback(self, redirect_uri: str) -> bool:
        """Whether it is a callback of this local cloud, under any of this machine's names."""
        try:
            parts = urlsplit(redirect_uri)
            is_own = parts.port == urlsplit(self._url).port
        except ValueError:
            return False
        return (
            is_own
            and parts.scheme == "http"
            and (parts.hostname == "localhost" or is_loopback(parts.hostname or ""))
            and parts.path.startswith(_CALLBACKS)
            and not (parts.query or parts.fragment)
        )

    def _back(self, asked: Mapping[str, str], **result: str) -> Response:
        return RedirectResponse(self._url_back(asked, **result), 303, _HEADERS)

    def _url_back(self, asked: Mapping[str, str], **result: str) -> str:
        """The address of the client, with a code or an error, and the issuer (RFC 9207)."""
        state = {"state": asked["state"]} if "state" in asked else {}
        return f"{asked['redirect_uri']}?{urlencode({**result, **state, 'iss': self._issuer})}"


def _wrong(asked: Mapping[str, str]) -> str | None:
    """The error of a request for an authorization, by RFC 6749 and OpenID Connect. None if it has none."""
    if asked.get("response_type") != "code":
        return "unsupported_response_type"
    if "openid" not in asked.get("scope", "").split():
        return "invalid_scope"
    if asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
        return "invalid_request"
    # It could only reply without a page if it remembered who has signed in.
    return "login_required" if asked.get("prompt") == "none" else None


def _is_client(authorization: str) -> bool:
    scheme, _, encoded = authorization.partition(" ")
    try:
        name, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    sent = f"{unquote_plus(name)}:{unquote_plus(secret)}".encode()
    known = f"{CLIENT_ID}:{CLIENT_SECRET}".encode()
    return scheme.lower() == "basic" and secrets.compare_digest(sent, known)


def _refused(error: str, status: int = 400) -> Response:
    headers = {"www-authenticate": "Basic" if error == "invalid_client" else "Bearer"}
    return JSONResponse(
        {"error": error}, status, {**_HEADERS, **(headers if status == 401 else {})}
    )
