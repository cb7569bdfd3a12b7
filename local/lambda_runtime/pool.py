"""Environments by function: an event goes to an idle one or starts a new one. Failed and late ones are ended."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

from local.child_processes import ChildProcesses
from local.http_event import with_binary_body
from local.lambda_runtime.api import HandlerFailed, InitFailed, RuntimeApi
from local.lambda_runtime.built import Build
from local.lambda_runtime.environment import Environment
from local.request_log import RequestLog
from local.template import Function

_AT_ONCE = 4
"""The most environments of one function. Lambda starts up to a thousand, but one machine has few cores."""


class RuntimePool:
    """Starts an environment when none is idle, and keeps it. `screen` shows how long the start took."""

    def __init__(
        self,
        children: ChildProcesses,
        build: Build,
        functions: list[Function],
        environ: dict[str, str],
        *,
        log: Path,
        screen: RequestLog,
    ) -> None:
        self._children = children
        self._build = build
        self._environ = environ
        self._of_some: frozenset[str] = frozenset().union(
            *(function.variables for function in functions)
        )
        self._log = log
        self._screen = screen
        self._turns: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_AT_ONCE))
        # The last to finish is the first to get an event, as in the cloud.
        self._idle: dict[str, list[Environment]] = defaultdict(list)
        self._running: set[Environment] = set()

    async def invoke(
        self, function: Function, event: bytes, request_id: str, binary_body: bytes = b""
    ) -> bytes:
        """As FunctionPool describes it."""
        async with self._turns[function.logical_id]:
            environment = await self._idle_one(function) or await self.start(function)
            healthy = False
            try:
                payload = with_binary_body(event, binary_body)
                reply = await environment.invoke(payload, request_id)
                healthy = True
            except HandlerFailed:
                healthy = True
                raise
            finally:
                if healthy:
                    self._idle[function.logical_id].append(environment)
                else:
                    await self.end(environment)
            return reply

    async def stop(self) -> None:
        """End the environments. Running invocations are cut off."""
        await asyncio.gather(*(self.end(environment) for environment in list(self._running)))

    async def _idle_one(self, function: Function) -> Environment | None:
        idle = self._idle[function.logical_id]
        while idle:
            environment = idle.pop()
            if environment.alive():
                return environment
            await self.end(environment)
        return None

    async def start(self, function: Function) -> Environment:
        """Start an environment of the function. It waits for its first event. Raises FunctionFailed."""
        environment = Environment(function, RuntimeApi(function), self._log, self._screen.note)
        self._running.add(environment)
        try:
            await environment.start(self._children, self._build.command, self._variables(function))
        except BaseException as error:
            await self.end(environment)
            if isinstance(error, InitFailed) and error.frames:
                self._screen.line("".join(error.frames).rstrip())
            raise
        name = function.handler.rpartition(".")[0].rpartition(".")[2]
        self._screen.initialized(name, environment.init_ms)
        return environment

    async def end(self, environment: Environment) -> None:
        await environment.end()
        self._running.discard(environment)

    def _variables(self, function: Function) -> dict[str, str]:
        others = self._of_some - function.variables
        return {
            **{name: value for name, value in self._environ.items() if name not in others},
            "_HANDLER": function.handler,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
            "AWS_LAMBDA_FUNCTION_NAME": function.logical_id,
            "AWS_LAMBDA_LOG_FORMAT": function.log_format,
            **({"AWS_LAMBDA_LOG_LEVEL": "INFO"} if function.log_format == "JSON" else {}),
            "LAMBDA_RUNTIME_DIR": str(self._build.runtime_packages),
            "LAMBDA_TASK_ROOT": str(function.code_folder),
            "PYTHONPATH": self._build.search_path(function),
        }
