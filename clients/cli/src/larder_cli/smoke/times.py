"""How long each kind of request takes: the first on a new connection, and those after it on the same one."""

import os
import statistics
from dataclasses import dataclass

from larder_cli.http import timed
from larder_cli.smoke.checks import Site

TIMES = 10
SMALL_BYTES = 10_000
"""Larder keeps an artifact of this size next to its index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """One kind of request, in milliseconds until the whole response is there.

    `connect_ms` is TCP, and TLS over https. `first_ms` has the start of an instance, if one started. `median_ms` is of
    the requests after it.
    """

    request: str
    connect_ms: float
    first_ms: float
    median_ms: float


def measure(site: Site) -> list[Times]:
    """Needs the artifacts `small` and `large` of the checks, and stores one more. Raises Unreachable."""
    body = os.urandom(SMALL_BYTES)
    location = site.artifact("GET", "large").headers["location"]
    of_download = {"Access-Control-Request-Method": "GET"}
    small, large, timed_one = (
        "/v8/artifacts/" + site.hash_of(one) for one in ("small", "large", "timed")
    )
    found = [
        _times(site, "OPTIONS before a GET, without a table", "OPTIONS", small, of_download),
        _times(site, "status", "GET", "/v8/artifacts/status"),
        _times(site, "PUT of 10 kB", "PUT", timed_one, body=body),
    ]
    site.stored["timed"] = site.hash_of("timed")
    found += [
        _times(site, "GET of 10 kB, from the tables", "GET", timed_one),
        _times(site, "GET of 100 kB, from S3 by a function", "GET", small),
        _times(site, "GET that is redirected", "GET", large),
    ]
    connect, first, *others = timed("GET", location, {"Range": "bytes=0-0"}, times=TIMES + 1)
    by = "the edge" if site.uses_edge else "S3"
    return [*found, _of(f"{by}, to its first byte", connect, first, others)]


def _times(
    site: Site,
    name: str,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    body: bytes = b"",
) -> Times:
    sent = {"Authorization": f"Bearer {site.key}", "Content-Type": "application/octet-stream"}
    sent |= headers or {}
    connect, first, *others = timed(method, site.address(path), sent, body, times=TIMES + 1)
    return _of(name, connect, first, others)


def _of(name: str, connect: float, first: float, others: list[float]) -> Times:
    return Times(
        request=name,
        connect_ms=_ms(connect),
        first_ms=_ms(first),
        median_ms=_ms(statistics.median(others)),
    )


def _ms(seconds: float) -> float:
    return round(seconds * 1_000, 1)
