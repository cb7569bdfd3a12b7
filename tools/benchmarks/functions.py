"""Larder and its peer in the same role: as Lambda functions that store artifacts in S3.

Both run under the Runtime API, one event at a time, with the same events and the same local S3. Larder's functions are
those of `make build`. The peer is its own handler for Lambda, with its S3 storage.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import secrets
import shutil
import statistics
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.child_processes import ChildProcesses
from local.environment import runtime_environment
from local.lambda_runtime.api import RuntimeApi
from local.lambda_runtime.built import Build, open_build
from local.lambda_runtime.environment import Environment
from local.lambda_runtime.pool import RuntimePool
from local.request_log import RequestLog
from local.template import Function, load_template, template_path
from tools.benchmarks.figures import Life, SameRole
from tools.benchmarks.handler_requests import Team, layer_on, new_team

_SIZES = {"10 KB": 10_000, "1 MB": 1_000_000}
_PEER_TOKEN = "a-token-of-the-benchmark"  # noqa: S105 - of a server of this run
_PEER_TEAM = "team_benchmark"
_MEMORY_MB = 2048
"""More than either side needs, because a function over its memory would be killed."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A request that both sides get. `path` and `body` make a new one for each call."""

    name: str
    method: str
    path: Callable[[], str]
    body: bytes = b""


def measure(
    data: Path, npm: Path, log: Path, *, rounds: int, warm_calls: int, say: Callable[[str], None]
) -> list[SameRole]:
    """Measure each request on the stores of the local cloud in the folder `data`. Raises BuildError."""
    bodies = {f"{size:012x}": os.urandom(size) for size in _SIZES.values()}
    with layer_on(data) as cloud:
        team = new_team(bodies)
    build = open_build(template_path())
    return asyncio.run(
        _measure_all(cloud, build, npm, log, team, bodies, rounds=rounds, calls=warm_calls, say=say)
    )


def _cases() -> list[_Case]:
    cases = [
        _Case("status", "GET", lambda: "/v8/artifacts/status"),
        _Case("HEAD", "HEAD", lambda: _stored("10 KB")),
    ]
    for name, size in _SIZES.items():
        cases.append(_Case(f"GET {name}", "GET", lambda name=name: _stored(name)))  # type: ignore[misc]
        cases.append(
            _Case(
                f"PUT {name}", "PUT", lambda: f"/v8/artifacts/{secrets.token_hex(8)}", bytes(size)
            )
        )
    return cases


def _stored(name: str) -> str:
    return f"/v8/artifacts/{_SIZES[name]:012x}"


async def _measure_all(
    cloud: Mapping[str, str],
    build: Build,
    npm: Path,
    log: Path,
    team: Team,
    bodies: Mapping[str, bytes],
    *,
    rounds: int,
    calls: int,
    say: Callable[[str], None],
) -> list[SameRole]:
    peer_team = Team(_PEER_TEAM, _PEER_TOKEN)
    found = []
    async with _sides(cloud, build, npm, log) as (start_ours, start_peer):
        # The peer's artifacts are stored by the peer, so that it finds them.
        async with start_peer(None) as environment:
            for hash, body in bodies.items():
                _, event = peer_team.request("PUT", f"/v8/artifacts/{hash}", body)
                await _call(environment, event)
        for case in _cases():
            pairs = []
            for number in range(rounds):
                lives = {}
                # In turns, so that other work on the machine affects both. The first one alternates.
                for ours in (True, False) if number % 2 == 0 else (False, True):
                    start, side = (start_ours, team) if ours else (start_peer, peer_team)
                    lives[ours] = await _live(start, side, case, calls)
                pairs.append((lives[True], lives[False]))
            row = SameRole(case.name, tuple(pairs))
            say(f"{case.name} as a function: {row.ratio(lambda life: life.warm_cpu_ms):.2f} x CPU")
            found.append(row)
    return found


_Start = Callable[[Function | None], contextlib.AbstractAsyncContextManager[Environment]]


@contextlib.asynccontextmanager
async def _sides(
    cloud: Mapping[str, str], build: Build, npm: Path, log: Path
) -> AsyncIterator[tuple[_Start, _Start]]:
    """What starts an environment of each side and ends it."""
    children, screen = ChildProcesses(), RequestLog(sys.stderr)
    template = load_template(build.template)
    functions = {function.logical_id: function for function in template.functions}
    pool = RuntimePool(
        *(children, build, template.functions, runtime_environment(cloud)),
        log=log,
        # It would show a line for each start.
        screen=RequestLog(io.StringIO()),
    )

    @contextlib.asynccontextmanager
    async def ours(function: Function | None) -> AsyncIterator[Environment]:
        assert function is not None
        environment = await pool.start(functions[function.logical_id])
        try:
            yield environment
        finally:
            await pool.end(environment)

    @contextlib.asynccontextmanager
    async def peer(_: Function | None) -> AsyncIterator[Environment]:
        role = Function("Peer", "lambda.handler", npm, 60, _MEMORY_MB)
        environment = Environment(role, RuntimeApi(role), log, screen.note)
        try:
            await environment.start(children, ["node", "lambda.mjs"], _peer_environment(cloud))
            yield environment
        finally:
            await environment.end()

    try:
        yield ours, peer
    finally:
        children.kill_all()
        screen.close()


def _peer_environment(cloud: Mapping[str, str]) -> dict[str, str]:
    node = shutil.which("node")
    assert node is not None
    return {
        **runtime_environment({}),
        "PATH": str(Path(node).parent),
        "NODE_ENV": "production",
        "LOG_LEVEL": "error",
        "TURBO_TOKEN": _PEER_TOKEN,
        "STORAGE_PROVIDER": "s3",
        "STORAGE_PATH": cloud["LARDER_ARTIFACTS_BUCKET"],
        "S3_ENDPOINT": cloud["AWS_ENDPOINT_URL_S3"],
        "S3_REGION": cloud["AWS_REGION"],
        "S3_ACCESS_KEY": cloud["AWS_ACCESS_KEY_ID"],
        "S3_SECRET_KEY": cloud["AWS_SECRET_ACCESS_KEY"],
        "NO_PROXY": "*",
    }


async def _live(start: _Start, team: Team, case: _Case, calls: int) -> Life:
    function, event = team.request(case.method, case.path(), case.body)
    events = [team.request(case.method, case.path(), case.body)[1] for _ in range(calls)]
    async with start(function) as environment:
        init_ms, init_cpu_ms = environment.init_ms, environment.cpu_ms
        status, first_ms = await _call(environment, event)
        first_cpu_ms = environment.cpu_ms - init_cpu_ms
        before = environment.cpu_ms
        took_ms = [(await _call(environment, event))[1] for event in events]
        return Life(
            init_ms=init_ms,
            init_cpu_ms=init_cpu_ms,
            first_ms=first_ms,
            first_cpu_ms=first_cpu_ms,
            warm_ms=statistics.median(took_ms),
            warm_cpu_ms=(environment.cpu_ms - before) / calls,
            peak_mb=environment.peak_mb,
            status=status,
        )


async def _call(environment: Environment, event: dict[str, Any]) -> tuple[int, float]:
    payload = json.dumps(event).encode("utf-8")
    started = time.perf_counter()
    reply = json.loads(await environment.invoke(payload, str(uuid.uuid4())))
    took_ms = (time.perf_counter() - started) * 1000
    if not 200 <= reply["statusCode"] < 400:
        raise RuntimeError(f"status {reply['statusCode']}: {reply.get('body')}")
    return reply["statusCode"], took_ms
