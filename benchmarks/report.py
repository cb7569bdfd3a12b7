"""What a run is told as: lines for the screen, a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.figures import Alone, Build, Compared, Memory
from benchmarks.handler_cpu import HandlerCpu
from benchmarks.servers import ACCOUNTS_PEER, CACHE_PEER, LARDER


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was measured, and on what. `peaks` has a row for each server and what its processes do."""

    rows: Sequence[Compared | Alone]
    builds: Sequence[Build]
    cpu: Sequence[HandlerCpu]
    memory: Memory | None
    peaks: Sequence[tuple[str, str, int, float]]
    versions: Mapping[str, str]
    environment: Mapping[str, str]
    rounds: int
    seconds: float


_PAGE = """\
# Benchmarks

How Larder's local server does beside others of its kind, as one run of `make bench` measured it. The same command
writes this page anew. Only the ratios are worth something on another machine; the milliseconds say what they were made
of. [benchmarks-cold.md](benchmarks-cold.md) tells how the functions start.

Small requests are where the local server is behind: one machine does for each what the cloud spreads over API Gateway,
Lambda, DynamoDB and S3. A gateway hands it to a function in a process of its own, which sends two or three signed
requests to a DynamoDB that journals each change before it answers. A peer that looks into a folder, or into SQLite in
its own process, answers many in that time. Large artifacts pass through no function: there the storage decides.{floor}

## What it aims at

{aims}

## Against {cache_peer}

{cache_table}

![Requests a second, as a multiple of the peer's](benchmarks/cache.svg)

## Against {accounts_peer}

{accounts_table}

![Requests a second, as a multiple of the peer's](benchmarks/accounts.svg)

## Builds

{builds}

## What a handler costs

CPU time of one warm call of a handler, in one process, divided by that of the bare calls to AWS that it makes. AWS is
answered from memory on both sides: building, signing and parsing count, the network does not. The bare calls are
botocore's with its defaults, one after another. Presigning the URL of a redirect is no call: it counts for the handler
alone. The bar is 2.

{cpu_table}

![CPU of a handler, as a multiple of its bare calls](benchmarks/handlers.svg)

## Memory

The most memory that one process of each kind has held in the whole run.

{peaks_table}

{memory_text}

## How it is measured

- **Ratios** are Larder divided by the peer, both in the same round. There are {rounds} rounds, in turns, and the median
  counts; *rounds* are the least and the most of them. *A second* is answers a second, where more is better. *p50* and
  *p99* are of the time that an answer takes, over all rounds together, where less is better. *CPU ms* is what all
  processes of a server together take for one answer.
- **Clients** send their next request when the last one is answered to its last byte, on connections that stay open. One
  program, in node, sends for all of them, to every server the same; it follows redirects.
- **Uploads** are of a new artifact each. From 20 MB on they go to Larder as `turbo --preflight` sends them: OPTIONS,
  then straight to storage. The peer takes them itself, and holds each as a whole: that is why no more than 16 of 120 MB
  are sent at once.
- **Servers** all run on one machine, on 127.0.0.1; those that are not asked wait. Larder's is `make serve`: the
  functions in processes of their own, behind a gateway with the limits of the cloud's, on a local DynamoDB and a local
  S3 that check every signature. Every upload is flushed to the disk, and every change of a table is journalled, before
  it is answered.
- **{cache_peer}** keeps its artifacts in a folder, which is faster than its going through an S3 server on the same
  machine, and does not flush them. It has one token that it compares; it keeps no events, no users and no figures, and
  answers no query.
- **{accounts_peer}** runs on plain node http with its tables in {tables}, without rate limits; Larder without those
  of addresses. It has no route for the verification of a key: the benchmark gives it the shortest one.
- **Environment:** {environment}. {versions}. The run took {minutes:.0f} minutes.
"""


def page(run: Run) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    return _PAGE.format(
        cache_peer=CACHE_PEER,
        accounts_peer=ACCOUNTS_PEER,
        floor=_floor(run),
        aims=_aims(run),
        cache_table=_comparison(row for row in run.rows if row.peer == CACHE_PEER),
        accounts_table=_comparison(row for row in run.rows if row.peer == ACCOUNTS_PEER),
        builds=_builds_text(run.builds),
        cpu_table=_cpu(run.cpu),
        peaks_table=_peaks(run.peaks),
        memory_text=_memory(run.memory),
        rounds=run.rounds,
        tables=run.versions[ACCOUNTS_PEER].partition(" on ")[2],
        environment=", ".join(f"{name} {value}" for name, value in run.environment.items()),
        versions=versions,
        minutes=run.seconds / 60,
    )


def summary(run: Run) -> str:
    """The same as tables for the screen."""
    parts = [_comparison(run.rows), _builds(run.builds), _cpu(run.cpu), _peaks(run.peaks)]
    return "\n\n".join(part for part in [*parts, _memory(run.memory, plot=False)] if part)


def _floor(run: Run) -> str:
    """What no handler can go below, beside what a peer needs for everything; nothing where it was not measured."""
    bare = {figure.name: figure for figure in run.cpu}.get("HEAD")
    peers = [
        row.peer_cpu_ms for row in run.rows if isinstance(row, Compared) and row.case == "HEAD"
    ]
    if bare is None or not peers:
        return ""
    return (
        "\n\nHow far that can go is measured too. The calls to AWS that a HEAD makes take botocore"
        f" {bare.bare_ms:.2f} ms of CPU\nwithout any server or network behind them (*bare ms* below);"
        f" {CACHE_PEER} takes {min(peers):.2f} to\n{max(peers):.2f} ms for its whole answer (*peer CPU*)."
    )


