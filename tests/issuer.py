"""An issuer of id tokens: keys, tokens with any claims and header, and a server that publishes the keys."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt import api_jws
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from larder import clock
from larder.issuers import repository
from tests.web_server import Answer, Quiet, listening

GITHUB = "https://token.actions.githubusercontent.com"
GITLAB = "https://gitlab.com"
ORIGIN = "https://cache.example.com"
"""The origin of the deployment in the tests of functions."""


@cache
def rsa_key(number: int) -> rsa.RSAPrivateKey:
    """One of the RSA keys of the tests. Making one takes a tenth of a second."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class Issuer:
    """The issuer of a CI. `keys` are its key pairs by their id."""

    url: str = GITHUB
    keys: dict[str, Any] = field(default_factory=lambda: dict[str, Any](first=rsa_key(0)))

    @property
    def jwks(self) -> list[dict[str, Any]]:
        return [public(kid, key) for kid, key in self.keys.items()]

    def publish(self) -> None:
        """Store the keys as if a function had just fetched them."""
        repository.add(self.url, None)
        repository.store_keys(self.url, self.jwks, now=clock.now(), until=clock.now())

    def mint(self, claims: Mapping[str, Any], *, header: Mapping[str, Any] | None = None, kid: str = "") -> str:
        """A token with these claims, signed with the key `kid`. None as a claim leaves it out."""
        kid = kid or next(iter(self.keys))
        now = int(time.time())
        default = {"iss": self.url, "aud": ORIGIN, "sub": "x", "iat": now, "exp": now + 300}
        merged = {**default, "jti": str(uuid.uuid4()), **claims}
        present = {name: value for name, value in merged.items() if value is not None}
        key = self.keys[kid]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        # Not jwt.encode, which refuses some of the claims that the tests send.
        return api_jws.encode(json.dumps(present).encode(), key, algorithm, headers={"kid": kid, **(header or {})})


def public(kid: str, key: Any) -> dict[str, Any]:
    kind: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    jwk: dict[str, Any] = json.loads(kind.to_jwk(key.public_key()))
    return {"kid": kid, "use": "sig", **{k: v for k, v in jwk.items() if k != "key_ops"}}


def github_claims(**changed: Any) -> dict[str, Any]:
    """The claims of a job of acme/web on a push to main."""
    return {
        "sub": "repo:acme/web:ref:refs/heads/main",
        "repository": "acme/web",
        "repository_id": "74",
        "repository_owner": "acme",
        "repository_owner_id": "65",
        "ref": "refs/heads/main",
        "ref_type": "branch",
        "ref_protected": "true",
        "event_name": "push",
        "sha": "5f5ff0a1c4c0bdd2ab5d6a1d07a9a6a9b1e6f0aa",
        "run_id": "9914400",
        "job_workflow_ref": "acme/web/.github/workflows/ci.yml@refs/heads/main",
        **changed,
    }


def gitlab_claims(**changed: Any) -> dict[str, Any]:
    """The claims of a job of acme/web on a push to the protected branch main."""
    return {
        "sub": "project_path:acme/web:ref_type:branch:ref:main",
        "project_id": "22",
        "project_path": "acme/web",
        "namespace_id": "72",
        "namespace_path": "acme",
        "ref": "main",
        "ref_type": "branch",
        "ref_path": "refs/heads/main",
        "ref_protected": "true",
        "pipeline_source": "push",
        "pipeline_id": "1212",
        "job_id": "3434",
        "sha": "714a629c0b401fdce83e847fc9589983fc6f46bc",
        **changed,
    }


@dataclass
class Server:
    """A server of documents by path. `answers` replaces the reply of a path, and `asked` are the requested paths."""

    url: str
    documents: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def issuer(self) -> Issuer:
        """An issuer whose keys this server publishes."""
        made = Issuer(self.url)
        self.documents["/.well-known/openid-configuration"] = {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"}
        self.documents["/jwks"] = {"keys": made.jwks}
        return made


@contextmanager
def serving() -> Iterator[Server]:
    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # http.server calls it
            server.asked.append(self.path)
            path = self.path.partition("?")[0]
            if answer := server.answers.get(path):
                answer(self)
                return
            document = server.documents.get(path)
            self.send_response(404 if document is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

    server = Server("")
    with listening(Handler) as server.url:
        yield server
