"""`python -m tools.benchmarks.cold`: measure how fast every built function starts and responds."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from local.__main__ import positive
from tools.benchmarks.cold.bench import bench_cold


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.cold", description=__doc__)
    add = parser.add_argument
    add("functions", nargs="*", help="such as put_artifact; all functions by default")
    add("--rounds", type=positive, default=7, help="environments per function (7)")
    add(
        "--warm-calls",
        type=positive,
        default=20,
        help="calls per environment after the first (20)",
    )
    add("--json", action="store_true", help="print JSON instead of the table")
    add("--write", type=Path, metavar="FILE", help="write the page with the table")
    return bench_cold(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
