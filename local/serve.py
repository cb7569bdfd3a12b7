"""Start the local cloud in order, keep it running, and stop it in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from larder.issuers.urls import is_loopback
from larder_cli.files import write_private
from local.banner import banner
from local.child_processes import ChildProcesses
from local.cloudformation import TemplateError
from local.data_folder import DataFolder, DataFolderError, open_data_folder
from local.edge.files import EdgeFiles, has_engine
from local.environment import (
    LOCAL_DEFAULTS,
    cloud_environment,
    function_environment,
    process_environment,
    runtime_environment,
)
from local.event_delivery import EventDelivery
from local.function_pool import FunctionFailed, FunctionPool
from local.gateway.app import Gateway
from local.gateway.hosts import OwnHosts
from local.gateway.throttle import Limits
from local.http_server import http_server, listen, run, url
from local.lambda_invoke import InvokeApi
from local.lambda_runtime.built import Build, BuildError, open_build
from local.lambda_runtime.pool import RuntimePool
from local.outbox.pages import OutboxPages
from local.provider.app import PATH as PROVIDER_PATH
from local.provider.app import LocalProvider
from local.request_log import RequestLog
from local.schedules import run_schedules
from local.services import RunningService, ServiceFailed
from local.sign_in.link import SignInLink
from local.stores import describe_stores, listen_again
from local.template import Function, Template, load_template, unknown_options
from local.turbo_env import TurboEnv, read_turbo_env, write_turbo_env
from local.workers.pool import WorkerPool
from tools import documentation

_LOOPBACK = "127.0.0.1"
_GATEWAY_TIMEOUT_S = 1.5
_S3_TIMEOUT_S = 1.5
_DYNAMODB_TIMEOUT_S = 10.0
_KILLED = 130


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `python -m local serve`."""

    host: str
    port: int
    public_host: str | None
    data: Path
    workers: int
    template: Path
    fsync: bool
    runtime: bool
    tables: str
    expiry_s: int
    limited: Limits
    edge: bool
    provider: bool


def serve(options: Options) -> int:
    """Run until a signal. Returns the exit status. Errors are printed to standard error."""
    try:
        build = open_build(options.template) if options.runtime else None
        if build:
            # Routes and tables come from the built template too.
            options = replace(options, template=build.template)
        template = load_template(options.template, {**LOCAL_DEFAULTS, **os.environ})
        folder = open_data_folder(options.data)
        listener = _listen_in_front(options)
    except (TemplateError, DataFolderError, BuildError) as error:
        print(f"larder: {error}", file=sys.stderr)
        return 1
    if listener is None:
        return 1
    with listener:
        return run(_LocalCloud(options, template, build, folder, listener).run())


_OWN_ADDRESS = {"0.0.0.0": _LOOPBACK, "::": "::1"}  # noqa: S104 - compared, not bound
"""For an address that stands for all of this machine, the one by which only this machine connects."""


class _WrongOption(Exception):
    """The message names the variable and the rule."""


