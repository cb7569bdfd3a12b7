"""`python -m benchmarks`: compare Larder with its peers, and write docs/benchmarks.md.

QUICK=1 measures less. ONLY measures some cases. Both write nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks import cases, figures, functions, handler_requests, memory, servers
from benchmarks.environment import described
from benchmarks.load import Generator, Outcome, Request, generator
from benchmarks.report import Run, page, summary
from benchmarks.servers import Server

_ROOT = Path(__file__).parent.parent
_TOOLS = _ROOT / ".tools"


@dataclass(frozen=True, slots=True)
class Extent:
    """How much to measure."""

    rounds: int
    seconds: float
    clients: tuple[int, ...]
    largest_bytes: int
    passing_bytes: int
    cpu_turns: int
    cpu_calls: int
    role_rounds: int
    role_calls: int


FULL = Extent(5, 1.0, (1, 4, 16, 64), 10**9, 2_000_000_000, 15, 60, 5, 200)
QUICK = Extent(2, 0.3, (1, 16), 20_000_000, 480_000_000, 5, 40, 2, 50)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        default=bool(os.environ.get("QUICK")),
        help="take 4 minutes (variable: QUICK)",
    )
    parser.add_argument(
        "--only",
        default=os.environ.get("ONLY", ""),
        help="measure only cases whose name contains this text; others are functions, handlers and memory"
        " (variable: ONLY)",
    )
    parser.add_argument(
        "--write", action="store_true", help="write the page even after a partial run"
    )
    parser.add_argument("--data", type=Path, help="folder for the data of the servers")
    arguments = parser.parse_args()
    # As in Lambda, where the folder of a function is on the module path.
    sys.path.insert(0, str(_ROOT / "functions"))
    # So that the servers stop too when this process is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    extent = QUICK if arguments.quick else FULL
    with tempfile.TemporaryDirectory(prefix="larder-bench-", dir=arguments.data) as folder:
        run = _measure(extent, Path(folder), arguments.only)
    print(summary(run))
    if arguments.write or not (arguments.quick or arguments.only):
        # Imported here, because only a full run draws charts, and only `make bench` installs matplotlib.
        from benchmarks.plots import draw

        docs = _ROOT / "docs"
        draw(run, docs / "benchmarks")
        (docs / "benchmarks.md").write_text(page(run), encoding="utf-8")
        print("\nwritten: docs/benchmarks.md and docs/benchmarks/*.svg")
    return 0


def _measure(extent: Extent, folder: Path, only: str) -> Run:
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", flush=True)

    say("installing the peers (first time only)")
    npm = servers.installed(_TOOLS / "benchmark-peers")
    say("starting the servers")
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(servers.larder(_ROOT, folder))
        cache = stack.enter_context(servers.remote_cache(npm, folder))
        accounts = stack.enter_context(servers.better_auth(npm, folder))
        load = stack.enter_context(generator(npm))
        measuring = _Measuring(load, extent, only, say)
        cpu = []
        if only in "handlers":
            say("CPU time of the handlers")
            cpu = handler_requests.measure_all(
                folder / "larder", turns=extent.cpu_turns, calls_a_turn=extent.cpu_calls
            )
        held = None
        if only in "memory":
            held = memory.watch(
                partial(_send_once, load, ours),
                ours,
                folder,
                passing_bytes=extent.passing_bytes,
                say=say,
            )
        prefix = secrets.token_hex(3)
        for server in (ours, cache):
            cases.store(load, server, prefix)
        rows = measuring.compare(cases.artifact_cases(prefix), ours, cache)
        same_role = []
        if only in "functions":
            same_role = functions.measure(
                *(folder / "larder", npm, folder / "functions.log"),
                rounds=extent.role_rounds,
                warm_calls=extent.role_calls,
                say=say,
            )
        people = {server.name: cases.sign_up(server) for server in (ours, accounts)}
        rows += measuring.compare(cases.account_cases(people), ours, accounts)
        every = (ours, cache, accounts)
        peaks = {server.name: server.peaks_mb() for server in every}
        say("done")
        return Run(
            rows=rows,
            same_role=same_role,
            cpu=cpu,
            memory=held,
            peaks=figures.peaks_by_role(peaks),
            versions={server.name: server.version for server in every},
            environment=described(),
            rounds=extent.rounds,
            seconds=time.monotonic() - started,
        )


def _send_once(load: Generator, server: Server, request: Request) -> None:
    outcome = load.send(server.url, request, clients=1, seconds=0, least=1, most=1)
    if outcome.failures:
        raise RuntimeError(f"{request.method} {request.path}: {dict(outcome.failures)}")


class _Measuring:
    def __init__(
        self, load: Generator, extent: Extent, only: str, say: Callable[[str], None]
    ) -> None:
        self._load = load
        self._extent = extent
        self._only = only
        self._say = say

    def compare(
        self, asked: Sequence[cases.Case], ours: Server, peer: Server
    ) -> list[figures.Compared | figures.Alone]:
        rows: list[figures.Compared | figures.Alone] = []
        for case, clients in self._wanted(asked):
            if case.request(peer) is None:
                alone = [self._send(case, ours, clients) for _ in range(self._extent.rounds)]
                rows.append(figures.alone(case.name, clients, peer.name, alone))
            else:
                # In turns, so that other work on the machine affects both. The first one alternates.
                rounds = []
                for number in range(self._extent.rounds):
                    pair = (ours, peer) if number % 2 == 0 else (peer, ours)
                    sent = {server.name: self._send(case, server, clients) for server in pair}
                    rounds.append((sent[ours.name], sent[peer.name]))
                row = figures.compared(case.name, clients, peer.name, rounds)
                self._say(
                    f"{case.name}, {clients} clients: {row.rate:.2f} x as many per second"
                    + (f"  ({row.failures})" if row.failures else "")
                )
                rows.append(row)
        return rows

    def _wanted(self, asked: Sequence[cases.Case]) -> Iterator[tuple[cases.Case, int]]:
        for case in asked:
            too_large = cases.SIZES.get(case.name.partition(" ")[2], 0) > self._extent.largest_bytes
            if self._only not in case.name or too_large:
                continue
            for clients in case.clients:
                if clients in self._extent.clients:
                    yield case, clients

    def _send(self, case: cases.Case, server: Server, clients: int) -> Outcome:
        request = case.request(server)
        assert request is not None
        if case.large:
            times = max(3, clients)
            return self._counted(server, request, clients, 0, times, times)

        def send(seconds: float) -> Outcome:
            return self._counted(server, request, clients, seconds, clients, case.most)

        # A warm-up, for everything that is created at first use.
        send(self._extent.seconds / 10)
        return send(self._extent.seconds)

    def _counted(
        self,
        server: Server,
        request: Request,
        clients: int,
        seconds: float,
        least: int,
        most: int,
    ) -> Outcome:
        before = server.cpu_ms()
        outcome = self._load.send(
            server.url, request, clients=clients, seconds=seconds, least=least, most=most
        )
        return replace(outcome, cpu_ms=server.cpu_ms() - before)


if __name__ == "__main__":
    sys.exit(main())
