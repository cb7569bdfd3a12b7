"""`make bench-deployed`"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tools.benchmarks.deployed import checks
from tools.benchmarks.deployed.report import Results, page
from tools.benchmarks.deployed.restorer import Restorer
from tools.benchmarks.deployed.restores import Restores, measure
from tools.benchmarks.environment import described
from tools.benchmarks.model import modelled

ROOT = Path(__file__).resolve().parents[3]
_TOOLS = ROOT / ".tools" / "turbo"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of small packages (%(default)s)")
    parser.add_argument("--mixed", type=int, default=3, help="rounds of mixed ones (%(default)s)")
    parser.add_argument("--packages", type=int, nargs="+", default=[30, 300])
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page to rewrite")
    options = parser.parse_args()
    started = time.monotonic()
    shared = Path("/dev/shm")  # noqa: S108  # the folder in it has a name that nobody can guess
    memory = shared if shared.is_dir() else None
    # Other programs of this computer disturb less, and a disk not at all.
    with _first(), tempfile.TemporaryDirectory(prefix="larder-bench-", dir=memory) as folder:
        results = _measured(Path(folder), options.packages, options.rounds, options.mixed)
    text = page(
        results,
        described(),
        rounds=(options.rounds, options.mixed),
        seconds=time.monotonic() - started,
    )
    if options.write:
        options.write.write_text(text)
    else:
        print(text)


@contextlib.contextmanager
def _first() -> Iterator[None]:
    """Have Linux run the programs of this terminal before others, if it allows that."""
    group = Path("/proc/self/autogroup")
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            former = group.read_text().split()[-1]
            group.write_text("-19")
            # Otherwise a program of another session would starve next to those of this terminal.
            stack.callback(group.write_text, former)
        yield


def _measured(folder: Path, packages: list[int], rounds: int, mixed: int) -> Results:
    def made(name: str, number: int, mix: str) -> Restorer:
        own = folder / name
        own.mkdir(exist_ok=True)
        return Restorer(model, own, _TOOLS, packages=number, mix=mix)

    restores: list[Restores] = []
    with modelled() as model:
        for mix, times in (("small", rounds), ("mixed", mixed)):
            for number in packages if times else []:
                one = made(f"{mix}-{number}", number, mix)
                restores += measure(one, rounds=times, say=_say)
        laptops = [made(f"laptop-{number}", 30, "small") for number in range(checks.LAPTOPS)]
        return Results(
            restores,
            checked=checks.real(laptops[0], ROOT, folder, rounds=rounds, say=_say),
            sizes=checks.sizes(laptops[0], rounds=rounds, say=_say),
            morning=checks.morning(laptops, say=_say),
        )


def _say(text: str) -> None:
    print(text, flush=True)


main()
