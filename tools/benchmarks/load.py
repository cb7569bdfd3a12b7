"""The load generator: a node process (peers/load.mjs) that sends requests and reports their durations."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e import node


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to send repeatedly. `{n}` in the path is a new number each time.

    `bytes` is the size of a generated body, `text` is a literal body. With `preflight`, the request goes to the URL
    from OPTIONS, as in `turbo --preflight`. `reply_bytes` is the expected size of the last reply's body, if known.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    bytes: int = 0
    text: str | None = None
    statuses: tuple[int, ...] = (200,)
    reply_bytes: int | None = None
    preflight: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result: the duration, the time of each reply, and the number of each failure.

    `cpu_ms` is the CPU time of the server's processes for all replies together.
    """

    seconds: float
    took_ms: tuple[float, ...]
    failures: Mapping[str, int]
    cpu_ms: float = 0.0

    @property
    def rate(self) -> float:
        """Replies per second."""
        return len(self.took_ms) / self.seconds


class Generator:
    def __init__(self, script: node.Script) -> None:
        self._script = script

    def send(
        self, origin: str, request: Request, *, clients: int, seconds: float, least: int, most: int
    ) -> Outcome:
        """Send requests for `seconds`, but at least `least` and at most `most` of them."""
        job: dict[str, Any] = {
            "origin": origin,
            "method": request.method,
            "path": request.path,
            "headers": dict(request.headers),
            "bytes": request.bytes,
            "text": request.text,
            "statuses": request.statuses,
            "reply_bytes": request.reply_bytes,
            "preflight": request.preflight,
            "clients": clients,
            "seconds": seconds,
            "least": least,
            "most": most,
        }
        self._script.send(job)
        line = self._script.answer()
        if not line:
            raise RuntimeError("the load generator has ended")
        answer = json.loads(line)
        return Outcome(answer["seconds"], tuple(answer["took_ms"]), answer["failures"])


@contextlib.contextmanager
def generator(npm: Path) -> Iterator[Generator]:
    with node.script(npm, "load.mjs") as script:
        yield Generator(script)
