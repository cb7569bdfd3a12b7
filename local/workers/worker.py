"""`python -m local.workers.worker`: a process that serves events, one at a time, until its parent ends.

Unlike Lambda, one process serves every function, so that a few processes are enough. Most workers are forks of the
fork server (fork_server.py), which runs the same code.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from local.child_processes import end_with_parent, leave
from local.function_log import logged_errors
from local.http_event import add_binary_body
from local.workers.context import Context
from local.workers.messages import Gone, receive, send

Handler = Callable[[Any, Context], Any]


def main() -> None:
    arguments = parse_arguments("local.workers.worker")
    end_with_parent()
    functions = Functions(arguments.code, arguments.warm)
    serve(functions, socket.socket(fileno=arguments.socket))


def serve(functions: Functions, connection: socket.socket) -> NoReturn:
    """Serve the events that arrive on `connection` until it closes, then end the process."""
    status: object = 1
    try:
        functions.serve(connection)
        status = 0
    except SystemExit as ended:
        status = ended.code
    except BaseException:  # noqa: BLE001 - a fork must not return into the code of its parent
        traceback.print_exc()
    finally:
        leave(status if isinstance(status, int) else 1)


def parse_arguments(module: str) -> argparse.Namespace:
    """The command line of a worker and of the fork server."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=__doc__)
    parser.add_argument(
        "--socket", type=int, required=True, help="descriptor of the parent's socket"
    )
    parser.add_argument(
        "--code", action="append", default=[], help="folder to import functions from"
    )
    parser.add_argument("--warm", action="append", default=[], help="handler to import at once")
    return parser.parse_args()


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


class Functions:
    """The functions of this process, imported from `folders`. `warm` names the handlers to import at once."""

    def __init__(self, folders: list[str], warm: list[str]) -> None:
        sys.path[:0] = folders
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Flush, so that the log is complete even if the worker is killed right after.
            sys.stdout.reconfigure(line_buffering=True)
        self._complaints = sys.stdout = Complaints()
        self._handlers: dict[str, Handler] = {}
        self._failures: list[str] = []
        for name in warm:
            self._import(name)
        _create_clients()

    def serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(Gone, ConnectionError):
            send(connection, {"ready": True, "errors": self._failures}, b"")
            while True:
                head, event, binary_body = receive(connection)
                send(connection, *self._invoke(head, event, binary_body))

    def _import(self, name: str) -> None:
        # An error occurs again when the handler is called.
        try:
            self._handlers[name] = _find(name)
        except Exception as error:  # noqa: BLE001 - an import can raise any error
            self._failures.append(f"cannot import {name}: {type(error).__name__}: {error}")
            traceback.print_exc()

    def _invoke(
        self, head: dict[str, Any], payload: bytes, binary_body: memoryview
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
            handler = self._handlers.get(name) or self._handlers.setdefault(name, _find(name))
            event = json.loads(payload)
            if binary_body:
                add_binary_body(event, binary_body)
            reply = json.dumps(handler(event, context)).encode("utf-8")
            result: dict[str, Any] = {"ok": True}
        except Exception as error:  # noqa: BLE001 - as Lambda handles any error
            traceback.print_exc()
            reply = b""
            result = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        sys.stdout.flush()
        sys.stderr.flush()
        return {**result, "errors": self._complaints.take()}, reply


def _find(name: str) -> Handler:
    module, _, attribute = name.rpartition(".")
    handler: Handler = getattr(importlib.import_module(module), attribute)
    return handler


def _create_clients() -> None:
    clients = sys.modules.get("larder.aws")
    if clients is None:
        return
    from larder.settings import SettingsError

    # The function that checks the options reports an invalid one.
    with contextlib.suppress(SettingsError):
        clients.dynamodb()
        clients.lambda_()
        clients.s3()


if __name__ == "__main__":
    main()
