"""Reports of a run: tables for the terminal, and the page of the documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from benchmarks.figures import Alone, Compared, Life, Memory, SameRole
from benchmarks.handler_cpu import HandlerCpu
from benchmarks.servers import ACCOUNTS_PEER, CACHE_PEER, LARDER


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The results of a run, and its environment. `peaks` has a row for each server and role of its processes."""

    rows: Sequence[Compared | Alone]
    same_role: Sequence[SameRole]
    cpu: Sequence[HandlerCpu]
    memory: Memory | None
    peaks: Sequence[tuple[str, str, int, float]]
    versions: Mapping[str, str]
    environment: Mapping[str, str]
    rounds: int
    seconds: float


_PAGE = """\
# Benchmarks

`make bench` compares Larder's local server with similar servers and writes this page. Only the ratios are comparable
between machines. See also [restores](benchmarks-deployed.md) and [cold starts](benchmarks-cold.md).

The local server is slower for small requests, because one machine does the work that AWS spreads: a gateway, a
function in a separate process, and one to three signed requests to a DynamoDB that writes each change to a journal
before it replies. A peer reads a folder, or SQLite in its own process.{floor}

## Goals

{aims}

## Comparison with {cache_peer}

{cache_table}

![Requests per second, as a multiple of the peer's](benchmarks/cache.svg)

## Comparison with {accounts_peer}

{accounts_table}

![Requests per second, as a multiple of the peer's](benchmarks/accounts.svg)

## The same role: functions

Larder's built functions, next to {cache_peer}'s own handler for Lambda, each alone under Lambda's Runtime API, with
the same local S3 and the same events, one at a time. Larder also checks the key, its user and its team in DynamoDB,
where the peer compares a string. A `GET` of 1 MB is a redirect to S3 in Larder. The peer's status is a constant.

A simple loop takes the place of AWS's runtime client for node, which needs a compiler to install. In a run with it
(aws-lambda-ric 3.3.0), the ratios were 2.0 instead of 1.3 for the status, and 0.6 instead of 0.5 for `HEAD`.

*Start* is the CPU time until the process asks for an event, *first* the time of the first
reply, *warm* of one of the next. A ratio is Larder's figure divided by the peer's, as the median of
{role_rounds} rounds; *rounds* shows the lowest and the highest. Below 1 is better.

{same_role}

## CPU time of handlers

The CPU time of one warm call of a handler, divided by what botocore takes for its calls to AWS alone. AWS's replies
come from memory. Handlers make the calls without botocore ([decision](decisions/aws-client.md)). Presigning a URL
counts only for the handler. The limit is 1.

{cpu_table}

![CPU time of a handler, as a multiple of its calls to AWS](benchmarks/handlers.svg)

## Memory

The peak memory of the largest process of each kind, over the whole run.

{peaks_table}

{memory_text}

## Method

- **Cells** have a figure for each number of clients.
- **Ratios** are Larder's figure divided by the peer's in the same round. The servers take turns for {rounds} rounds;
  the ratio is the median, and *rounds* shows the lowest and the highest. *Per second x* compares replies per second:
  higher is better. *p50* (of Larder; *peer ms* of the peer) and *p99* are times to the end of a reply, over all rounds.
  *CPU ms* is the CPU time of all processes of a server for one reply.
- **Clients** send the next request when they have the complete reply, on connections that stay open, and follow
  redirects.
- **Uploads** are each of a new artifact. From 20 MB, they go to Larder as `turbo --preflight` sends them: OPTIONS,
  then directly to storage. The peer receives them itself and holds each one in memory, so at most 16 uploads of 120
  MB run at once.
- **Servers** run on the same machine; those not under test are idle. Larder runs as in `make serve`, with a local
  DynamoDB and S3 that check every signature, and flush every upload to disk before they reply.
- **{cache_peer}** stores artifacts in a folder, without a flush. It compares one token, stores no events, users or
  statistics, and has no query endpoint.
- **{accounts_peer}** runs on plain node HTTP with its tables in {tables}, without rate limits. Larder runs without
  rate limits by address. Better Auth has no route that verifies a key, so the benchmark adds a minimal one.
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
        same_role=_same_role(run.same_role),
        role_rounds=max((len(row.rounds) for row in run.same_role), default=0),
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
    """The same tables for the terminal."""
    parts = [
        _comparison(run.rows),
        _same_role(run.same_role),
        _cpu(run.cpu),
        _peaks(run.peaks),
    ]
    return "\n\n".join(part for part in [*parts, _memory(run.memory, plot=False)] if part)


def _floor(run: Run) -> str:
    """The CPU time of the calls to AWS alone, next to the peer's total. Empty if it was not measured."""
    bare = {figure.name: figure for figure in run.cpu}.get("HEAD")
    peers = [
        row.peer_cpu_ms for row in run.rows if isinstance(row, Compared) and row.case == "HEAD"
    ]
    if bare is None or not peers:
        return ""
    return (
        "\n\nThe calls to AWS set a lower bound. Those of a HEAD request take botocore"
        f" {bare.bare_ms:.2f} ms of CPU\nwithout a server or network (*calls ms* below);"
        f" {CACHE_PEER} takes {min(peers):.2f} to\n{max(peers):.2f} ms for its complete reply (*peer CPU*)."
    )


LARGE = ("GET 20 MB", "PUT 20 MB", "GET 120 MB", "PUT 120 MB")
ACCOUNT_CASES = ("key verification", "session lookup")
MAX_GROWTH_MB = 25


