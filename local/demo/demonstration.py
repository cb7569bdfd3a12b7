"""The steps of the demo."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from local.demo.company import Browser
from local.demo.sample import PACKAGES, outputs, wipe, write_sample
from local.provider.app import ID
from local.provider.people import PEOPLE
from local.turbo_env import TurboEnv, read_turbo_env

_REPOSITORY = Path(__file__).resolve().parents[2]
_START_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 15.0
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class DemoError(Exception):
    """The demo cannot go on. The message says why and what to do."""


def demo(data: Path) -> int:
    """Run the demo against the local cloud on `data`, or a temporary one. Returns the exit status."""
    try:
        _check_tools()
        with tempfile.TemporaryDirectory(prefix="larder-demo-") as folder:
            _demonstrate(Path(folder), data)
    except DemoError as error:
        print(f"larder: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _check_tools() -> None:
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise DemoError(
                f"the demo needs {tool}, which is not installed: see https://nodejs.org"
            )


def _demonstrate(folder: Path, data: Path) -> None:
    monorepo = folder / "monorepo"
    _say(f"1. A sample monorepo with {PACKAGES} packages, and turbo from npm")
    write_sample(monorepo, secrets.token_hex(8))
    _install(monorepo)
    with _cloud(data, folder / "data") as (used, turbo):
        _say("3. The first build: nothing is in the cache yet")
        first_s, _ = _build(monorepo, turbo)
        made = outputs(monorepo)
        _say("4. Delete all outputs and turbo's local cache, as on another machine")
        wipe(monorepo)
        _say("5. The second build: everything comes from Larder")
        second_s, report = _build(monorepo, turbo)
        _say("6. Company sign-in: the group eng of Example Company gets a role in the team")
        _show_company(used, turbo)
    if "FULL TURBO" not in report:
        raise DemoError("the second build did not come entirely from the cache")
    if outputs(monorepo) != made:
        raise DemoError("the restored outputs differ from the built ones")
    _say(
        f"FULL TURBO: {len(made)} outputs restored, byte for byte;"
        f" {first_s:.1f} s became {second_s:.1f} s"
    )


def _show_company(data: Path, turbo: TurboEnv) -> None:
    """Map a group to a role, and sign in as a person of the group."""
    person = next(one for one in PEOPLE.values() if "eng" in one.groups)
    mapping = ["sso", "map", ID, "--group", "eng", "--team", turbo.team, "--role", "DEVELOPER"]
    print(f"   $ larder {' '.join(mapping)}", flush=True)
    command = [str(Path(sys.executable).with_name("larder")), "--local", str(data), *mapping]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    browser = Browser(turbo.api_url)
    if not browser.sign_in(person):
        print("   This local cloud runs without Example Company (PROVIDER=0).", flush=True)
        return
    if done.returncode:
        raise DemoError(f"larder could not map the group:\n{done.stderr.strip()}")
    role = browser.roles().get(turbo.team)
    if role != "DEVELOPER":
        raise DemoError(f"{person.name} signed in, and has the role {role} in {turbo.team}")
    print(
        f"   {person.name} ({person.email}) signed in, and is a {role} of {turbo.team}", flush=True
    )


def _install(monorepo: Path) -> None:
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"]
    done = subprocess.run(command, cwd=monorepo, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise DemoError(f"npm could not install turbo:\n{done.stderr.strip()}")


@contextlib.contextmanager
def _cloud(data: Path, own: Path) -> Iterator[tuple[Path, TurboEnv]]:
    """The local cloud running on `data`, or else one that runs only for the demo. With the folder of its data."""
    running = _running_cloud(data)
    if running:
        _say(f"2. Use the local cloud running at {running.api_url}")
        yield data, running
        return
    _say("2. Start a local cloud for this demo (none is running)")
    log = own.with_suffix(".log")
    environ = {**os.environ, "PORT": "0", "HOST": "127.0.0.1", "DATA": str(own)}
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "local", "serve", "--end-with-parent"],
            cwd=_REPOSITORY,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield own, _wait_until_up(process, own, log)
    finally:
        # Closing its input ends it. That also happens when the demo is killed.
        process.communicate(timeout=_STOP_TIMEOUT_S)


def _running_cloud(data: Path) -> TurboEnv | None:
    turbo = read_turbo_env(data / "turbo.env")
    try:
        description = json.loads((data / "cloud.json").read_text())
    except (FileNotFoundError, ValueError):
        return None
    return turbo if turbo and _answers(description["api_url"]) else None


def _answers(api_url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        direct.open(f"{api_url}/", timeout=5).close()
    except urllib.error.HTTPError:
        return True  # the gateway runs but has no such route
    except OSError:
        return False
    return True


def _wait_until_up(process: subprocess.Popen[bytes], own: Path, log: Path) -> TurboEnv:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        if (own / "cloud.json").exists() and (turbo := read_turbo_env(own / "turbo.env")):
            return turbo
        time.sleep(0.1)
    raise DemoError(f"the local cloud did not start:\n{log.read_text().strip()}")


def _build(monorepo: Path, turbo: TurboEnv) -> tuple[float, str]:
    """Run turbo. Returns its duration in seconds and its output."""
    # Without the caller's own turbo configuration, and without a proxy.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TURBO_")}
    environ |= dict(line.split("=", 1) for line in turbo.lines())
    environ |= {"TURBO_TELEMETRY_DISABLED": "1", "NO_PROXY": "*", "no_proxy": "*"}
    command = [str(monorepo / "node_modules" / ".bin" / "turbo")]
    command += ["run", "build", "--ui=stream", "--output-logs=hash-only"]
    print(f"   $ turbo {' '.join(command[1:])}", flush=True)
    started = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(  # noqa: S603 - what npm has just installed
        command,
        cwd=monorepo,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            print(f"   | {line.rstrip()}", flush=True)
    if process.returncode:
        raise DemoError(f"turbo failed (exit status {process.returncode})")
    return time.monotonic() - started, _ANSI.sub("", "".join(lines))


def _say(text: str) -> None:
    print(f"\n{text}", flush=True)
