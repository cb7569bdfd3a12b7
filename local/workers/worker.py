"""`python -m local.workers.worker`: a process that serves events, one at a time, until its parent ends.

Unlike Lambda, one process serves every function, so that a few processes are enough.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from local.child_processes import end_with_parent
from local.function_log import logged_errors
from local.workers.context import Context
from local.workers.messages import Gone, receive, send

Handler = Callable[[Any, Context], Any]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m local.workers.worker", description=__doc__)
    parser.add_argument(
        "--socket", type=int, required=True, help="descriptor of the parent's socket"
    )
    parser.add_argument(
        "--code", action="append", default=[], help="folder to import functions from"
    )
    parser.add_argument("--warm", action="append", default=[], help="handler to import at once")
    arguments = parser.parse_args()
    end_with_parent()
    sys.path[:0] = arguments.code
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Flush, so that the log is complete even if the worker is killed right after.
        sys.stdout.reconfigure(line_buffering=True)
    complaints = Complaints()
    sys.stdout = complaints
    handlers: dict[str, Handler] = {}
    failures = _warm_up(handlers, arguments.warm)
    connection = socket.socket(fileno=arguments.socket)
    try:
        send(connection, {"ready": True, "errors": failures}, b"")
        while True:
            head, body = receive(connection)
            send(connection, *_serve(handlers, complaints, head, body))
    except (Gone, ConnectionError):
        return 0


class Complaints:
    """Standard output, which goes to the log file. It also collects logged errors until `take`."""

    def __init__(self) -> None:
        self._log = sys.stdout
        self._errors: list[str] = []

    def write(self, text: str) -> int:
        self._log.write(text)
        self._errors.extend(logged_errors(text))
        return len(text)

    def flush(self) -> None:
        self._log.flush()

    def take(self) -> list[str]:
        errors, self._errors = self._errors, []
        return errors


def _warm_up(handlers: dict[str, Handler], names: list[str]) -> list[str]:
    """Import the handlers and create the clients. Returns errors, which occur again when the handler is called."""
    failures = []
    for name in names:
        try:
            handlers[name] = _find(name)
        except Exception as error:  # noqa: BLE001 - an import can raise any error
            failures.append(f"cannot import {name}: {type(error).__name__}: {error}")
            traceback.print_exc()
    clients = sys.modules.get("larder.aws")
    if clients is not None:
        clients.dynamodb()
        clients.lambda_()
        clients.s3()
    return failures


def _find(name: str) -> Handler:
    module, _, attribute = name.rpartition(".")
    handler: Handler = getattr(importlib.import_module(module), attribute)
    return handler


def _serve(
    handlers: dict[str, Handler], complaints: Complaints, head: dict[str, Any], body: bytes
) -> tuple[dict[str, Any], bytes]:
    name = head["handler"]
    os.environ["AWS_LAMBDA_FUNCTION_NAME"] = head["function"]
    os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] = str(head["memory_mb"])
    context = Context(
        function_name=head["function"],
        aws_request_id=head["request_id"],
        memory_limit_in_mb=str(head["memory_mb"]),
        deadline_s=time.monotonic() + head["timeout_s"],
    )
    try:
        handler = handlers.get(name) or handlers.setdefault(name, _find(name))
        reply = json.dumps(handler(json.loads(body), context)).encode("utf-8")
        result: dict[str, Any] = {"ok": True}
    except Exception as error:  # noqa: BLE001 - as Lambda handles any error
        traceback.print_exc()
        reply = b""
        result = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    sys.stdout.flush()
    sys.stderr.flush()
    return {**result, "errors": complaints.take()}, reply


if __name__ == "__main__":
    sys.exit(main())
