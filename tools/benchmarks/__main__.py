"""`python -m tools.benchmarks`: compare Larder with its peers, and write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tools.benchmarks import cases, figures, functions, handler_requests, servers
from tools.benchmarks.environment import described
from tools.benchmarks.load import Generator, Outcome, generator
from tools.benchmarks.report import Run, page
from tools.benchmarks.servers import Server

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs" / "benchmarks.md"
_SECONDS = 1.0
_CALLS = 200
"""Warm calls of a function, in each round."""
_CPU_TURNS, _CPU_CALLS = 15, 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--data", type=Path, help="folder for the data of the servers")
    arguments = parser.parse_args()
    # As in Lambda, where the folder of a function is on the module path.
    sys.path.insert(0, str(_ROOT / "functions"))
    # So that the servers stop too when this process is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="larder-bench-", dir=arguments.data) as folder:
        text = page(_measure(arguments.rounds, Path(folder)))
    _PAGE.write_text(text, encoding="utf-8")
    print(f"{text}\nwritten: {_PAGE.relative_to(_ROOT)}")
    return 0


def _measure(rounds: int, folder: Path) -> Run:
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", flush=True)

    say("installing the peers (first time only)")
    npm = servers.installed(_ROOT / ".tools" / "benchmark-peers")
    say("starting the servers")
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(servers.larder(_ROOT, folder))
        cache = stack.enter_context(servers.remote_cache(npm, folder))
        accounts = stack.enter_context(servers.better_auth(npm, folder))
        load = stack.enter_context(generator(npm))
        measuring = _Measuring(load, rounds, say)
        say("CPU time of the handlers")
        cpu = handler_requests.measure_all(
            folder / "larder", turns=_CPU_TURNS, calls_a_turn=_CPU_CALLS
        )
        prefix = secrets.token_hex(3)
        for server in (ours, cache):
            cases.store(load, server, prefix)
        rows = measuring.compare(cases.artifact_cases(prefix), ours, cache)
        same_role = functions.measure(
            *(folder / "larder", npm, folder / "functions.log"),
            rounds=rounds,
            warm_calls=_CALLS,
            say=say,
        )
        people = {server.name: cases.sign_up(server) for server in (ours, accounts)}
        rows += measuring.compare(cases.account_cases(people), ours, accounts)
        say("done")
        return Run(
            rows=rows,
            same_role=same_role,
            cpu=cpu,
            versions={server.name: server.version for server in (ours, cache, accounts)},
            environment=described(),
            rounds=rounds,
            seconds=time.monotonic() - started,
        )


class _Measuring:
    def __init__(self, load: Generator, rounds: int, say: Callable[[str], None]) -> None:
        self._load = load
        self._rounds = rounds
        self._say = say

    def compare(
        self, asked: Sequence[cases.Case], ours: Server, peer: Server
    ) -> list[figures.Compared]:
        """Send each request in turns, so that other work on the machine affects both. The first server alternates."""
        rows: list[figures.Compared] = []
        for case in asked:
            rounds = []
            for number in range(self._rounds):
                pair = (ours, peer) if number % 2 == 0 else (peer, ours)
                sent = {server.name: self._send(case, server) for server in pair}
                rounds.append((sent[ours.name], sent[peer.name]))
            row = figures.compared(case.name, peer.name, rounds)
            failed = f"  ({row.failures})" if row.failures else ""
            self._say(f"{case.name}: {row.rate:.2f} x as many per second{failed}")
            rows.append(row)
        return rows

    def _send(self, case: cases.Case, server: Server) -> Outcome:
        if case.large:
            return self._counted(case, server, 0, most=case.clients)
        # A warm-up, for everything that is created at first use.
        self._counted(case, server, _SECONDS / 10, most=case.most)
        return self._counted(case, server, _SECONDS, most=case.most)

    def _counted(self, case: cases.Case, server: Server, seconds: float, *, most: int) -> Outcome:
        before = server.cpu_ms()
        outcome = self._load.send(
            server.url,
            case.request(server),
            clients=case.clients,
            seconds=seconds,
            least=case.clients,
            most=most,
        )
        return replace(outcome, cpu_ms=server.cpu_ms() - before)


if __name__ == "__main__":
    sys.exit(main())
