"""The requests whose handlers are measured, on a new team in a running local cloud."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from larder import aws, clock
from larder.accounts.service import create_user
from larder.actor import Actor
from larder.api_keys.keys import create_key
from larder.api_keys.properties import NewKey
from larder.artifacts.models import UNPROTECTED, ArtifactHash, ArtifactMetadata, CacheRequest
from larder.artifacts.uploads import store
from larder.teams.teams import create_team
from local.template import Function
from tests.catalogue import TURBO, valid
from tests.layer_on import forget
from tests.requests import request_event
from tools.benchmarks.handler_cpu import Case, Event, HandlerCpu, measure

_EVENT = valid("POST /v8/artifacts/events", hash="small").json[0]
_SMALL, _LARGE = b"small artifact", b"large artifact" * 30_000


def measure_all(data: Path, *, turns: int, calls_a_turn: int) -> list[HandlerCpu]:
    """Measure each request. The layer runs in this process, on the stores of the local cloud in the folder `data`."""
    with layer_on(data):
        return [
            measure(case, turns=turns, calls_a_turn=calls_a_turn)
            for case in requests_of_a_new_team()
        ]


@dataclass(frozen=True, slots=True)
class Team:
    """A new team and a key for it."""

    slug: str
    token: str

    def request(self, method: str, path: str, body: bytes = b"") -> tuple[Function, Event]:
        """A request of a build: the function in the template, and the event that the gateway sends to it."""
        headers = [
            ("authorization", f"Bearer {self.token}"),
            ("host", "127.0.0.1:3000"),
            ("user-agent", TURBO),
            ("accept", "*/*"),
            ("content-type", "application/octet-stream" if method == "PUT" else "application/json"),
            ("content-length", str(len(body))),
            ("x-forwarded-proto", "http"),
        ]
        return request_event(method, path, f"slug={self.slug}", headers, body)


def new_team(bodies: Mapping[str, bytes]) -> Team:
    """A new team with these artifacts, by hash."""
    now, slug = clock.now(), f"bench-{secrets.token_hex(6)}"
    owner = create_user(f"{slug}@bench.example", "Owner", now=now)
    team = create_team(slug, slug, owner_user_id=owner.id, now=now)
    key, token = create_key(NewKey(user_id=owner.id, team_id=team.id), now=now)
    for hash, body in bodies.items():
        store(
            CacheRequest(
                owner=team.id,
                hash=ArtifactHash(hash),
                writer=Actor(key.id, owner.id),
                view=UNPROTECTED,
                now=now,
            ),
            body,
            ArtifactMetadata(),
        )
    return Team(slug, token)


def requests_of_a_new_team() -> list[Case]:
    """The requests that builds wait for, with a key of a new team."""
    team = new_team({"small": _SMALL, "large": _LARGE})

    def case(name: str, method: str, path: str, body: bytes = b"") -> Case:
        function, event = team.request(method, path, body)
        return Case(name, function.handler, event)

    return [
        case("GET redirect", "GET", "/v8/artifacts/large"),
        case("HEAD", "HEAD", "/v8/artifacts/small"),
        case("status", "GET", "/v8/artifacts/status"),
        case("events of 80", "POST", "/v8/artifacts/events", json.dumps([_EVENT] * 80).encode()),
        case("event", "POST", "/v8/artifacts/events", json.dumps([_EVENT]).encode()),
    ]


@contextmanager
def layer_on(data: Path) -> Iterator[dict[str, str]]:
    """The layer in this process, on the stores of the local cloud in the folder `data`. Yields its variables."""
    described = json.loads((data / "cloud.json").read_text())
    before = dict(os.environ)
    # As in Lambda: elsewhere, and with variables of this machine, the layer calls AWS by boto3.
    for name in aws.ONLY_BOTO3_KNOWS:
        os.environ.pop(name, None)
    os.environ.update(described["environment"], AWS_LAMBDA_FUNCTION_NAME="benchmark")
    forget()
    try:
        yield described["environment"]
    finally:
        os.environ.clear()
        os.environ.update(before)
        forget()
