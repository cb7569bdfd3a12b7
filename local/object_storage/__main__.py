"""`python -m local.object_storage`: the S3 server as a process of the local cloud."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
from pathlib import Path

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from local.child_processes import end_with_parent, leave
from local.http_server import http_server, run
from local.object_storage.server import object_storage
from local.template import load_template


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m local.object_storage", description=__doc__)
    parser.add_argument(
        "--socket", type=int, required=True, help="descriptor of the listening socket"
    )
    parser.add_argument("--folder", type=Path, required=True, help="folder of the objects")
    parser.add_argument("--events", type=Path, required=True, help="folder for announcements")
    parser.add_argument(
        "--wake-fd",
        type=int,
        required=True,
        help="descriptor of a pipe to write to after each announcement",
    )
    parser.add_argument(
        "--template", type=Path, required=True, help="the template that names the buckets"
    )
    arguments = parser.parse_args()
    end_with_parent()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s s3 %(levelname)s %(message)s")
    logging.getLogger("nanio.app").addFilter(_is_no_disconnect)
    os.set_blocking(arguments.wake_fd, False)
    app = object_storage(
        arguments.folder,
        load_template(arguments.template).buckets,
        (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]),
        events=arguments.events,
        wake_fd=arguments.wake_fd,
    )
    run(_serve(app, socket.socket(fileno=arguments.socket)))
    return 0


def _is_no_disconnect(record: logging.LogRecord) -> bool:
    # A client that disconnects during an upload needs no traceback.
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


async def _serve(app: ASGIApp, listener: socket.socket) -> None:
    server = http_server(app)

    def stop() -> None:
        server.should_exit = True

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    leave(main())
