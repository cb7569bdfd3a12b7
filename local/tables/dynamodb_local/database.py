"""The tables in DynamoDB Local."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import logging
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local.tables.dynamodb_local.engine import Engine, EngineFailed
from local.tables.dynamodb_local.installation import Installation
from local.tables.dynamodb_local.tables import make_tables
from local.tables.front import Reply, refusal
from local.template import Table

log = logging.getLogger("local.tables")

_AT_ONCE = 64
_LOOK_PAUSE_S = 0.2
_STDOUT = 1


class DynamoDbLocal:
    """The tables, in a separate process."""

    def __init__(
        self,
        tables: list[Table],
        installation: Installation,
        folder: Path,
        *,
        lock: int,
        secret_access_key: str,
    ) -> None:
        """`lock` is the descriptor that locks the folder. Java keeps it open, so that only one Java uses the folder."""
        self._tables = tables
        self._installation = installation
        self._folder = folder
        self._lock = lock
        # It names the file of the tables. Unlike the local cloud's own id, it never goes to a client.
        name = hashlib.sha256(b"dynamodb-local" + secret_access_key.encode("ascii")).hexdigest()
        self._access_key_id = name[:32]
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="engine")
        self._engine: Engine | None = None
        self._watch: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start the engine and create the tables. Raises EngineFailed, TablesRefused."""
        self._engine = Engine(
            self._installation,
            self._access_key_id,
            folder=self._folder,
            output=_STDOUT,
            descriptors=[self._lock],
        )
        self._engine.wait_until_ready()
        make_tables(self._tables, self._engine.call)

    def start_housekeeping(self) -> None:
        """End this process when the engine ends, so that both restart together. Needs the event loop."""
        self._watch = asyncio.get_running_loop().create_task(self._end_with_engine())

    def close(self) -> None:
        """End the engine. Raises EngineFailed if it has ended by itself."""
        if self._engine is None or self._engine.ended():
            raise EngineFailed("DynamoDB Local has ended by itself")
        self._engine.stop()

    async def answer(self, action: str, body: bytes) -> Reply:
        """Handle a request, in parallel with others."""
        assert self._engine is not None  # noqa: S101 - opened
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._engine.call, action, body)
        except (OSError, http.client.HTTPException):
            log.exception("%s got no reply", action)
            return refusal("InternalServerError", "Internal server error", status=500)

    async def _end_with_engine(self) -> None:
        # asyncio cannot wait for this process.
        while self._engine and not self._engine.ended():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_PAUSE_S)
        os.kill(os.getpid(), signal.SIGTERM)
