"""Child processes that end when their parent does, however it ends.

Every child's standard input is the read end of one pipe, whose write end the parent alone holds and never writes to.
When the parent ends, even by kill -9, the kernel closes it and every child sees the end of its input.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn


def end_with_parent() -> None:
    """In a child: exit as soon as the parent has ended."""
    _watch_parent(until=None)


@contextlib.contextmanager
def ending_with_parent() -> Iterator[None]:
    """Like `end_with_parent`, but only during the block. No thread is left at its end."""
    until, finished = os.pipe()
    watch = _watch_parent(until)
    try:
        yield
    finally:
        os.close(finished)
        watch.join()
        os.close(until)


def leave(status: int) -> NoReturn:
    """End this process. Unlike sys.exit, it does not take the modules apart, which costs a third of importing them."""
    for output in (sys.stdout, sys.stderr):
        # The reader of a pipe may have ended.
        with contextlib.suppress(OSError, ValueError):
            output.flush()
    os._exit(status)


def _watch_parent(until: int | None) -> threading.Thread:
    # Ctrl-C signals every process of the terminal, but the parent decides when its children stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch = threading.Thread(target=_wait_for_end, args=(until,), name="parent-watch", daemon=True)
    watch.start()
    return watch


def _wait_for_end(until: int | None) -> None:
    while True:
        readable, _, _ = select.select([0] if until is None else [0, until], [], [])
        if until in readable:
            return
        if not os.read(0, 1):
            os._exit(0)


class ChildProcesses:
    """The children of this process."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        self._children: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        environ: dict[str, str],
        descriptors: Sequence[int],
        log: Path,
    ) -> subprocess.Popen[bytes]:
        """Run `python -m <module>` with these open file descriptors. Its output is appended to `log`."""
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
            return self.run(
                [sys.executable, "-m", module, *arguments],
                environ=environ,
                folder=Path(__file__).resolve().parent.parent,
                output=output.fileno(),
                descriptors=descriptors,
            )

    def run(
        self,
        command: Sequence[str],
        *,
        environ: dict[str, str],
        folder: Path,
        output: int,
        descriptors: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Run a command in `folder`, with output to the file descriptor `output`. Raises OSError."""
        child = subprocess.Popen(  # noqa: S603 - our own modules
            command,
            env=environ,
            stdin=self._read_end,
            stdout=output,
            stderr=output,
            pass_fds=tuple(descriptors),
            cwd=folder,
            process_group=0,
        )
        self._children = [known for known in self._children if known.poll() is None]
        self._children.append(child)
        return child

    def kill_all(self) -> None:
        """Kill all running children and wait for them."""
        for child in self._children:
            if child.poll() is None:
                child.kill()
        for child in self._children:
            child.wait()
        self._children.clear()