class _LocalCloud:
    def __init__(
        self,
        options: Options,
        template: Template,
        build: Build | None,
        folder: DataFolder,
        listener: socket.socket,
    ) -> None:
        self._options = options
        self._template = template
        self._build = build
        self._folder = folder
        self._listener = listener
        self._public_host = options.public_host or _reachable_host(options.host)
        address, port = listener.getsockname()[:2]
        self._api_url = url(self._public_host, port)
        # The pages of `/_local` answer no other names.
        self._own_url = url(_OWN_ADDRESS.get(address, address), port)
        self._children = ChildProcesses()
        self._log = RequestLog()
        self._tasks: list[asyncio.Task[Any]] = []
        # Held here, so that it stays open while the process of the bucket restarts.
        self._edge = self._edge_listener()

    async def run(self) -> int:
        stop = self._stop_signal()
        async with contextlib.AsyncExitStack() as parts:
            parts.callback(self._log.close)
            try:
                await self._run_until(stop, parts)
            except (ServiceFailed, FunctionFailed, _WrongOption, OSError, TimeoutError) as error:
                self._log.close()
                print(f"larder: {error}", file=sys.stderr, flush=True)
                return 1
            self._log.line("\n  stopping ...")
            return 0

    def _stop_signal(self) -> asyncio.Task[bool]:
        stop_requested = asyncio.Event()

        def stop() -> None:
            if stop_requested.is_set():
                # A second signal stops at once. The journal has every write.
                self._children.kill_all()
                os._exit(_KILLED)
            stop_requested.set()

        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(name, stop)
        return asyncio.create_task(stop_requested.wait())

    async def _run_until(self, stop: asyncio.Task[bool], parts: contextlib.AsyncExitStack) -> None:
        """Start, and return at the signal. Raises the error of a part that fails."""
        async with _background(self._start(parts)) as started:
            await asyncio.wait([started, stop], return_when=asyncio.FIRST_COMPLETED)
            if not started.done():
                return
            started.result()
        await asyncio.wait([*self._tasks, stop], return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            if task.done():
                task.result()

    async def _start(self, parts: contextlib.AsyncExitStack) -> None:
        """Start the parts in order. `parts` stops them in reverse, so that a part never outlives what it needs."""
        # A local cloud that was killed did not delete it.
        self._folder.cloud_json.unlink(missing_ok=True)
        parts.callback(self._children.kill_all)
        wake_read_fd, wake_write_fd = os.pipe()
        dynamodb, s3 = describe_stores(
            self._folder,
            self._options.template,
            host=self._options.host,
            wake_fd=wake_write_fd,
            expiry_s=self._options.expiry_s,
            fsync=self._options.fsync,
            tables=self._options.tables,
            edge_listener=self._edge,
        )
        lambda_listener = listen_again(_LOOPBACK, self._folder.ports().get("lambda", 0))
        self._folder.remember_ports(
            {
                "dynamodb": dynamodb.port,
                "lambda": lambda_listener.getsockname()[1],
                "s3": s3.port,
                "edge": self._edge.getsockname()[1] if self._edge else 0,
            }
        )
        credentials = (self._folder.access_key_id, self._folder.secret_access_key)
        invoke_api = InvokeApi(
            self._folder.invocations, self._template.functions, credentials, self._log
        )
        cloud = cloud_environment(
            self._template.environment,
            credentials=credentials,
            signing_secret=self._folder.signing_secret,
            dynamodb_url=url(_LOOPBACK, dynamodb.port),
            lambda_url=await invoke_api.open(lambda_listener),
            s3_url=url(self._public_host, s3.port),
            edge=self._edge_variables(),
        )
        parts.callback(invoke_api.close)

        stores = []
        for service, timeout_s in ((dynamodb, _DYNAMODB_TIMEOUT_S), (s3, _S3_TIMEOUT_S)):
            running = RunningService(service, self._children, process_environment(cloud), self._log)
            parts.push_async_callback(running.stop, timeout_s)
            stores.append(running)
        workers = self._worker_pool(cloud)
        parts.push_async_callback(workers.stop)
        await asyncio.gather(
            workers.start(),
            asyncio.to_thread(documentation.renew),
            *(store.wait_until_ready() for store in stores),
        )

        had_key = self._folder.turbo_env.exists()
        turbo = issuer = None
        provider_url = self._provider_url(cloud)
        if _has_accounts(self._template):
            await self._check_options(workers)
            turbo = await self._first_start(workers)
            issuer = await self._add_provider(workers, provider_url)

        functions: FunctionPool = workers
        if self._build:
            functions = self._runtime_pool(self._build, cloud)
            parts.push_async_callback(functions.stop)
        for store in stores:
            await self._keep_running(parts, store.keep_running())
        delivery = EventDelivery(
            self._folder.events, self._template.event_rules, functions, self._log
        )
        _wake_on(wake_read_fd, delivery)
        await self._keep_running(parts, delivery.run())
        await self._keep_running(parts, invoke_api.run(functions))
        if self._template.schedules:
            schedules = run_schedules(self._template.schedules, functions, self._log)
            await self._keep_running(parts, schedules)

        app: ASGIApp = Gateway(
            self._template.routes, functions, self._log, limited=self._options.limited
        )
        has_outbox = "LARDER_OUTBOX_TABLE" in cloud
        if has_outbox:
            app = OutboxPages(app, workers)
        if provider_url and issuer:
            app = LocalProvider(app, provider_url, issuer, self._folder.provider_key)
        console_url = None
        if turbo:
            link = app = SignInLink(app, workers)
            console_url = self._own_url + link.path
        app = OwnHosts(app, self._public_host, self._log)
        self._tasks.append(await parts.enter_async_context(_serving(app, self._listener)))
        self._write_cloud_json(cloud)
        parts.callback(self._folder.cloud_json.unlink, missing_ok=True)
        self._log.line(
            banner(
                self._api_url,
                self._folder.path,
                turbo,
                first_start=not had_key,
                operator_emails=cloud["LARDER_OPERATOR_EMAILS"],
                sign_up_policy=cloud["LARDER_SIGN_UP_POLICY"],
                console_url=console_url,
                outbox_url=f"{self._own_url}/_local/outbox" if has_outbox else None,
                edge_url=cloud["LARDER_EDGE_URL"],
                company_url=f"{self._api_url}/sign-in" if issuer else None,
                remarks=self._remarks(),
            )
        )

    async def _keep_running(
        self, parts: contextlib.AsyncExitStack, work: Coroutine[Any, Any, None]
    ) -> None:
        """Run in the background. The local cloud ends when this ends."""
        self._tasks.append(await parts.enter_async_context(_background(work)))

    def _worker_pool(self, cloud: dict[str, str]) -> WorkerPool:
        # Under AWS's runtime, workers only run what is not in the template: the first start and the outbox's pages.
        alone = self._build is None
        return WorkerPool(
            self._children,
            self._template.functions if alone else [],
            function_environment(cloud),
            size=self._options.workers if alone else 1,
            log=self._folder.log("functions"),
            report=self._log.note,
        )

    def _runtime_pool(self, build: Build, cloud: dict[str, str]) -> RuntimePool:
        return RuntimePool(
            self._children,
            build,
            self._template.functions,
            runtime_environment(cloud),
            log=self._folder.log("functions"),
            screen=self._log,
        )

    async def _check_options(self, workers: WorkerPool) -> None:
        checker = Function("CheckOptions", "local.option_check.handler", Path(), 60, 512)
        # In a build, the integrator's functions are in the layers, which this worker does not have.
        await _ask(workers, checker, {"loads": self._build is None})

    async def _first_start(self, workers: WorkerPool) -> TurboEnv:
        known = read_turbo_env(self._folder.turbo_env)
        maker = Function("FirstStart", "local.first_start.handler", Path(), 60, 512)
        made = await _ask(workers, maker, {"token": known.token if known else None})
        token = made.get("token") or (known.token if known else "")
        turbo = TurboEnv(self._api_url, token, made["team"], made["key_id"])
        if turbo != known:
            write_turbo_env(self._folder.turbo_env, turbo)
        return turbo

    def _provider_url(self, cloud: dict[str, str]) -> str | None:
        """The provider's address. None without one: only browsers of this machine could use it."""
        is_own = is_loopback(cloud.get("LARDER_BASE_URL") or self._api_url)
        return self._own_url + PROVIDER_PATH if self._options.provider and is_own else None

    async def _add_provider(self, workers: WorkerPool, url: str | None) -> str | None:
        """Add the provider, or remove one that was there before. Returns its issuer."""
        adder = Function("AddProvider", "local.provider.registration.handler", Path(), 60, 512)
        issuer: str | None = (await _ask(workers, adder, {"url": url}))["issuer"]
        return issuer

    def _edge_listener(self) -> socket.socket | None:
        """The port of the edge. None if the local cloud runs without one."""
        if not self._options.edge or self._template.edge is None or not has_engine():
            return None
        EdgeFiles(self._folder.edge).prepare()
        return listen_again(self._options.host, self._folder.ports().get("edge", 0))

    def _edge_variables(self) -> dict[str, str]:
        if self._edge is None:
            return {"LARDER_EDGE_URL": ""}
        return {
            "LARDER_EDGE_URL": url(self._public_host, self._edge.getsockname()[1]),
            "LARDER_EDGE_KEY": str(EdgeFiles(self._folder.edge).switch),
        }

    def _write_cloud_json(self, cloud: dict[str, str]) -> None:
        description = {"pid": os.getpid(), "api_url": self._api_url, "environment": cloud}
        write_private(self._folder.cloud_json, json.dumps(description, indent=2) + "\n")

    def _remarks(self) -> list[str]:
        remarks = [*self._build.remarks] if self._build else []
        if self._options.edge and self._template.edge and not has_engine():
            remarks.append(
                "There is no edge: quickjs-ng, which runs its functions, has no package for this machine"
            )
        remarks += [
            f"{name} is not a setting of Larder: docs/configuration.md lists them"
            for name in unknown_options(self._template, os.environ)
        ]
        return remarks


@contextlib.asynccontextmanager
async def _background(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run `work` as a task, which ends with the block."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _serving(app: ASGIApp, listener: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """Serve requests on `listener`. At the end, requests in progress get a moment to finish."""
    server = http_server(app)
    async with _background(server.serve(sockets=[listener])) as task:
        try:
            yield task
        finally:
            server.should_exit = True
            await asyncio.wait([task], timeout=_GATEWAY_TIMEOUT_S)


async def _ask(workers: WorkerPool, function: Function, event: dict[str, Any]) -> dict[str, Any]:
    """The reply of one of the local cloud's own functions. Raises _WrongOption if it reports a wrong setting."""
    payload = json.dumps(event).encode("ascii")
    reply: dict[str, Any] = json.loads(await workers.invoke(function, payload, str(uuid.uuid4())))
    if reply.get("wrong"):
        raise _WrongOption(reply["wrong"])
    return reply


def _listen_in_front(options: Options) -> socket.socket | None:
    try:
        return listen(options.host, options.port)
    except OSError as error:
        where = f"{options.host}:{options.port}"
        why = {
            errno.EADDRINUSE: f"port {options.port} is in use: choose another with PORT=...",
            errno.EACCES: f"port {options.port} needs more permissions: choose 1024 or higher with PORT=...",
        }.get(error.errno or 0, f"cannot listen on {where}: {error.strerror or error}")
        print(f"larder: {why}", file=sys.stderr)
    return None


def _reachable_host(host: str) -> str:
    """The host for URLs. When listening on every address, it is the address of outgoing connections."""
    if host not in _OWN_ADDRESS:
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(
                ("192.0.2.1", 9)
            )  # UDP sends nothing here, and the address belongs to no machine
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _has_accounts(template: Template) -> bool:
    return "LARDER_API_KEYS_TABLE" in template.environment


def _wake_on(wake_fd: int, delivery: EventDelivery) -> None:
    """Wake the delivery whenever something is written to the pipe."""
    os.set_blocking(wake_fd, False)

    def wake() -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(wake_fd, 4096)
        delivery.wake()

    asyncio.get_running_loop().add_reader(wake_fd, wake)
