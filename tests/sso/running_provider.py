"""An OpenID provider that the operator's command asks: a configuration, keys, and a token endpoint with one client."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote

from tests.web_server import Quiet, listening

CLIENT_ID = "larder"
SECRET = "s3cret/+%:"


@dataclass
class RunningProvider:
    """`configuration` and `keys` are what it publishes. `skew` is how far its clock is ahead."""

    issuer: str = ""
    configuration: dict[str, Any] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=lambda: [{"kty": "RSA", "kid": "1"}])
    secret: str = SECRET
    skew: timedelta = timedelta()
    error: str | None = None
    """What the token endpoint says in place of its check of the client."""

    def document(self, path: str) -> object:
        if path.endswith("/.well-known/openid-configuration"):
            return self.configuration or None
        return {"keys": self.keys} if path.endswith("/keys") else None

    def token_error(self, authorization: str, form: dict[str, list[str]]) -> str:
        if self.error:
            return self.error
        kind, _, pair = authorization.partition(" ")
        if kind == "Basic":
            client_id, _, secret = base64.b64decode(pair).decode().partition(":")
            given = (unquote(client_id), unquote(secret))
        else:
            given = (form.get("client_id", [""])[0], form.get("client_secret", [""])[0])
        return "invalid_grant" if given == (CLIENT_ID, self.secret) else "invalid_client"

    @classmethod
    @contextmanager
    def running(cls) -> "Iterator[RunningProvider]":
        provider = cls()

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                document = provider.document(self.path)
                self._answer(404 if document is None else 200, document)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                error = provider.token_error(self.headers.get("Authorization", ""), parse_qs(body))
                self._answer(401 if error == "invalid_client" else 400, {"error": error})

            def date_time_string(self, timestamp: float | None = None) -> str:
                return format_datetime(datetime.now(UTC) + provider.skew, usegmt=True)

            def _answer(self, status: int, document: object) -> None:
                sent = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

        with listening(Handler) as provider.issuer:
            provider.configuration = {
                "issuer": provider.issuer,
                "authorization_endpoint": f"{provider.issuer}/authorize",
                "token_endpoint": f"{provider.issuer}/token",
                "jwks_uri": f"{provider.issuer}/keys",
                "id_token_signing_alg_values_supported": ["RS256"],
            }
            yield provider
