"""The modules that a function imports at its start, in a separate process."""

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def loaded_by(*modules: str) -> set[str]:
    """The names of all modules that are loaded after importing these modules of functions/."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {', '.join(modules)}; print(*sys.modules)"],
        env={"PYTHONPATH": str(_ROOT / "functions")},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())
