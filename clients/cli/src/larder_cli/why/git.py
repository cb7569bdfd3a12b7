"""Runs git. No program of the repository's configuration runs, and no lock is taken."""

import os
import subprocess
from pathlib import Path

_OFF = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "log.showSignature=false")


def run_git(
    folder: Path, *arguments: str, seconds: float, sent: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Raises OSError, and subprocess.TimeoutExpired after these seconds."""
    off = [word for setting in _OFF for word in ("-c", setting)]
    command = ("git", "--no-optional-locks", *off, *arguments)
    return subprocess.run(  # noqa: S603
        command,
        cwd=folder,
        input=sent,
        capture_output=True,
        timeout=seconds,
        check=False,
    )


def names(listed: bytes) -> list[str]:
    """The texts between NUL characters."""
    return [one for one in listed.decode(errors="surrogateescape").split("\0") if one]
