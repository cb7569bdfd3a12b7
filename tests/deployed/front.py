"""The HTTP API of a deployed stack.

The emulator has the API and its stage, but not the routes, which SAM writes into the API's body. The local cloud's
gateway reads them from the deployed template and serves them, with its limits and with events in payload format 2.0. It
calls the deployed functions with Lambda's Invoke, if the stack permits the API to do so.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from local.function_pool import FunctionFailed
from local.gateway.app import Gateway
from local.http_event import with_binary_body
from local.http_server import http_server, run
from local.request_log import RequestLog
from local.template import Function, Route
from tests.deployed.stack import Stack

_INTEGRATION = "x-amazon-apigateway-integration"
_AT_ONCE = 32
_TIMEOUT_S = 240.0
"""Longer than the gateway's limit, because the emulator unpacks a function's archives at its first event."""


class NotPermitted(Exception):
    """The stack does not let the API invoke the function of a route."""


def routes(stack: Stack) -> list[Route]:
    """The routes of the deployed API. Raises NotPermitted."""
    resources = stack.resources()
    body = stack.template()["Resources"]["HttpApi"]["Properties"]["Body"]
    return [
        _route(stack, resources, method.upper(), path, operation)
        for path, operations in body["paths"].items()
        for method, operation in operations.items()
    ]


def _route(stack: Stack, resources: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> Route:
    logical_id = _function_of(operation[_INTEGRATION])
    name = resources[logical_id]["PhysicalResourceId"]
    _check_permission(stack, name, resources["HttpApi"]["PhysicalResourceId"], method, path)
    return Route(method, path, Function(logical_id, "", Path(), 30, 512, name=name))


def _function_of(integration: dict[str, Any]) -> str:
    assert integration["type"] == "aws_proxy"
    assert integration["payloadFormatVersion"] == "2.0"
    return str(integration["uri"]["Fn::Sub"].partition(".Arn}")[0].rpartition("${")[2])


def _check_permission(stack: Stack, name: str, api: str, method: str, path: str) -> None:
    lambda_ = stack.emulator.client("lambda")
    policy = json.loads(lambda_.get_policy(FunctionName=name)["Policy"])
    # In a permission, a path parameter stands for any text.
    asked = "/".join("x" if part.startswith("{") else part for part in path.split("/"))
    source = f"{api}/$default/{method}{asked}"
    for statement in policy["Statement"]:
        if statement["Principal"] != {"Service": "apigateway.amazonaws.com"}:
            continue
        (allowed,) = statement["Condition"]["ArnLike"].values()
        if fnmatchcase(source, str(allowed).rpartition(":")[2]):
            return
    raise NotPermitted(f"{method} {path}: {name}")


class Invocations:
    """Replaces `local.function_pool.FunctionPool`: uses Lambda's Invoke."""

    def __init__(self, client: Any) -> None:
        self._client = client
        # A thread for each request. asyncio's default pool is too small for a client with many parallel requests.
        self._threads = ThreadPoolExecutor(_AT_ONCE, "invoke")

    async def invoke(self, function: Function, event: bytes, request_id: str, binary_body: bytes = b"") -> bytes:
        loop = asyncio.get_running_loop()
        payload = with_binary_body(event, binary_body)
        return await loop.run_in_executor(self._threads, self._invoke, function.name, payload)

    async def stop(self) -> None:
        self._threads.shutdown(wait=False)

    def _invoke(self, name: str, event: bytes) -> bytes:
        reply = self._client.invoke(FunctionName=name, Payload=event)
        payload: bytes = reply["Payload"].read()
        if "FunctionError" in reply:
            raise FunctionFailed(payload.decode(errors="replace")[:500])
        return payload


@contextmanager
def serving(stack: Stack, port: int, log: Path) -> Iterator[None]:
    """A context that serves the API at this port of the loopback interface. `log` gets a line for each request."""
    with log.open("a") as output, socket.create_server(("127.0.0.1", port)) as listener:
        screen = RequestLog(output)
        functions = Invocations(stack.emulator.client("lambda"))
        server = http_server(Gateway(routes(stack), functions, screen, timeout_s=_TIMEOUT_S))
        thread = threading.Thread(target=lambda: run(server.serve(sockets=[listener])))
        thread.start()
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(10)
            functions._threads.shutdown(wait=False)
            screen.close()
