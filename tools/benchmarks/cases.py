"""The requests to the servers: the same for each, in the form that it expects."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from tests.catalogue import TURBO
from tools.benchmarks.load import Generator, Request
from tools.benchmarks.servers import LARDER, Server

SIZES = {"10 KB": 10_000, "1 MB": 1_000_000, "120 MB": 120_000_000}
_THROUGH_THE_API = 4_000_000
"""Larger artifacts are uploaded as by `turbo --preflight`."""

_PASSWORD = "correct horse battery staple"  # noqa: S105 - of a user of this run
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Case:
    """Makes a request for a server, which so many clients send for a second, at most `most` times together.

    A `large` one is sent once by each client.
    """

    name: str
    request: Callable[[Server], Request]
    most: int = 100_000
    large: bool = False

    @property
    def clients(self) -> int:
        # The peer holds complete bodies in memory.
        return 4 if self.large else 16


def artifact_cases(prefix: str) -> list[Case]:
    """The cases of a cache. Hashes begin with `prefix`. `store` uploads the artifacts of GET."""
    return [
        _on_size(method, name, size, prefix)
        for name, size in SIZES.items()
        for method in ("GET", "PUT")
    ]


def _on_size(method: str, name: str, size: int, prefix: str) -> Case:
    def request(server: Server) -> Request:
        if method == "GET":
            return download(server, _stored(prefix, name), size)
        # Each upload has a new hash, because replacing an artifact takes a different path.
        return upload(server, f"{prefix}{secrets.token_hex(3)}{{n}}", size)

    is_large = size > _THROUGH_THE_API
    return Case(f"{method} {name}", request, most=400, large=is_large)


def store(generator: Generator, server: Server, prefix: str) -> None:
    """Upload the artifacts that the cases read."""
    for name, size in SIZES.items():
        request = upload(server, _stored(prefix, name), size)
        outcome = generator.send(server.url, request, clients=1, seconds=0, least=1, most=1)
        if outcome.failures:
            raise RuntimeError(f"{server.name}: PUT of {name}: {dict(outcome.failures)}")


def _stored(prefix: str, name: str) -> str:
    return f"{prefix}{SIZES[name]:012x}"


def download(server: Server, hash: str, size: int) -> Request:
    return Request(
        method="GET",
        path=f"/v8/artifacts/{hash}?slug={server.team}",
        headers=_build_headers(server),
        reply_bytes=size,
    )


def upload(server: Server, hash: str, size: int) -> Request:
    return Request(
        method="PUT",
        path=f"/v8/artifacts/{hash}?slug={server.team}",
        headers={**_build_headers(server), "content-type": "application/octet-stream"},
        bytes=size,
        statuses=(200, 202),
        preflight=server.name == LARDER and size > _THROUGH_THE_API,
    )


def _build_headers(server: Server) -> dict[str, str]:
    return {
        "authorization": f"Bearer {server.token}",
        "user-agent": TURBO,
    }


@dataclass(frozen=True, slots=True)
class Person:
    """A user with an account on a server: their address, cookie and key."""

    email: str
    cookie: str
    key: str


def sign_up(server: Server) -> Person:
    """Create an account with a session and a key."""
    email = f"{secrets.token_hex(6)}@bench.example"
    headers = {"origin": server.url}
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=60) as client:
        new = {"email": email, "password": _PASSWORD, "name": "Bench"}
        client.post("/api/auth/sign-up/email", json=new).raise_for_status()
        made = client.post("/api/auth/api-key/create", json={"name": "bench"})
        made.raise_for_status()
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    return Person(email, cookie, made.json()["key"])


def account_cases(people: dict[str, Person]) -> list[Case]:
    """The cases for account servers. `people` has a user for each server, by its name."""

    def verification(server: Server) -> Request:
        text = json.dumps({"key": people[server.name].key})
        return _post(server, "/api/auth/api-key/verify", text)

    def session(server: Server) -> Request:
        headers = {"cookie": people[server.name].cookie, "origin": server.url}
        return Request(method="GET", path="/api/auth/get-session", headers=headers)

    def sign_in(server: Server) -> Request:
        text = json.dumps({"email": people[server.name].email, "password": _PASSWORD})
        return _post(server, "/api/auth/sign-in/email", text)

    return [
        Case("key verification", verification),
        Case("session lookup", session),
        Case("sign-in", sign_in),
    ]


def _post(server: Server, path: str, text: str) -> Request:
    return Request(method="POST", path=path, headers={**_JSON, "origin": server.url}, text=text)
