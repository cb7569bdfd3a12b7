"""The interpreters of this computer."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

OLDEST = "3.9"
"""The oldest Python that runs the sidecar."""


def python(version: str) -> str | None:
    """An interpreter of this version that starts, also of pyenv."""
    for candidate in (f"python{version}", *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))):
        found = shutil.which(str(candidate))
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    return None
