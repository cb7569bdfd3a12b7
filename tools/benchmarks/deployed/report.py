"""docs/benchmarks-deployed.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tools.benchmarks.deployed.checks import LAPTOPS, WARM_MS, Compared, Morning, Size
from tools.benchmarks.deployed.restorer import (
    DIRECT,
    OWN,
    PEER_CONTAINER,
    PEER_FUNCTION,
    PREFLIGHT,
    SIDECAR,
)
from tools.benchmarks.deployed.restores import (
    BUSY,
    HALF,
    IDLE,
    IDLE_KEPT,
    KEPT,
    STARTS,
    WARM,
    Kind,
    Restores,
)
from tools.benchmarks.paths import CI, FAR, LAPTOP
from tools.cost.bill import read_book

_AIMS = [
    ("small, direct, CI", DIRECT, PEER_CONTAINER, "CI", "small", 0.65),
    ("small, direct, CI", DIRECT, PEER_FUNCTION, "CI", "small", 0.65),
    ("small, direct, laptop", DIRECT, PEER_CONTAINER, "laptop", "small", 0.9),
    ("small, direct, far", DIRECT, PEER_CONTAINER, "far", "small", 0.9),
    ("small, `larder run`, CI", SIDECAR, PEER_CONTAINER, "CI", "small", 0.5),
    ("small, `larder run`, laptop", SIDECAR, PEER_CONTAINER, "laptop", "small", 0.5),
    ("small, `larder run`, far", SIDECAR, PEER_CONTAINER, "far", "small", 0.35),
    ("mixed, `larder run`, laptop", SIDECAR, PEER_CONTAINER, "laptop", "mixed", 1.0),
    ("mixed, direct, laptop", DIRECT, PEER_CONTAINER, "laptop", "mixed", 1.0),
]
_AIMS_OF_KINDS = [
    (IDLE, 300, DIRECT, PEER_FUNCTION, 0.65),
    *(
        (IDLE_KEPT, packages, DIRECT, other, goal)
        for packages in (30, 300)
        for other, goal in ((PEER_FUNCTION, 0.3), (PEER_CONTAINER, 1.5))
    ),
    (HALF, 300, SIDECAR, PEER_CONTAINER, 0.5),
    (HALF, 300, SIDECAR, DIRECT, 1.0),
]
"""Of small packages in CI."""
_MOST_OF_WARM = 1.3
"""The first restore after idle with WarmInstances, divided by a warm one."""

_PAGE = """\
# Restores as deployed

How long real turbo takes to restore everything, over a model of the network and of AWS. `make bench-deployed` rewrites
this page. [benchmarks.md](benchmarks.md) compares local servers, which one processor emulates.

A process on this computer answers as Larder's functions, S3 and turborepo-remote-cache do, after the latencies below.
It is a model: no request reached AWS. So compare the columns of a row.

## Goals

{aims}

## Warm functions

Seconds, medians of the rounds ({small_rounds}; of *mixed*, {mixed_rounds}), in which the ways took turns. In brackets,
*direct* divided by that way. *small* is 10 kB for each package; *mixed* 72 % of 10 kB, 25 % of 300 kB and 3 % of 5 MB.
*±* is half of the range of *direct*.

{small}

{mixed}

The peer's function cannot return more than about 4.4 MB: turbo tries again, and then builds the package.

