"""The run: start, call and end an environment of every function, in turn with the baselines, round after round.

Other programs on the machine distort single figures. So the functions take turns: what slows one down also slows down
its neighbours, and each is compared with the bare functions just before and after it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from local.child_processes import ChildProcesses
from local.cloudformation import TemplateError
from local.data_folder import DataFolder, open_data_folder
from local.environment import (
    LOCAL_DEFAULTS,
    cloud_environment,
    function_environment,
    process_environment,
    runtime_environment,
)
from local.function_pool import FunctionFailed
from local.http_server import run, url
from local.lambda_invoke import InvokeApi
from local.lambda_runtime.built import Build, BuildError, open_build
from local.lambda_runtime.environment import Environment
from local.lambda_runtime.pool import RuntimePool
from local.request_log import RequestLog
from local.services import RunningService, ServiceFailed
from local.stores import describe_stores
from local.template import Function, Template, load_template, template_path
from local.workers.pool import WorkerPool
from tools.benchmarks.cold.figures import Life, figures
from tools.benchmarks.cold.report import Run, as_json, as_page, as_table
from tools.benchmarks.cold.tls import TlsFront

BARE, NOTHING = "bare_client", "do_nothing"

_CHOSEN = ("LARDER_AWS_CLIENT",)
"""Options that the caller can set, to compare their values."""
_BEHIND_TLS = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL_S3")
_LOOPBACK = "127.0.0.1"
_BASELINES = Path(__file__).with_name("baselines")
_BETWEEN_BASELINES = 8
_EXPIRY_S = 3600
_STOP_TIMEOUT_S = 5.0


def bench_cold(options: argparse.Namespace) -> int:
    """Measure and print the results. Returns the exit status: 1 if a function failed."""
    try:
        build = open_build(template_path())
        given = {name: os.environ[name] for name in _CHOSEN if name in os.environ}
        template = load_template(build.template, {**LOCAL_DEFAULTS, **given})
        chosen = _chosen(template, options.functions)
        lives = run(_measure(options, build, template, chosen))
    except (BuildError, TemplateError, FunctionFailed, ServiceFailed, TimeoutError) as error:
        print(f"larder: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    rows = figures(lives, bare=BARE)
    made = Run(rows, options.rounds, options.warm_calls, build.versions())
    if options.write:
        options.write.write_text(as_page(made), encoding="utf-8")
    print(as_json(made) if options.json else as_table(made))
    return 1 if any(row.failed for row in rows) else 0


def _chosen(template: Template, names: Sequence[str]) -> list[Function]:
    functions = {_module(function): function for function in template.functions}
    unknown = sorted(set(names) - functions.keys())
    if unknown:
        raise TemplateError(f"no function is named {', '.join(unknown)}")
    return [functions[name] for name in names or functions]


async def _measure(
    options: argparse.Namespace, build: Build, template: Template, chosen: Sequence[Function]
) -> list[Life]:
    turns = list(_turns(chosen, _baselines(template.functions[0]), options.rounds))
    with tempfile.TemporaryDirectory(prefix="larder-bench-") as temporary:
        folder = open_data_folder(Path(temporary, "data"))
        async with _bench(folder, Path(temporary), build, template) as bench:
            return [await bench.live(function, options.warm_calls) for function in turns]


def _baselines(like: Function) -> list[Function]:
    """The baselines, with the settings of `like` and without a layer."""
    return [
        replace(like, logical_id=name, handler=f"{name}.handler", code_folder=_BASELINES, layers=())
        for name in (NOTHING, BARE)
    ]


def _turns(
    chosen: Sequence[Function], baselines: Sequence[Function], rounds: int
) -> Iterator[Function]:
    """The order of the run: all functions, round after round, with the baselines in between."""
    for _ in range(rounds):
        for start in range(0, len(chosen), _BETWEEN_BASELINES):
            yield from baselines
            yield from chosen[start : start + _BETWEEN_BASELINES]
    yield from baselines


class _Bench:
    def __init__(
        self,
        children: ChildProcesses,
        build: Build,
        template: Template,
        cloud: dict[str, str],
        samples: WorkerPool,
        log: Path,
        screen: RequestLog,
    ) -> None:
        self._children = children
        self._build = build
        self._template = template
        self._cloud = cloud
        self._samples = samples
        self._log = log
        self._screen = screen

    async def live(self, function: Function, warm_calls: int) -> Life:
        """Run one environment from its start to its end."""
        life = Life(_module(function), function.memory_mb)
        events, operator = await self._events(function, 1 + warm_calls)
        # Some samples are requests of operators.
        cloud = {**self._cloud, "LARDER_OPERATOR_EMAILS": operator}
        pool = RuntimePool(
            self._children,
            self._build,
            self._template.functions,
            runtime_environment(cloud),
            log=self._log,
            screen=self._screen,
        )
        try:
            environment = await pool.start(function)
            init_cpu_ms = environment.cpu_ms
            first = await _call(environment, events[0])
            cold_cpu_ms = environment.cpu_ms
            warm = [await _call(environment, event) for event in events[1:]]
            return replace(
                life,
                init_ms=environment.init_ms,
                init_cpu_ms=init_cpu_ms,
                cold_ms=environment.init_ms + first.took_ms,
                cold_cpu_ms=cold_cpu_ms,
                warm_ms=tuple(call.took_ms for call in warm),
                peak_mb=environment.peak_mb,
                replies=tuple(call.status for call in [first, *warm]),
            )
        except FunctionFailed as error:
            return replace(life, replies=(str(error),), failed=True)
        finally:
            await pool.stop()

    async def _events(self, function: Function, calls: int) -> tuple[list[bytes], str]:
        if function.code_folder == _BASELINES:
            return [b"{}"] * calls, ""
        maker = Function("Samples", "tools.benchmarks.cold.samples.handler", Path(), 60, 512)
        request = json.dumps({"module": _module(function), "calls": calls}).encode("ascii")
        made = json.loads(await self._samples.invoke(maker, request, str(uuid.uuid4())))
        return [json.dumps(event).encode("utf-8") for event in made["events"]], made["operator"]


@contextlib.asynccontextmanager
async def _bench(
    folder: DataFolder, temporary: Path, build: Build, template: Template
) -> AsyncIterator[_Bench]:
    """Temporary tables and a bucket behind TLS. Invocations between functions are accepted but never run."""
    children, screen = ChildProcesses(), RequestLog(sys.stderr)
    _, wake_fd = os.pipe()
    stores = describe_stores(
        folder, build.template, host=_LOOPBACK, wake_fd=wake_fd, expiry_s=_EXPIRY_S
    )
    credentials = (folder.access_key_id, folder.secret_access_key)
    invocations = InvokeApi(folder.invocations, template.functions, credentials, screen)
    cloud = cloud_environment(
        template.environment,
        credentials=credentials,
        signing_secret=secrets.token_hex(32),
        dynamodb_url=url(_LOOPBACK, stores[0].port),
        lambda_url=await invocations.open(),
        s3_url=url(_LOOPBACK, stores[1].port),
        edge={},
    )
    running = [
        RunningService(store, children, process_environment(cloud), screen) for store in stores
    ]
    log = folder.log("functions")
    samples = WorkerPool(
        children, [], function_environment(cloud), size=1, log=log, report=screen.note
    )
    front = TlsFront(temporary)
    try:
        await asyncio.gather(samples.start(), *(one.wait_until_ready() for one in running))
        fronts = {name: await front.open(cloud[name]) for name in _BEHIND_TLS}
        secured = {**cloud, **fronts, **front.variables}
        yield _Bench(children, build, template, secured, samples, log, screen)
    finally:
        front.close()
        await samples.stop()
        invocations.close()
        for service in running:
            await service.stop(_STOP_TIMEOUT_S)
        children.kill_all()
        screen.close()


class _Call(NamedTuple):
    status: str
    took_ms: float


async def _call(environment: Environment, event: bytes) -> _Call:
    started = time.perf_counter()
    reply = json.loads(await environment.invoke(event, str(uuid.uuid4())))
    took_ms = (time.perf_counter() - started) * 1000
    of_http = isinstance(reply, dict) and "statusCode" in reply
    return _Call(str(reply["statusCode"]) if of_http else "done", took_ms)


def _module(function: Function) -> str:
    return function.handler.split(".")[-2]
