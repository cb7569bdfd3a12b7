"""`larder run`: a build with a sidecar of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from larder_proxy.credentials import SECRETS, NoCredential, read_target
from larder_proxy.listener import TEAM_OF_THE_TOKEN, Listener, environment_for
from larder_proxy.output import print_line
from larder_proxy.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from larder_proxy.reports import Inputs
    from larder_proxy.sidecar import Sidecar

WAIT_SECONDS = 120.0
SIGNAL_SECONDS = 0.2
"""How long a signal may wait. The system can give it to another thread, which does not wake the main one."""


def run(
    build: list[str],
    *,
    wait: float = WAIT_SECONDS,
    id_token_command: str | None = None,
) -> int:
    """Run a build, wait for its uploads, and print one line. Returns the status of the build.

    Without a cache, the build runs all the same.
    """
    environment = dict(os.environ)
    kept = {name: value for name, value in environment.items() if name not in SECRETS}
    try:
        folder = os.getcwd()
        settings = Settings(folder, environment)
        listener = Listener()
    except OSError as error:
        print_line(f"no cache: {error}")
        return _run(build, kept)
    hide_secrets()
    of_the_build = environment_for(listener, kept)
    # Without an address, turbo may have another cache.
    with suppress(NoCredential):
        read_target(settings)
        of_the_build.update(listener.turbo_variables())
        if not settings.team:
            # turbo asks nothing without a team. The token has one.
            of_the_build["TURBO_TEAM"] = TEAM_OF_THE_TOKEN
    began = time.time()
    started: list[tuple[Sidecar, Inputs]] = []

    def start() -> None:
        # Loading them takes as long as all before. The build starts meanwhile, and its first connections wait.
        from larder_proxy.reports import Inputs
        from larder_proxy.sidecar import Sidecar

        inputs = Inputs(environment)
        sidecar = Sidecar(
            environment,
            settings,
            listener,
            id_token_command=id_token_command,
            on_turbo=lambda: inputs.prepare(settings.root),
        )
        started.append((sidecar, inputs))
        # A folder above may be one that this user must not read.
        with suppress(OSError):
            sidecar.expect(build, environment, folder)

    try:
        return _run(build, of_the_build, start)
    finally:
        for sidecar, inputs in started:
            from larder_proxy.reports import new_reports

            sidecar.report(new_reports(folder, environment, began, build, inputs))
            end(sidecar, wait)


def _run(
    build: list[str], environment: Mapping[str, str], has_begun: Callable[[], None] = lambda: None
) -> int:
    """The status of the build, 128 and the number of a signal that ended it."""
    started: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, _: object) -> None:
        if started:
            started[0].send_signal(number)
        else:
            early.append(number)

    def stay(_: int, __: object) -> None:
        """Ctrl-C reaches the build by itself, and the build decides when it ends."""

    handlers: dict[int, Callable[[int, object], None]] = {
        signal.SIGINT: stay,
        signal.SIGTERM: pass_on,
    }
    if hasattr(signal, "SIGHUP"):
        handlers[signal.SIGHUP] = stay if _is_told_with_the_build() else pass_on
    # Before the build starts, so that no signal is lost. The build inherits no handler, but it does inherit an ignored
    # signal, as after nohup.
    former = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        try:
            started.append(subprocess.Popen(build, env=dict(environment), close_fds=False))
        except OSError as error:
            with suppress(OSError, AttributeError):
                print(f"larder run: {build[0]}: {error.strerror}", file=sys.stderr)
            return 127 if isinstance(error, FileNotFoundError) else 126
        for number in early:
            started[0].send_signal(number)
        has_begun()
        waiting = threading.Thread(target=started[0].wait, daemon=True)
        waiting.start()
        while waiting.is_alive():
            waiting.join(SIGNAL_SECONDS)
        status = started[0].wait()
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def hide_secrets() -> None:
    """Keep the environment and the memory of this process from the build, which runs as the same user."""
    if sys.platform == "linux":
        import ctypes

        # PR_SET_DUMPABLE. A program that is started has its own value again.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def _is_told_with_the_build() -> bool:
    """Whether the end of the terminal is a signal to the build, too.

    The system signals the leader of the session, such as a shell, and all processes in front when the leader has ended.
    """
    if os.getsid(0) == os.getpid():
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def end(sidecar: Sidecar, seconds: float) -> None:
    """Wait for the uploads of a sidecar, stop it, and print what it did."""
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        # Another one ends the wait, as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sidecar.close(seconds)
    except KeyboardInterrupt:
        sidecar.close(0)
    counts = sidecar.cache.counts
    reason, lost = sidecar.cache.off, counts.not_stored
    reasons = ", ".join(f"{count} {name}" for name, count in lost.items())
    seconds = sum(sidecar.cache.saved_ms.values()) // 1_000
    print_line(
        (f"no cache: {reason}. " if reason else "")
        + f"{counts.hits} hits{f' ({seconds} s saved)' if seconds else ''}, {counts.misses} misses, "
        f"{counts.stored} stored{f' ({_size(counts.stored_bytes)})' if counts.stored else ''}"
        + (f", {sum(lost.values())} not stored ({reasons})" if lost else "")
        + ("" if counts.hits + counts.misses + counts.stored or lost else ": no tool asked")
    )


def _size(count: int) -> str:
    for unit, size in (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} byte{'s' if count != 1 else ''}"
