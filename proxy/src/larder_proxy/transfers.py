"""What Larder and its storage give back for a request."""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import NamedTuple

from larder_proxy.connections import Reply
from larder_proxy.spool import Body, Spool, SpoolFull


class Upload(Enum):
    """What became of an upload."""

    STORED = "stored"
    REFUSED = "refused"
    FAILED = "failed"


class Download:
    """A hit. `size` bytes come from `blocks`, which ends early if the answer is cut for good. Close it at the end."""

    def __init__(
        self,
        reply: Reply,
        size: int,
        blocks: Generator[bytes, None, None],
        headers: dict[str, str],
    ) -> None:
        self._reply, self.size, self.blocks, self.headers = reply, size, blocks, headers
        self.body: Body | None = None
        """All of it, if it was fetched already."""

    def close(self) -> None:
        if self.body is not None:
            self.body.close()
        self.blocks.close()
        # A generator that has not started closes nothing.
        self._reply.close()


class Answer(NamedTuple):
    """An answer of Larder to a request that is passed on."""

    status: int
    content: bytes


def fetched(download: Download, spool: Spool) -> Body | None:
    """The whole body of a download. None if it is cut, or there is no room for it."""
    if download.body is not None:
        return download.body
    try:
        return spool.take(download.blocks, download.size)
    except (SpoolFull, ValueError, OSError):
        return None
    finally:
        download.close()
