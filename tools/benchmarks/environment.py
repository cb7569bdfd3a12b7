"""The environment of the measurements."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def described() -> dict[str, str]:
    memory_kb = int(Path("/proc/meminfo").read_text().split("MemTotal:")[1].split()[0])
    return {
        "processor": f"{os.cpu_count()} cores, {_processor()}",
        "memory": f"{memory_kb / 2**20:.0f} GiB",
        "system": f"Linux {platform.release().partition('-')[0]}",
        "Python": platform.python_version(),
        "node": subprocess.check_output(["node", "--version"], text=True).strip(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
