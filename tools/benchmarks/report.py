"""The page of the documentation, with the results of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from tools.benchmarks.figures import Compared, Life, SameRole
from tools.benchmarks.handler_cpu import LIMIT, HandlerCpu
from tools.benchmarks.servers import ACCOUNTS_PEER, CACHE_PEER


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The results of a run, and its environment."""

    rows: Sequence[Compared]
    same_role: Sequence[SameRole]
    cpu: Sequence[HandlerCpu]
    versions: Mapping[str, str]
    environment: Mapping[str, str]
    rounds: int
    seconds: float


_PAGE = """\
# Benchmarks of local servers

`make bench` compares `make serve` and the built functions with similar servers on one computer, and writes this page.
Only ratios are comparable between computers. [Restores](benchmarks-deployed.md) and [cold starts](benchmarks-cold.md)
have pages of their own.

A ratio is Larder's figure divided by the peer's in the same round. It is the median of {rounds} rounds in which the
servers take turns, and *rounds* has the lowest and the highest.

## make serve

Requests per second and milliseconds until the end of a reply, and the CPU time of all processes of a server for one
reply. 16 clients send the next request when they have the complete reply, and 4 with 120 MB. Above 1, Larder serves
more requests per second.

{servers}

The local server is slower for small requests, because one computer does the work that AWS spreads: a gateway, a
function in a process of its own, and signed requests to a DynamoDB and an S3 that flush each write to disk. The peers
read a folder, or SQLite in their own process, and {cache_peer} compares one token. Larder gets uploads of 120 MB as
`turbo --preflight` sends them, directly to storage. {accounts_peer} has no route that verifies a key, so the benchmark
adds one. Neither limits requests.

## Functions

Larder's built functions, next to {cache_peer}'s own handler for Lambda, each alone under Lambda's Runtime API, with
the same local S3 and the same events, one at a time. Larder also checks the key, its user and its team in DynamoDB,
where the peer compares a string. A `GET` of 1 MB is a redirect to S3 in Larder. The peer's status is a constant.

*Start* is the CPU time until the process asks for an event, *first* the time of the first reply, *warm* of one of the
next. Below 1, Larder is faster. A simple loop takes the place of AWS's runtime client for node, which needs a compiler
to install.

{same_role}

## CPU time of handlers

The CPU time of one warm call of a handler, divided by what botocore takes for its calls to AWS alone. AWS's replies
come from memory. Handlers make the calls without botocore ([decision](decisions/aws-client.md)). Presigning a URL
counts only for the handler. {cpu_limit}

{cpu}

Measured with {environment}. {versions}. The run took {minutes:.0f} minutes.
"""


def page(run: Run) -> str:
    return _PAGE.format(
        cache_peer=CACHE_PEER,
        accounts_peer=ACCOUNTS_PEER,
        servers=_servers(run.rows),
        same_role=_same_role(run.same_role),
        cpu=_cpu(run.cpu),
        cpu_limit=_cpu_limit(run.cpu),
        rounds=run.rounds,
        environment=", ".join(f"{name} {value}" for name, value in run.environment.items()),
        versions=", ".join(f"{name} {version}" for name, version in run.versions.items()),
        minutes=run.seconds / 60,
    )


def _servers(rows: Iterable[Compared]) -> str:
    headings = ("request", "peer", "per second x", "rounds", "ms", "CPU ms")
    return _table(
        headings,
        [
            (
                f"{row.case} ({row.failures})" if row.failures else row.case,
                row.peer,
                f"{row.rate:.2f}",
                _range(row.rate_least, row.rate_most),
                f"{row.larder_ms:.1f} / {row.peer_ms:.1f}",
                f"{row.larder_cpu_ms:.2f} / {row.peer_cpu_ms:.2f}",
            )
            for row in rows
        ],
        numbers=slice(2, 6),
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

    return (
        row.name,
        *(f"{row.ratio(_START):.2f}", both(_START, 0)),
        *(f"{row.ratio(_FIRST):.2f}", both(_FIRST, 0)),
        *(f"{row.ratio(_WARM_CPU):.2f}", _range(*row.spread(_WARM_CPU)), both(_WARM_CPU, 1)),
        *(f"{row.ratio(_WARM):.2f}", both(_WARM, 1)),
        both(_PEAK, 0),
    )


def _cpu(figures: Sequence[HandlerCpu]) -> str:
    rows = [
        (
            figure.name,
            f"{figure.ratio:.2f}",
            f"{figure.handler_ms:.2f} / {figure.bare_ms:.2f}",
            ", ".join(figure.calls),
        )
        for figure in figures
    ]
    return _table(("request", "x calls", "ms", "AWS calls"), rows, numbers=slice(1, 3))


def _cpu_limit(figures: Sequence[HandlerCpu]) -> str:
    over = ", ".join(figure.name for figure in figures if figure.ratio > LIMIT)
    outcome = f"These requests are over it: {over}." if over else "Every request keeps it."
    return f"The limit is {LIMIT:.0f}. {outcome}"


def _range(least: float, most: float) -> str:
    return f"{least:.2f}–{most:.2f}"  # noqa: RUF001


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: slice) -> str:
    places = range(len(headings))[numbers]
    rule = ["--:" if place in places else ":--" for place in range(len(headings))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))
