"""An OpenID provider on 127.0.0.1 that signs tokens with any claims, and misbehaves on request."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import api_jws
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from larder.issuers.models import SIGN_IN_ALGORITHMS
from larder.sso.models import Endpoints, IdentityProvider
from tests.issuer import rsa_key
from tests.sso.providers import acme
from tests.web_server import Answer, Quiet, listening

CLIENT_ID = "larder"


@cache
def curve_key(name: str) -> Any:
    curves: Mapping[str, Any] = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}
    if name == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return ec.generate_private_key(curves[name]())


def key_for(algorithm: str) -> Any:
    return rsa_key(0) if algorithm[:2] in ("RS", "PS") else curve_key(algorithm)


def jwk_of(key: Any) -> dict[str, Any]:
    """The public part as the provider publishes it."""
    algorithm: Any = OKPAlgorithm
    if isinstance(key, rsa.RSAPrivateKey):
        algorithm = RSAAlgorithm
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        algorithm = ECAlgorithm
    made: dict[str, Any] = json.loads(algorithm.to_jwk(key.public_key()))
    return {name: value for name, value in made.items() if name != "key_ops"}


@dataclass
class Asked:
    """One request that the provider got."""

    method: str
    path: str
    headers: Mapping[str, str]
    form: Mapping[str, str]


@dataclass
class HostileProvider:
    """A provider. `person` are the claims of the person who signs in there; None as a claim leaves it out.

    `checks_pkce` and `sends_issuer` say whether it does what it should. `answers` replaces the reply of a path.
    `tampers` gets each id token.
    """

    url: str
    person: dict[str, Any] = field(
        default_factory=lambda: dict[str, Any](
            sub="ada-1", email="ada@acme.example", email_verified=True, name="Ada Lovelace"
        )
    )
    header: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    keys: dict[str | None, Any] = field(default_factory=lambda: {"first": rsa_key(0)})
    kid: str | None = "first"
    signs_with: Any = None
    published: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] | None = None
    secrets: tuple[str, ...] = ("the-client-secret",)
    checks_pkce: bool = True
    sends_issuer: bool = True
    answers: dict[str, Answer] = field(default_factory=dict)
    tampers: Callable[[str], str] = lambda token: token
    asked: list[Asked] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def settings(self, **changed: Any) -> IdentityProvider:
        """The provider as an operator adds it, with the domain acme.example."""
        endpoints = Endpoints(
            authorization=f"{self.url}/authorize?tenant=1",
            token=f"{self.url}/token?tenant=1",
            jwks=f"{self.url}/keys?tenant=1",
            userinfo=f"{self.url}/userinfo?tenant=1",
            sends_issuer=self.sends_issuer,
            authentication=changed.pop("authentication", "client_secret_basic"),
            algorithms=changed.pop("algorithms", SIGN_IN_ALGORITHMS),
        )
        return acme(issuer=self.url, endpoints=endpoints, **changed)

    def authorize(self, address: str, **changed: Any) -> dict[str, str]:
        """Sign the person in, as a browser does that follows the address. Returns the query of the reply.

        `changed` replaces claims of this person, or leaves them out.
        """
        asked = dict(parse_qsl(urlsplit(address).query))
        code = f"code-{len(self._codes)}"
        claims = {**self.person, "nonce": asked.get("nonce"), **changed}
        self._codes[code] = {
            "claims": json.dumps(claims),
            "challenge": asked["code_challenge"],
            "redirect_uri": asked["redirect_uri"],
        }
        issuer = {"iss": self.url} if self.sends_issuer else {}
        return {"code": code, "state": asked["state"], **issuer}

    def id_token(self, claims: Mapping[str, Any]) -> str:
        now = int(time.time())
        default = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 300}
        merged = {**default, "auth_time": now, **claims}
        present = {name: value for name, value in merged.items() if value is not None}
        key = self.signs_with or self.keys[self.kid]
        header = {**({"kid": self.kid} if self.kid else {}), **self.header}
        text = json.dumps(present).encode()
        return self.tampers(api_jws.encode(text, key, self.algorithm, headers=header))

    def token_reply(self, form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[int, Any]:
        if not self._knows(form, headers):
            return 401, {"error": "invalid_client"}
        issued = self._codes.pop(form.get("code", ""), None)
        if issued is None or issued["redirect_uri"] != form.get("redirect_uri"):
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if self.checks_pkce and challenge != issued["challenge"]:
            return 400, {"error": "invalid_grant"}
        token = self.id_token(json.loads(issued["claims"]))
        return 200, {"id_token": token, "access_token": "access", "token_type": "Bearer"}

    def _knows(self, form: Mapping[str, str], headers: Mapping[str, str]) -> bool:
        sent = form.get("client_secret")
        if basic := headers.get("Authorization", ""):
            _, _, sent = base64.b64decode(basic.removeprefix("Basic ")).decode().partition(":")
        return sent in self.secrets

    def jwks(self) -> dict[str, Any]:
        found = [
            {**({"kid": kid} if kid else {}), "use": "sig", **jwk_of(key), **self.published}
            for kid, key in self.keys.items()
        ]
        return {"keys": found}


@contextmanager
def serving_provider() -> Iterator[HostileProvider]:
    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # http.server calls it
            self._answer({})

        def do_POST(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            self._answer({k: v[-1] for k, v in parse_qs(self.rfile.read(size).decode()).items()})

        def _answer(self, form: dict[str, str]) -> None:
            path, _, query = self.path.partition("?")
            headers = dict(self.headers.items())
            provider.asked.append(Asked(self.command, self.path, headers, form))
            if answer := provider.answers.get(path):
                answer(self)
                return
            # The address of each has a query, which must come along.
            status: int
            document: Any
            if query != "tenant=1":
                status, document = 404, {}
            elif path == "/token":
                status, document = provider.token_reply(form, headers)
            elif path == "/keys":
                status, document = 200, provider.jwks()
            elif path == "/userinfo" and provider.userinfo is not None:
                known = headers.get("Authorization") == "Bearer access"
                status, document = (200, provider.userinfo) if known else (401, {})
            else:
                status, document = 404, {}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

    provider = HostileProvider("")
    with listening(Handler) as provider.url:
        yield provider
