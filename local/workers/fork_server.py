"""`python -m local.workers.fork_server`: imports the functions once, and forks the workers from it.

A fork takes milliseconds, where a new process would import every function again, and it shares the memory of the
modules. It is safe because this process has only one thread and serves no requests, so its AWS clients have no
connections yet. Elsewhere, as on macOS, whose system libraries do not support forks, each worker is a new process.

The parent sends one number for each request, and gets one back:

    0     start a worker on the attached socket    its process id
    id    kill this worker                         its exit status, negative for a signal

The workers end when the parent's socket closes, and also if this process is killed: their standard input is a pipe that
it alone can write to.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import struct
import sys
import threading
from typing import NoReturn

from local.child_processes import end_with_parent, ending_with_parent, leave
from local.workers.worker import Functions, parse_arguments, serve

NUMBER = struct.Struct("!i")
START = 0


def main() -> None:
    arguments = parse_arguments("local.workers.fork_server")
    # Nothing imported is garbage, and a collection after a fork would copy the memory of all objects.
    gc.disable()
    with ending_with_parent():
        functions = Functions(arguments.code, arguments.warm) if sys.platform == "linux" else None
    gc.freeze()
    _ForkServer(functions, socket.socket(fileno=arguments.socket)).run()
    leave(0)


class _ForkServer:
    def __init__(self, functions: Functions | None, parent: socket.socket) -> None:
        self._functions = functions
        self._parent = parent
        self._life_line, self._life = os.pipe()
        self._workers: set[int] = set()

    def run(self) -> None:
        """Serve the parent until its socket closes, then kill the workers."""
        with contextlib.suppress(ConnectionError):
            while request := self._receive():
                number, connection = request
                if connection is None:
                    answer = self._end(number)
                else:
                    with connection:
                        answer = self._start(connection)
                self._parent.sendall(NUMBER.pack(answer))
        for pid in list(self._workers):
            self._end(pid)

    def _receive(self) -> tuple[int, socket.socket | None] | None:
        data, descriptors, _, _ = socket.recv_fds(self._parent, NUMBER.size, 1)
        if not data:
            return None
        (number,) = NUMBER.unpack(data)
        return number, socket.socket(fileno=descriptors[0]) if number == START else None

    def _start(self, connection: socket.socket) -> int:
        # A fork would lack the threads that a function started while it was imported.
        if self._functions and threading.active_count() == 1:
            pid = self._fork(self._functions, connection)
        else:
            pid = self._spawn(connection)
        self._workers.add(pid)
        return pid

    def _fork(self, functions: Functions, connection: socket.socket) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._become_worker(functions, connection)
        return pid

    def _become_worker(self, functions: Functions, connection: socket.socket) -> NoReturn:
        gc.enable()
        os.setpgid(0, 0)
        os.dup2(self._life_line, 0)
        os.close(self._life_line)
        os.close(self._life)
        self._parent.close()
        end_with_parent()
        serve(functions, connection)

    def _spawn(self, connection: socket.socket) -> int:
        connection.set_inheritable(True)
        # Of two options `--socket`, the last counts.
        arguments = [*sys.argv[1:], "--socket", str(connection.fileno())]
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "local.workers.worker", *arguments],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, self._life_line, 0)],
            setpgroup=0,
        )

    def _end(self, pid: int) -> int:
        """Kill a worker, unless it has just ended. Returns its exit status."""
        self._workers.remove(pid)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