def _aims(run: Run) -> str:
    """The result of each goal. A goal is met if every figure meets it."""
    rows = []
    for case in (*LARGE, *ACCOUNT_CASES):
        rates = [row.rate for row in run.rows if isinstance(row, Compared) and row.case == case]
        if rates:
            rows.append(_aim(f"{case}: more requests per second", rates, min(rates) > 1))
    for aim, of, most in (
        ("starts with at most 0.3 of the CPU time", _START, 0.3),
        ("gives the first reply in at most half the time", _FIRST, 0.5),
        ("takes no more CPU time for a warm request", _WARM_CPU, 1.0),
    ):
        if run.same_role:
            ratios = [row.ratio(of) for row in run.same_role]
            rows.append(_aim(f"As a function, it {aim}", ratios, max(ratios) <= most))
    if run.cpu:
        ratios = [figure.ratio for figure in run.cpu]
        aim = "Handlers take no more CPU time than botocore for their calls"
        rows.append(_aim(aim, ratios, max(ratios) <= 1))
    if run.memory is not None:
        met = run.memory.growth_mb < MAX_GROWTH_MB
        aim = f"{run.memory.passed_mb:,.0f} MB of artifacts: memory does not grow"
        rows.append((aim, f"{run.memory.growth_mb:+.0f} MB", _met(met)))
    return _table(("goal, compared with the peer", "result", "met"), rows, numbers=slice(1, 2))


def _aim(aim: str, ratios: Sequence[float], met: bool) -> tuple[str, str, str]:
    return aim, ", ".join(f"{ratio:.2f}" for ratio in ratios), _met(met)


def _met(met: bool) -> str:
    return "yes" if met else "no"


def _comparison(rows: Iterable[Compared | Alone]) -> str:
    headings = (
        "case",
        "clients",
        "per second x",
        "rounds",
        "p99 x",
        "p50 ms",
        "peer ms",
        "CPU ms",
        "peer CPU",
    )
    cases = groupby(rows, key=attrgetter("case"))
    return _table(
        headings, [_row(case, [*of_case]) for case, of_case in cases], numbers=slice(1, 9)
    )


def _row(case: str, of_case: Sequence[Compared | Alone]) -> Sequence[str]:
    """A cell has the figure for each number of clients, the first one the notes."""
    *figures, notes = zip(*map(_cells, of_case), strict=True)
    noted = ", ".join(filter(None, dict.fromkeys(notes)))
    return (
        f"{case} ({noted})" if noted else case,
        *(", ".join(filter(None, one)) for one in figures),
    )


def _cells(row: Compared | Alone) -> Sequence[str]:
    if isinstance(row, Alone):
        cpu, took = f"{row.larder_cpu_ms:.2f}", f"{row.larder_ms:.1f}"
        return (str(row.clients), "", "", "", took, "", cpu, "", "not in the peer")
    return (
        str(row.clients),
        f"{row.rate:.2f}",
        f"{row.rate_least:.2f}–{row.rate_most:.2f}",  # noqa: RUF001
        f"{row.p99:.2f}",
        f"{row.larder_ms:.1f}",
        f"{row.peer_ms:.1f}",
        f"{row.larder_cpu_ms:.2f}",
        f"{row.peer_cpu_ms:.2f}",
        f"{row.failures} with {row.clients} clients" if row.failures else "",
    )


_START = attrgetter("init_cpu_ms")
_FIRST = attrgetter("first_ms")
_WARM_CPU = attrgetter("warm_cpu_ms")
_WARM = attrgetter("warm_ms")
_PEAK = attrgetter("peak_mb")


def _same_role(rows: Sequence[SameRole]) -> str:
    headings = (
        *("request", "start x", "ms", "first x", "ms"),
        *("warm CPU x", "rounds", "ms", "warm x", "ms", "peak MB"),
    )
    return _table(headings, [_role_row(row) for row in rows], numbers=slice(1, 11))


def _role_row(row: SameRole) -> Sequence[str]:
    def both(figure: Callable[[Life], float], digits: int) -> str:
        ours, peer = row.medians(figure)
        return f"{ours:.{digits}f} / {peer:.{digits}f}"

    least, most = row.spread(_WARM_CPU)
    return (
        row.name,
        *(f"{row.ratio(_START):.2f}", both(_START, 0)),
        *(f"{row.ratio(_FIRST):.2f}", both(_FIRST, 0)),
        *(f"{row.ratio(_WARM_CPU):.2f}", f"{least:.2f}–{most:.2f}", both(_WARM_CPU, 1)),  # noqa: RUF001
        *(f"{row.ratio(_WARM):.2f}", both(_WARM, 1)),
        both(_PEAK, 0),
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
    return _table(
        ("request", "x calls", "CPU ms", "calls ms", "AWS calls"), rows, numbers=slice(1, 4)
    )


def _peaks(peaks: Sequence[tuple[str, str, int, float]]) -> str:
    rows = [(server, role, str(count), f"{mb:.0f}") for server, role, count, mb in peaks]
    return _table(("server", "process", "number", "peak MB of one"), rows, numbers=slice(2, 4))


def _memory(memory: Memory | None, *, plot: bool = True) -> str:
    if memory is None:
        return ""
    text = (
        f"The run uploaded and downloaded {memory.passed_mb:,.0f} MB in artifacts of 120 MB through {LARDER}'s local"
        f"\nserver, one after another. All its processes together used {memory.start_mb:.0f} MB at the start and"
        f" {memory.peak_mb:.0f} MB at most.\nCompared with the first half, the peak of the second half changed by"
        f" {memory.growth_mb:+.0f} MB."
    )
    figure = "\n\n![Memory during uploads and downloads](benchmarks/memory.svg)"
    return text + (figure if plot else "")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: slice) -> str:
    if not rows:
        return ""
    places = range(len(headings))[numbers]
    rule = ["--:" if place in places else ":--" for place in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))
