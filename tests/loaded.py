"""What is imported when a function starts, in a process of its own."""

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def loaded_by(*modules: str) -> set[str]:
    """The names of all modules that are loaded once these of functions/ are imported."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {', '.join(modules)}; print(*sys.modules)"],
        env={"PYTHONPATH": str(_ROOT / "functions")},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())
