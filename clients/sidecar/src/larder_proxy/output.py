"""The lines that people see."""

from __future__ import annotations

import sys
from contextlib import suppress


def print_line(line: str) -> None:
    shown = "".join(char if char.isprintable() else "?" for char in line)
    # A terminal that was closed takes no line.
    with suppress(OSError, ValueError):
        if sys.stderr is None:
            # `print` would take the output of the build.
            return
        print(f"Larder: {shown}", file=sys.stderr, flush=True)
