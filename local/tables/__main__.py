"""`python -m local.tables`: the DynamoDB server as a process of the local cloud."""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import logging
import os
import signal
import socket
import sys
import time
from pathlib import Path

from local.child_processes import end_with_parent, leave
from local.http_server import http_server, run
from local.tables.front import Front
from local.tables.ministack.journal import DamagedJournal, Journal
from local.tables.ministack.journalled import Journalled
from local.template import load_template

_LOCK_TIMEOUT_S = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m local.tables", description=__doc__)
    parser.add_argument(
        "--socket", type=int, required=True, help="file descriptor of the listening socket"
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the tables are kept")
    parser.add_argument(
        "--template", type=Path, required=True, help="the template that names the tables"
    )
    parser.add_argument(
        "--expiry-seconds",
        type=int,
        required=True,
        help="how often items past their time to live are removed",
    )
    parser.add_argument("--fsync", action="store_true", help="flush the disk at every write")
    arguments = parser.parse_args()
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s dynamodb %(levelname)s %(message)s")
    arguments.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (arguments.folder / "lock").open("ab") as lock:
        if not _lock(lock.fileno()):
            print(f"{arguments.folder} is used by another process", file=sys.stderr)
            return 1
        journal = Journal(arguments.folder, fsync=arguments.fsync)
        tables = load_template(arguments.template).tables
        database = Journalled(tables, journal, expiry_s=arguments.expiry_seconds)
        try:
            database.open()
            run(_serve(database, socket.socket(fileno=arguments.socket)))
            database.close()
        except DamagedJournal as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _lock(descriptor: int) -> bool:
    # After a kill -9 of the parent, the old process may need a moment to exit.
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)


async def _serve(database: Journalled, listener: socket.socket) -> None:
    credentials = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    server = http_server(Front(database.answer, credentials))

    def stop() -> None:
        server.should_exit = True

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    database.start_housekeeping()
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    leave(main())