`larder run` also [reports the run](usage.md#report-a-run), with its inputs, before it ends. The others report nothing.

## Half a processor

The same, with all programs of the build on one processor of this computer, of which another program takes half.

{half}

## Preflight

What it adds, as a multiple of *direct*, with 300 small packages. Through `larder run`, turbo needs no preflight.

{preflight}

The OPTIONS before a GET has a constant answer, and the function gives it without a call to a table. API Gateway cannot
give it, because the same route has the OPTIONS before a PUT, which needs an address. The edge carries no API.

## After idle

The first restore, in which each concurrent request starts an instance. The peer's container never sleeps.

{cold}

A status that starts the instances of GET would gain nothing: it can do so only when its own instance has started, and
that is when turbo sends the GETs.

### With ten warm instances

The same with [`WarmInstances=10`](decisions/warm-instances.md). The peer has no such option. Requests above ten at once
still start instances.

{kept}

### {laptops} laptops at once

Each restores 30 small packages over *laptop* in the same moment, after idle. turbo's own work for all of them on this
computer is the first row, and part of the others.

{morning}

### Memory of a function

The first restore of 30 small packages in CI by functions of another size. Lambda gives an instance a whole processor
for its start, and then a share by its memory. A million warm downloads cost the last column in compute.

{sizes}

So functions of builds have 512 MB. [The decision](decisions/cold-starts.md) has all sizes.

## What is assumed

| | |
| :-- | :-- |
{paths}
| gateway and Lambda | {warm.gateway:g} ms |
| a call to DynamoDB | {warm.tables:g} ms |
| S3 | {warm.storage_get:g} ms to the first byte, {warm.storage_head:g} for HEAD, {warm.storage_put:g} for PUT |
| the edge | {warm.edge_rtt:g} ms away |
| code of Larder's function, warm | {warm.code:g} ms ([measured](benchmarks-cold.md)) |
| code of the peer's function, warm | {warm.peer_code:g} ms, {warm.peer_code_mb:g} per MB ([measured](benchmarks.md)) |
| load balancer of the peer's container | {warm.peer_balancer:g} ms, and 1 ms of code |
| start of an instance of Larder | {starts.start:g} ms: 150 for the sandbox, the rest [measured](benchmarks-cold.md) |
| start of an instance of the peer | {starts.peer_start:g} ms |
| first call of a warm instance | {reconnect:g} ms more: it connects to the table again |
| spread | lognormal, {warm.spread:g} |

All but those with a link are guesses from published measurements, as AWS documents none of them.
[`larder smoke`](operator-cli.md#larder-smoke) shows those of your deployment. A new connection takes two round trips
before its first byte, and starts with a window of 14 kB that doubles in each.

### Checked with a real server

The same turbo restores 30 small packages from the local cloud, behind a relay that adds the round-trip time. The local
cloud has no latencies of AWS, and takes longer to compute.

{checked}

## Limits

The limit is the time of turbo's own folder, a request on a new connection, and the bytes over the line, one after the
other. A client that does them at the same time can be a little faster.

{limits}

The last three are multiples of the limit. What is left of *direct* are waits. turbo has ten requests open at a time,
over HTTP/1.1, so 300 packages wait 30 times in a row for the path, the gateway, the function and the table. Only a
client with more requests, such as `larder run`, waits less often.

{environment}
"""

_PLACES = {CI.name: CI, LAPTOP.name: LAPTOP, FAR.name: FAR}


@dataclass(frozen=True)
class Results:
    """All measurements. Those of a part are empty."""

    restores: Sequence[Restores]
    checked: Sequence[Compared] = field(default=())
    sizes: Sequence[Size] = field(default=())
    morning: Sequence[Morning] = field(default=())


def page(
    results: Results, environment: Mapping[str, str], *, rounds: tuple[int, int], seconds: float
) -> str:
    """`rounds` are those of small and of mixed repositories."""
    about = ", ".join(f"{name} {value}" for name, value in environment.items())

    def of(kind: Kind) -> list[Restores]:
        return [restore for restore in results.restores if restore.kind == kind]

    warm = of(BUSY)
    return _PAGE.format(
        aims=_aims(results),
        small=_restores(one for one in warm if one.mix == "small"),
        mixed=_restores(one for one in warm if one.mix == "mixed"),
        preflight=_preflight(warm),
        cold=_restores(of(IDLE)),
        kept=_restores(of(IDLE_KEPT)),
        reconnect=KEPT.reconnect,
        half=_restores(of(HALF)),
        laptops=LAPTOPS,
        morning=_table(
            ("", "median", "slowest", "instances"),
            (
                (one.way, f"{one.median:.2f} s", f"{one.slowest:.2f} s", f"{one.starts}")
                for one in results.morning
            ),
        ),
        sizes=_sizes(results.sizes),
        checked=_table(
            ("path", "model", "local cloud", "local cloud / model"),
            (
                (one.path, f"{one.model:.2f} s", f"{one.real:.2f} s", f"{one.real / one.model:.2f}")
                for one in results.checked
            ),
        ),
        paths="\n".join(
            f"| {path.name} | {path.rtt_ms:g} ms round trip, {path.bits_a_second / 1e6:,.0f} Mbit/s |"
            for path in _PLACES.values()
        ),
        warm=WARM,
        starts=STARTS,
        small_rounds=rounds[0],
        mixed_rounds=rounds[1],
        limits=_limits(warm),
        environment=f"Measured with {about}, in {seconds / 60:.0f} minutes.",
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Text in the first column, and figures in the others."""
    lines = [list(heads), [":--", *["--:"] * (len(heads) - 1)], *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _restores(results: Iterable[Restores]) -> str:
    found = list(results)
    if not found:
        return "Not in this run."
    ways = found[0].ways
    rows = (
        (
            f"{one.packages} {one.mix}, {one.path}",
            *(_cell(one, way) for way in ways),
            f"{100 * one.spread:.0f} %",
        )
        for one in found
    )
    return _table(("packages, path", *ways, "±"), rows)


def _cell(one: Restores, way: str) -> str:
    text = f"{one.median(way):.2f}"
    if one.restored[way] < one.packages:
        text += f", {one.restored[way]} restored"
    return text if way in (OWN, DIRECT) else f"{text} ({one.ratio(DIRECT, way):.2f})"


def _aims(results: Results) -> str:
    found = {(one.kind.name, one.packages, one.mix, one.path): one for one in results.restores}
    aims = [
        *(
            (BUSY, 300, what, way, other, path, mix, goal)
            for what, way, other, path, mix, goal in _AIMS
        ),
        *(
            (kind, packages, f"small, {way}, CI, {kind.name}", way, other, "CI", "small", goal)
            for kind, packages, way, other, goal in _AIMS_OF_KINDS
        ),
    ]
    rows = [
        (f"{packages} {what}", other, *_met(restore.ratio(way, other), goal))
        for kind, packages, what, way, other, path, mix, goal in aims
        if (restore := found.get((kind.name, packages, mix, path)))
    ]
    for packages in (30, 300):
        kept, warm = (found.get((kind.name, packages, "small", "CI")) for kind in (IDLE_KEPT, BUSY))
        if kept and warm:
            ratio = kept.median(DIRECT) / warm.median(DIRECT)
            what = f"{packages} small, {DIRECT}, CI, {IDLE_KEPT.name}"
            rows.append((what, f"{DIRECT}, warm", *_met(ratio, _MOST_OF_WARM)))
    for one in results.checked:
        off = abs(one.real / one.model - 1)
        rows.append((f"real server, {one.path}", "model, apart by", *_met(off, 0.15)))
    table = _table(("packages", "divided by", "result", "goal", "met"), rows)
    missed = sum(row[-1] == "no" for row in rows)
    if not missed:
        return table
    return (
        f"{missed} of {len(rows)} goals are missed. turbo's own work on this computer, the column *own folder*, is in "
        f"every cell, and\nthe slower the computer, the closer it draws the ratios to 1.\n\n{table}"
    )


def _met(result: float, goal: float) -> tuple[str, str, str]:
    return f"{result:.2f}", f"{goal}", "yes" if result <= goal else "no"


def _preflight(warm: Sequence[Restores]) -> str:
    rows = (
        (
            one.path,
            f"{one.ratio(PREFLIGHT, DIRECT):.2f}",
            f"{one.median(PREFLIGHT) - one.median(DIRECT):.2f} s",
            f"{one.median(PREFLIGHT):.2f} s",
            f"{one.median(SIDECAR):.2f} s",
        )
        for one in warm
        if (one.packages, one.mix) == (300, "small")
    )
    heads = ("path", "multiple", "more", "preflight", SIDECAR)
    return _table(heads, rows)


def _sizes(sizes: Sequence[Size]) -> str:
    book = read_book()
    rows = (
        (
            f"{size.memory_mb:,} MB",
            f"{size.start_ms:.0f} ms",
            f"{size.restore:.2f} s",
            f"${book.price('lambda_gb_seconds', WARM_MS * 1_000 * size.memory_mb / 1_024):.2f}",
        )
        for size in sizes
    )
    return _table(("memory", "start", "first restore", "a million"), rows)


def _limits(warm: Sequence[Restores]) -> str:
    rows = []
    for one in warm:
        path = _PLACES[one.path]
        share = {"small": 10_000, "mixed": 0.72 * 10_000 + 0.25 * 300_000 + 0.03 * 5_000_000}
        line = one.packages * share[one.mix] * 8 / path.bits_a_second
        limit = one.median(OWN) + 3 * path.rtt_ms / 1_000 + 0.034 + line
        multiples = (f"{one.median(way) / limit:.1f}" for way in (DIRECT, SIDECAR, PEER_CONTAINER))
        rows.append((f"{one.packages} {one.mix}, {one.path}", f"{limit:.2f} s", *multiples))
    heads = ("packages, path", "limit", DIRECT, SIDECAR, PEER_CONTAINER)
    return _table(heads, rows)
