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
from local.cloudformation import TemplateError
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
    parser.add_argument(
        "--edge-socket", type=int, help="descriptor of the listening socket of the edge, if it runs"
    )
    parser.add_argument("--edge", type=Path, help="folder of the edge's keys and states")
    arguments = parser.parse_args()
    end_with_parent()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s s3 %(levelname)s %(message)s")
    logging.getLogger("nanio.app").addFilter(_is_no_disconnect)
    os.set_blocking(arguments.wake_fd, False)
    template = load_template(arguments.template)
    app = object_storage(
        arguments.folder,
        template.buckets,
        (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]),
        events=arguments.events,
        wake_fd=arguments.wake_fd,
    )
    served = [(app, socket.socket(fileno=arguments.socket))]
    if arguments.edge_socket is not None:
        from local.edge.app import Edge
        from local.edge.files import EdgeFiles
        from local.edge.store import Store

        (bucket,), code = template.buckets, template.edge
        if code is None:
            raise TemplateError(f"{arguments.template} has no edge")
        edge = Edge(app, bucket, code, Store(EdgeFiles(arguments.edge)))
        served.append((edge, socket.socket(fileno=arguments.edge_socket)))
    run(_serve(served))
    return 0


def _is_no_disconnect(record: logging.LogRecord) -> bool:
    # A client that disconnects during an upload needs no traceback.
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


async def _serve(served: list[tuple[ASGIApp, socket.socket]]) -> None:
    servers = [(http_server(app), listener) for app, listener in served]

    def stop() -> None:
        for server, _ in servers:
            server.should_exit = True

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    await asyncio.gather(*(server.serve(sockets=[listener]) for server, listener in servers))


if __name__ == "__main__":
    leave(main())
