"""The tables and the bucket as services: how to start each, and on which port."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from local.data_folder import DataFolder
from local.http_server import listen
from local.services import Service

TABLES = "local.tables"
"""The module that serves the tables."""

_LOOPBACK = "127.0.0.1"
_OLD_PORT_TIMEOUT_S = 1.0


def describe_stores(
    folder: DataFolder,
    template: Path,
    *,
    host: str,
    wake_fd: int,
    expiry_s: int,
    fsync: bool = False,
    tables: str = TABLES,
    edge_listener: socket.socket | None = None,
) -> tuple[Service, Service]:
    """DynamoDB and S3, which keep their data in `folder` and create the tables and buckets of `template`.

    S3 is reached under `host` and writes a byte to the file descriptor `wake_fd` for each event of an object. With
    `edge_listener`, its process also serves the edge there. `tables` is the module that serves the tables, with more
    arguments.
    """
    edge_fds = [] if edge_listener is None else [edge_listener.fileno()]
    module, *more = tables.split()
    ports, of_template = folder.ports(), ["--template", str(template)]
    dynamodb = Service(
        name="DynamoDB",
        module=module,
        arguments=[
            *more,
            *of_template,
            *("--folder", str(folder.dynamodb)),
            *("--expiry-seconds", str(expiry_s)),
            *(["--fsync"] if fsync else []),
        ],
        listener=listen_again(_LOOPBACK, ports.get("dynamodb", 0)),
        descriptors=[],
        log=folder.log("dynamodb"),
    )
    s3 = Service(
        name="S3",
        module="local.object_storage",
        arguments=[
            *of_template,
            *("--folder", str(folder.s3)),
            *("--events", str(folder.events)),
            *("--wake-fd", str(wake_fd)),
            *(["--edge", str(folder.edge)] if edge_fds else []),
            *(argument for fd in edge_fds for argument in ("--edge-socket", str(fd))),
        ],
        listener=listen_again(host, ports.get("s3", 0)),
        descriptors=[wake_fd, *edge_fds],
        log=folder.log("s3"),
    )
    return dynamodb, s3


def listen_again(host: str, port: int) -> socket.socket:
    """Listen on the port of the last start if it is free, else on any."""
    deadline = time.monotonic() + _OLD_PORT_TIMEOUT_S
    while True:
        try:
            return listen(host, port)
        except OSError:
            # After a kill -9, the old child may need a moment to exit.
            if time.monotonic() > deadline:
                return listen(host, 0)
            time.sleep(0.05)
