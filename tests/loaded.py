"""The modules that a function imports at its start, in a separate process."""

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]

_DATA_CLASSES = """
import importlib, sys
importlib.import_module(sys.argv[1])
for module in [*sys.modules.values()]:
    for value in vars(module).values():
        if isinstance(value, type) and "__dataclass_fields__" in vars(value):
            print(value.__module__ + "." + value.__qualname__)
"""


def loaded_by(*modules: str) -> set[str]:
    """The names of all modules that are loaded after importing these modules of functions/."""
    return set(_printed(f"import sys, {', '.join(modules)}; print(*sys.modules)").split())


def data_classes_of(module: str) -> set[str]:
    """The names of all data classes that importing this module of functions/ makes."""
    return set(_printed(_DATA_CLASSES, module).split())


def _printed(code: str, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={"PYTHONPATH": str(_ROOT / "functions")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