LARGE = ("GET 20 MB", "PUT 20 MB", "GET 120 MB", "PUT 120 MB")
OF_ACCOUNTS = ("key verification", "session look-up")
MAY_GROW_MB = 25


def _aims(run: Run) -> str:
    """What each aim came to; met if every figure of it is."""
    rows = [
        _aim(f"turbo restores {build.packages} packages no slower", [build.ratio], build.ratio <= 1)
        for build in run.builds
        if build.heat == "warm"
    ]
    for case in (*LARGE, *OF_ACCOUNTS):
        rates = [row.rate for row in run.rows if isinstance(row, Compared) and row.case == case]
        if rates:
            rows.append(_aim(f"{case}: more a second than the peer", rates, min(rates) > 1))
    for figure in run.cpu:
        aim = f"{figure.name}: a handler takes at most twice the CPU of its bare calls"
        rows.append(_aim(aim, [figure.ratio], figure.ratio <= 2))
    if run.memory is not None:
        met = run.memory.growth_mb < MAY_GROW_MB
        aim = f"{run.memory.passed_mb:,.0f} MB pass, and memory stays flat"
        rows.append((aim, f"{run.memory.growth_mb:+.0f} MB", _met(met)))
    return _table(("aim", "x", "met"), rows, numbers=slice(1, 2))


def _aim(aim: str, ratios: Sequence[float], met: bool) -> tuple[str, str, str]:
    return aim, ", ".join(f"{ratio:.2f}" for ratio in ratios), _met(met)


def _met(met: bool) -> str:
    return "yes" if met else "no"


def _comparison(rows: Iterable[Compared | Alone]) -> str:
    headings = (
        "case",
        "clients",
        "a second x",
        "rounds",
        "p50 x",
        "p99 x",
        "p50 ms",
        "peer ms",
        "CPU ms",
        "peer CPU",
        "",
    )
    return _table(headings, [_row(row) for row in rows], numbers=slice(1, 10))


def _row(row: Compared | Alone) -> Sequence[str]:
    if isinstance(row, Alone):
        cpu, peer = f"{row.larder_cpu_ms:.2f}", "the peer has none"
        took = f"{row.larder_ms:.1f}"
        return (row.case, str(row.clients), "", "", "", "", took, "", cpu, "", peer)
    return (
        row.case,
        str(row.clients),
        f"{row.rate:.2f}",
        f"{row.rate_least:.2f}–{row.rate_most:.2f}",  # noqa: RUF001
        f"{row.p50:.2f}",
        f"{row.p99:.2f}",
        f"{row.larder_ms:.1f}",
        f"{row.peer_ms:.1f}",
        f"{row.larder_cpu_ms:.2f}",
        f"{row.peer_cpu_ms:.2f}",
        row.failures,
    )


def _builds(builds: Sequence[Build]) -> str:
    rows = [
        (
            str(build.packages),
            build.heat,
            f"{build.ratio:.2f}",
            ", ".join(f"{ours:.1f} / {theirs:.1f}" for ours, theirs in build.rounds),
        )
        for build in builds
    ]
    return _table(("packages", "cache", "seconds x", "rounds"), rows, numbers=slice(2, 4))


def _builds_text(builds: Sequence[Build]) -> str:
    if not builds:
        return "This run built nothing."
    return (
        f"Seconds of `turbo run build` with Larder, divided by those with {CACHE_PEER}: less than 1 is faster. *Cold*\n"
        "finds nothing in the cache, builds and stores everything; *warm* restores everything.\n\n"
        f"{_builds(builds)}"
    )


def _cpu(figures: Sequence[HandlerCpu]) -> str:
    rows = [
        (
            figure.name,
            f"{figure.ratio:.2f}",
            f"{figure.handler_ms:.2f}",
            f"{figure.bare_ms:.2f}",
            ", ".join(figure.calls),
        )
        for figure in figures
    ]
    return _table(("request", "x bare", "CPU ms", "bare ms", "calls"), rows, numbers=slice(1, 4))


def _peaks(peaks: Sequence[tuple[str, str, int, float]]) -> str:
    rows = [(server, role, str(count), f"{mb:.0f}") for server, role, count, mb in peaks]
    return _table(("server", "process", "how many", "peak MB of one"), rows, numbers=slice(2, 4))


def _memory(memory: Memory | None, *, plot: bool = True) -> str:
    if memory is None:
        return ""
    text = (
        f"{memory.passed_mb:,.0f} MB passed through {LARDER}'s local server in artifacts of 120 MB, up and down, one"
        f"\nafter the other. All its processes together held {memory.start_mb:.0f} MB at the start and"
        f" {memory.peak_mb:.0f} MB at most. The peak of\nthe second half is {memory.growth_mb:+.0f} MB beside that"
        " of the first."
    )
    figure = "\n\n![Memory while artifacts pass through](benchmarks/memory.svg)"
    return text + (figure if plot else "")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: slice) -> str:
    if not rows:
        return ""
    places = range(len(headings))[numbers]
    rule = ["--:" if place in places else ":--" for place in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))
