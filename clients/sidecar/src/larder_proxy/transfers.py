"""What Larder and its storage give back for a request."""

from __future__ import annotations

from collections.abc import Generator

from larder_proxy.connections import Reply
from larder_proxy.spool import Body, NoRoom, Spool


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

    def close(self) -> None:
        self.blocks.close()
        # A generator that has not started closes nothing.
        self._reply.close()

    def kept(self, spool: Spool) -> Kept | None:
        """All of it, None if it is cut. Raises NoRoom, whose blocks are then those of the download."""
        try:
            body = spool.take(self.blocks, self.size)
        except NoRoom as full:
            full.on_close = self.close
            raise
        except (ValueError, OSError):
            self.close()
            return None
        self.close()
        return Kept(body, self.headers)


class Kept:
    """A hit whose body is here. Close it at the end."""

    def __init__(self, body: Body, headers: dict[str, str]) -> None:
        self.body, self.headers, self.size = body, headers, body.size
        self.close = body.close


class Answer:
    """An answer of Larder to a request that is passed on."""

    def __init__(self, status: int, content: bytes) -> None:
        self.status, self.content = status, content
