"""docs/benchmarks-deployed.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.deployed.restores import (
    DIRECT,
    OWN,
    PEER_CONTAINER,
    PEER_FUNCTION,
    SIDECAR,
    STARTS,
    WARM,
    WAYS,
    Restores,
)
from benchmarks.paths import CI, FAR, LAPTOP

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
_AFTER_IDLE = ("small, direct, CI, after idle", DIRECT, PEER_FUNCTION, "CI", "small", 0.65)

_PAGE = """\
# Restores as deployed

How long real turbo takes to restore everything, over a model of the network and of AWS. `make bench-deployed` rewrites
this page. [benchmarks.md](benchmarks.md) compares local servers, which one processor emulates.

A process on this computer answers as Larder's functions, S3 and turborepo-remote-cache do, after the latencies below.
It is a model: no request reached AWS. So compare the columns of a row.

## Goals

{aims}

## Warm functions

Seconds, medians of the rounds ({rounds}), in which the ways took turns. In brackets, *direct* divided by that way.
*small* is 10 kB for each package; *mixed* 72 % of 10 kB, 25 % of 300 kB and 3 % of 5 MB. *direct, before* is version
0.2.0, with bodies of up to 2,000 bytes in its tables, and TLS in the first call.

{restores}

The peer's function cannot return more than about 4.4 MB: turbo tries again, and then builds the package.

## After idle

The first restore, in which each concurrent request starts an instance. The peer's container never sleeps.

{cold}

## What is assumed

| | |
| :-- | :-- |
{paths}
| gateway and Lambda | {warm.gateway:g} ms |
| a call to DynamoDB | {warm.tables:g} ms |
| S3 | {warm.storage_get:g} ms to the first byte, {warm.storage_head:g} for HEAD, {warm.storage_put:g} for PUT |
| code of Larder's function, warm | {warm.code:g} ms ([measured](benchmarks-cold.md)) |
| code of the peer's function, warm | {warm.peer_code:g} ms, {warm.peer_code_mb:g} per MB ([measured](benchmarks.md)) |
| load balancer of the peer's container | {warm.peer_balancer:g} ms, and 1 ms of code |
| start of an instance of Larder | {starts.start:g} ms: 150 for the sandbox, the rest [measured](benchmarks-cold.md) |
| start of an instance of the peer | {starts.peer_start:g} ms |
| spread | lognormal, {warm.spread:g} |

All but those with a link are guesses from published measurements, as AWS documents none of them. A new connection takes
two round trips before its first byte, and starts with a window of 14 kB that doubles in each.

**Limit**: no server can be faster than turbo's own folder, a round trip with a new connection, and the bytes over the
line. With 300 small packages that is {limits}.

{environment}
"""


def page(
    results: Sequence[Restores], environment: Mapping[str, str], *, rounds: int, seconds: float
) -> str:
    about = ", ".join(f"{name} {value}" for name, value in environment.items())
    warm = [one for one in results if not one.after_idle]
    return _PAGE.format(
        aims=_aims(results),
        restores=_table(warm),
        cold=_table([one for one in results if one.after_idle]),
        paths="\n".join(
            f"| {path.name} | {path.rtt_ms:g} ms round trip, {path.bits_a_second / 1e6:,.0f} Mbit/s |"
            for path in (CI, LAPTOP, FAR)
        ),
        warm=WARM,
        starts=STARTS,
        rounds=rounds,
        limits=_limits(warm),
        environment=f"Measured with {about}, in {seconds / 60:.0f} minutes.",
    )


def _table(results: Sequence[Restores]) -> str:
    rows = [
        "| packages | path | " + " | ".join(WAYS) + " |",
        "| :-- | :-- |" + " --: |" * len(WAYS),
    ]
    for one in results:
        cells = [_cell(one, way) for way in WAYS]
        rows.append(f"| {one.packages} {one.mix} | {one.path} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(one: Restores, way: str) -> str:
    text = f"{one.median(way):.2f}"
    if one.restored[way] < one.packages:
        text += f", {one.restored[way]} restored"
    return text if way in (OWN, DIRECT) else f"{text} ({one.ratio(DIRECT, way):.2f})"


def _aims(results: Sequence[Restores]) -> str:
    rows = [
        "| 300 packages | divided by | result | goal | met |",
        "| :-- | :-- | --: | --: | :-- |",
    ]
    for after_idle, (what, way, other, path, mix, goal) in [
        *((False, aim) for aim in _AIMS),
        (True, _AFTER_IDLE),
    ]:
        for one in results:
            if (one.packages, one.mix, one.path, one.after_idle) == (300, mix, path, after_idle):
                ratio = one.ratio(way, other)
                met = "yes" if ratio <= goal else "no"
                rows.append(f"| {what} | {other} | {ratio:.2f} | {goal} | {met} |")
    return "\n".join(rows)


def _limits(warm: Sequence[Restores]) -> str:
    found = []
    for path in (CI, LAPTOP, FAR):
        for one in warm:
            if (one.packages, one.mix, one.path) == (300, "small", path.name):
                line = 300 * 10_000 * 8 / path.bits_a_second
                limit = one.median(OWN) + 3 * path.rtt_ms / 1_000 + 0.034 + line
                best = one.median(SIDECAR) / limit
                found.append(
                    f"{limit:.2f} s ({path.name}; `larder run` takes {best:.1f} times as long)"
                )
    return ", ".join(found) or "not in this run"
