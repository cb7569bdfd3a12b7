"""`make bench-deployed`"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.deployed.report import page
from benchmarks.deployed.restores import measure
from benchmarks.environment import described
from benchmarks.paths import modelled

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--packages", type=int, nargs="+", default=[30, 300])
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page to rewrite")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="larder-bench-") as folder, modelled() as model:
        results = [
            one
            for packages in options.packages
            for mix in ("small", "mixed")
            for one in measure(
                model,
                Path(folder),
                ROOT / ".tools" / "turbo",
                packages=packages,
                mix=mix,
                rounds=options.rounds,
                say=lambda text: print(text, flush=True),
            )
        ]
    text = page(results, described(), rounds=options.rounds, seconds=time.monotonic() - started)
    if options.write:
        options.write.write_text(text)
    else:
        print(text)


main()
