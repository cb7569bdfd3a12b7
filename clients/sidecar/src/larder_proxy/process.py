"""`larder proxy`: a sidecar as a process of its own, for tools with daemons that outlive a command."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from larder_proxy.clients import CLIENTS
from larder_proxy.connections import Pool
from larder_proxy.credentials import NoCredential, read_target
from larder_proxy.files import write_private
from larder_proxy.listener import HOST, Listener, variables_for
from larder_proxy.output import print_line
from larder_proxy.run import SIGNAL_SECONDS, WAIT_SECONDS, end, hide_secrets
from larder_proxy.server import STATUS
from larder_proxy.settings import Settings
from larder_proxy.sidecar import Sidecar

PORT = 31_237
"""Below those that systems give to outgoing connections."""

_START_SECONDS = 10
_OTHER_STARTS_SECONDS = 1


class Problem(Exception):
    """The process does not run, or does not start. The message says what to do."""


class State(NamedTuple):
    """A running process. `whose` names the address, the team and the credential that it uses."""

    pid: int
    port: int
    token: str
    whose: str = ""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


def start(port: int = PORT) -> State:
    """Start the process, if it does not run already. Raises Problem, also if it is one of another team or key."""
    try:
        whose = _whose()
        known = _known(whose)
        if known is not None:
            return known
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (NoCredential, OSError) as error:
        raise Problem(f"larder proxy did not start: {error}") from error
    log = file.with_suffix(".log")
    # From an installed package, or from larder.pyz.
    own = ["-m", "larder_proxy"] if Path(__file__).exists() else [sys.argv[0]]
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, *own, "proxy", "serve", "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    ends = time.monotonic() + _START_SECONDS
    while time.monotonic() < ends and process.poll() is None:
        state = _read()
        if state is not None and state.pid == process.pid and _counts(state) is not None:
            return state
        time.sleep(0.05)
    process.kill()
    # Another command may have started one at the same time, which has the port, but not written its file yet.
    ends = time.monotonic() + _OTHER_STARTS_SECONDS
    while time.monotonic() < ends:
        known = _known(whose)
        if known is not None:
            return known
        time.sleep(0.05)
    raise Problem(f"larder proxy did not start: {log.read_text().strip() or 'it does not answer'}")


def _whose() -> str:
    """The address, the team and a digest of the credential. Raises NoCredential."""
    # Of no folder: the process outlives the command that starts it, and serves others.
    settings = Settings(None, os.environ)
    target = read_target(settings)
    names = ("LARDER_TOKEN", "TURBO_TOKEN", "LARDER_RULE", "GITHUB_RUN_ID", "CI_JOB_ID")
    # Each job of a CI has a credential of its own.
    found = [*map(os.environ.get, names), settings.text("token")]
    key = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:12]
    return f"{target.team_id or target.team or 'the team of the token'} at {target.url}, credential {key}"


def _known(whose: str) -> State | None:
    """The process, if it runs. Raises Problem if it is not that of the same address, team and credential."""
    known = _read()
    if known is None or _counts(known) is None:
        return None
    if known.whose != whose:
        raise Problem(
            f"larder proxy runs for {known.whose}, and this is {whose}. Stop it there, or start this one with "
            "another XDG_RUNTIME_DIR and --port 0"
        )
    return known


def serve(port: int) -> int:
    """Be the process, until SIGTERM or Ctrl-C. Returns its status."""
    try:
        whose, settings = _whose(), Settings(None, os.environ)
        listener = Listener(port)
    except (NoCredential, OSError) as error:
        print_line(str(error))
        return 1
    hide_secrets()
    sidecar = Sidecar(os.environ, settings, listener)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    file = _file()
    write_private(str(file), [os.getpid(), listener.port, listener.token, whose])
    try:
        # A signal that another thread gets, or that arrives just before the wait, does not end the wait.
        while not ended.wait(SIGNAL_SECONDS):
            pass
        # Another Ctrl-C ends the wait for uploads.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        end(sidecar, WAIT_SECONDS)
    finally:
        # Another process may have started on another port meanwhile.
        known = _read()
        if known is not None and known.pid == os.getpid():
            file.unlink()
    return 0


def stop() -> None:
    """Have the process wait for its uploads and end. Raises Problem if it does not run."""
    state = running()
    # Another job may still use that of another team.
    with suppress(NoCredential):
        _known(_whose())
    os.kill(state.pid, signal.SIGTERM)
    ends = time.monotonic() + WAIT_SECONDS
    # The last thing that the process does is to remove its file.
    while _read() == state and time.monotonic() < ends:
        time.sleep(0.1)


def running() -> State:
    """The process. Raises Problem."""
    state = _read()
    if state is None or _counts(state) is None:
        raise Problem("larder proxy does not run. Start it with: larder proxy start")
    return state


def counts() -> dict[str, Any]:
    """What the process has done. Raises Problem."""
    state = running()
    return {"for": state.whose, **(_counts(state) or {})}


def variables(tool: str | None = None) -> dict[str, str]:
    """What makes the tools, or one of them, use the process. Raises Problem."""
    state = running()
    wanted = {"LARDER_PROXY", "LARDER_PROXY_TOKEN", "NO_PROXY", "no_proxy"}
    for client in CLIENTS:
        if tool in (None, client.tool):
            # A port for one build only would differ in each shell.
            wanted |= {name for name, one in client.variables.items() if one != "{free_port}"}
    known = variables_for(state.port, state.token, os.environ)
    return {name: value for name, value in known.items() if name in wanted}


def _file() -> Path:
    """In a folder of this user."""
    base = os.environ.get("XDG_RUNTIME_DIR") or os.environ.get("LOCALAPPDATA")
    if base is None:
        try:
            base = str(Path(os.environ.get("HOME") or Path.home()) / ".cache")
        except RuntimeError as error:
            raise Problem("HOME must be the folder of this user") from error
    return Path(base) / "larder" / "proxy.json"


def _read() -> State | None:
    try:
        pid, port, token, whose = json.loads(_file().read_text())
        state = State(int(pid), int(port), str(token), str(whose))
    except (OSError, ValueError, TypeError):
        return None
    return state if _is_own(state.pid) else None


def _is_own(pid: int) -> bool:
    """Whether this is a process of this user. After one was killed, others can listen at its port."""
    if os.name == "nt":
        # There, the call would be Ctrl-C.
        return True
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _counts(state: State) -> dict[str, Any] | None:
    """What the process says of itself. None if it does not answer."""
    pool = Pool({})
    try:
        headers = {"Authorization": f"Bearer {state.token}"}
        found = json.loads(pool.request("GET", f"{state.url}{STATUS}", headers).read())
    except (OSError, ValueError):
        return None
    finally:
        pool.close()
    return found if isinstance(found, dict) else None
