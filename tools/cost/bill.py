"""The monthly cost of a deployment, from prices.toml."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

HOURS_A_MONTH = 730
WORKING_DAYS_A_MONTH = 22
WORKING_HOURS_A_DAY = 8
BUSY_HOURS_A_DAY = 10
"""In which `lookups_a_second` are made."""
DAYS_A_MONTH = HOURS_A_MONTH / 24

UNIT_BYTES = 512 * 1024
"""What API Gateway counts as one request."""
MAX_BODY_BYTES = 4_500_000
"""The largest upload through a function."""

TRACED_A_SECOND = 1
TRACED_SHARE = 0.05
"""X-Ray traces the first request per second of each function, and this share of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A team and its builds."""

    engineers: int
    tasks_a_day: int = 800
    """Cache lookups per engineer per working day, including CI."""
    lookups_a_second: int = 0
    """In the busy hours of working days, in place of `tasks_a_day`."""
    tasks_a_build: int = 50
    hit_share: float = 0.9
    small_share: float = 0.9
    """Share of the artifacts that are small enough for a function to return them."""
    small_bytes: int = 50_000
    large_bytes: int = 20_000_000
    retention_days: int = 30
    renewed_share: float = 0.0
    """Share of the artifacts that are still in use when their retention ends. Each is kept for another retention, and
    again if it is in use then."""
    preflight: bool = True
    """Whether builds use `turbo --preflight`. Without it, every upload goes through the API."""
    runs: bool = False
    """Whether CI reports the file of `turbo run --summarize` of every build."""
    traced: bool = False
    """Whether the option `Tracing` is `Active`."""
    edge: str = ""
    """`EdgeDownloads`, if the deployment uses an edge."""
    signed_share: float = 0.0
    """Share of the artifacts with a signature. With EdgeDownloads=tagged, the edge carries the downloads of these."""
    untrusted_share: float = 0.0
    """Share of the lookups with a credential that is not trusted, in a protected team."""
    jobs_a_day: int = 0
    """CI jobs per engineer per working day that exchange an id token."""

    @property
    def tasks(self) -> float:
        """Per month."""
        if self.lookups_a_second:
            return self.lookups_a_second * 3600 * BUSY_HOURS_A_DAY * WORKING_DAYS_A_MONTH
        return self.engineers * self.tasks_a_day * WORKING_DAYS_A_MONTH

    @property
    def average_bytes(self) -> float:
        return self.small_share * self.small_bytes + (1 - self.small_share) * self.large_bytes

    @property
    def requests(self) -> dict[str, float]:
        """Requests of each kind per month, from the first month in which artifacts expire."""
        hits, builds = self.tasks * self.hit_share, self.tasks / self.tasks_a_build
        uploads = self.tasks - hits
        return {
            "small_hit": hits * self.small_share,
            "redirected_hit": hits * (1 - self.small_share),
            "miss": uploads,
            "announcement": self.tasks + builds if self.preflight else 0,
            "offer": uploads if self.preflight else 0,
            "commit": uploads if self.preflight else 0,
            "upload": 0 if self.preflight else uploads,
            "expiry": uploads,
            "status": builds,
            "events": builds,
            "run": builds if self.runs else 0,
        }

    @property
    def uploads(self) -> float:
        """Per month."""
        return self.tasks * (1 - self.hit_share)

    @property
    def renewals(self) -> float:
        """Copies of the objects of artifacts in use, per month."""
        return self.uploads * self.renewed_share / (1 - self.renewed_share)

    @property
    def ci_tokens(self) -> float:
        """Per month."""
        return self.engineers * self.jobs_a_day * WORKING_DAYS_A_MONTH

    @property
    def edge_downloads(self) -> float:
        """Downloads by the edge per month. Small ones come from a function."""
        carried = {"all": 1.0, "tagged": self.signed_share}.get(self.edge, 0.0)
        return self.requests["redirected_hit"] * carried

    @property
    def edge_uploads(self) -> float:
        return self.uploads if self.edge and self.preflight else 0.0

    @property
    def further_units(self) -> float:
        """API Gateway counts an upload as a request for each 512 KB. These are the units after the first."""
        if self.preflight:
            return 0.0
        small, large = (
            math.ceil(size / UNIT_BYTES) for size in (self.small_bytes, self.large_bytes)
        )
        units = self.small_share * small + (1 - self.small_share) * large
        return self.uploads * (units - 1)

    @property
    def stored_artifacts(self) -> float:
        kept = self.uploads + self.renewals
        return kept * self.retention_days / DAYS_A_MONTH


@dataclass(frozen=True, slots=True)
class Book:
    """prices.toml: prices, and what a request uses."""

    region: str
    as_of: date
    prices: Mapping[str, Mapping[str, float]]
    uses: Mapping[str, Any]

    def price(self, what: str, amount: float) -> float:
        """The dollars for an amount. What exceeds `first` costs `further`, if the price has these."""
        entry = self.prices[what]
        first = min(amount, entry.get("first", amount))
        dollars = first * entry["dollars"] + (amount - first) * entry.get("further", 0)
        return dollars / entry["per"]


@dataclass(slots=True)
class Bill:
    """Dollars per month, by what you pay for."""

    lines: dict[str, float] = field(default_factory=dict)
    traffic: float = 0.0
    """Data transfer out of AWS when all builds run outside it. Not part of the total."""

    @property
    def total(self) -> float:
        return sum(self.lines.values())


def read_book() -> Book:
    stored = tomllib.loads(Path(__file__).with_name("prices.toml").read_text())
    return Book(stored.pop("region"), stored.pop("as_of"), stored.pop("prices"), stored)


def idle_bill(book: Book) -> Bill:
    """A month without builds and without stored artifacts."""
    idle = book.uses["while_idle"]
    runs = idle["runs_a_month"]
    seconds = runs * idle["run_milliseconds"] / 1000
    log_gb = runs * book.uses["each_invocation"]["log_bytes"] / 1e9
    return Bill(
        {
            "signing secret": book.price("secrets", idle["secrets"]),
            "alarms": book.price("alarm_metrics", idle["alarm_metrics"]),
            "hourly runs": book.price("lambda_requests", runs)
            + book.price("lambda_gb_seconds", seconds * book.uses["each_invocation"]["memory_gb"])
            + book.price("dynamodb_reads", runs * idle["run_reads"])
            + book.price("dynamodb_writes", runs * idle["run_writes"])
            + book.price("log_gb", log_gb),
        }
    )


def warm_dollars(instances: int, book: Book) -> float:
    """What the option WarmInstances costs in a month."""
    if not instances:
        return 0.0
    uses, each = book.uses["warm"], book.uses["each_invocation"]
    calls = uses["many"] * instances + uses["one"] * math.ceil(instances / 10)
    run_ms = uses["milliseconds"] + calls * (uses["call_milliseconds"] + 2 * instances)
    runs = uses["runs_a_month"]
    return (
        book.price("lambda_requests", runs * (1 + calls))
        + book.price("lambda_gb_seconds", runs * run_ms / 1000 * each["memory_gb"])
        + book.price("log_gb", runs * each["log_bytes"] / 1e9)
    )


def public_key_dollars(requests: int, size_bytes: int, book: Book) -> float:
    """What a public read key with these bounds of a day costs in a month at most: if all goes to strangers.

    Each request is the most expensive one, and the bytes come in artifacts of a unit of the API.
    """
    units = size_bytes / UNIT_BYTES
    kinds = book.uses["requests"]
    each = max(_request_dollars(kinds[kind], book) for kind in ("small_hit", "miss"))
    each += book.price("dynamodb_writes", 1)
    unit_seconds = book.uses["each_unit"]["milliseconds"] / 1000
    further = book.price("api_requests", units) + book.price(
        "lambda_gb_seconds", units * unit_seconds * book.uses["each_invocation"]["memory_gb"]
    )
    return DAYS_A_MONTH * (requests * each + further + book.price("traffic_gb", size_bytes / 1e9))


def refused_dollars(requests: int, book: Book) -> float:
    """What requests cost that find nothing, such as those beyond the bound of a key."""
    return requests * _request_dollars(book.uses["requests"]["miss"], book)


def _request_dollars(uses: Mapping[str, float], book: Book) -> float:
    """One request through the API, with a credential that is not trusted."""
    invocation, api = book.uses["each_invocation"], book.uses["each_api_request"]
    seconds, reads = uses["milliseconds"] / 1000, uses["reads"] + book.uses["own_scopes"]["reads"]
    return (
        book.price("api_requests", 1)
        + book.price("lambda_requests", 1)
        + book.price("lambda_gb_seconds", seconds * invocation["memory_gb"])
        + book.price("dynamodb_reads", reads)
        + book.price("s3_gets", uses.get("s3_gets", 0))
        + book.price("log_gb", (invocation["log_bytes"] + api["log_bytes"]) / 1e9)
    )


def bill(team: Team, book: Book) -> Bill:
    """A month of this team: the idle cost, and what its requests use."""
    requests = team.requests

    def used(what: str) -> float:
        uses: Mapping[str, Mapping[str, float]] = book.uses["requests"]
        by_requests = sum(count * uses[kind].get(what, 0) for kind, count in requests.items())
        of_token: float = book.uses["each_ci_token"].get(what, 0)
        of_renewal: float = book.uses["each_renewal"].get(what, 0)
        return by_requests + team.ci_tokens * of_token + team.renewals * of_renewal

    api, invocations = used("api"), sum(requests.values()) + team.ci_tokens + team.renewals
    gb_seconds = used("milliseconds") / 1000 * book.uses["each_invocation"]["memory_gb"]
    log_gb = (
        invocations * book.uses["each_invocation"]["log_bytes"]
        + api * book.uses["each_api_request"]["log_bytes"]
    ) / 1e9
    index_gb = team.stored_artifacts * book.uses["each_artifact"]["index_bytes"] / 1e9
    runs_gb = requests["run"] * book.uses["each_run"]["bytes"] / 1e9
    stored_gb = team.stored_artifacts * team.average_bytes / 1e9
    own_scopes = team.tasks * team.untrusted_share * book.uses["own_scopes"]["reads"]
    held = _held(team, book)
    busy = WORKING_DAYS_A_MONTH * WORKING_HOURS_A_DAY / HOURS_A_MONTH
    lines = {
        "requests to the API": book.price("api_requests", api + team.further_units),
        "functions": book.price("lambda_requests", invocations)
        + book.price("lambda_gb_seconds", gb_seconds),
        "tables": book.price("dynamodb_reads", used("reads") + own_scopes + held.reads)
        + book.price("dynamodb_writes", used("writes") + held.writes)
        + book.price("dynamodb_gb_months", index_gb + runs_gb + held.gb_months),
        "requests to the bucket": book.price("s3_puts", used("s3_puts"))
        + book.price("s3_lists", used("s3_lists"))
        + book.price("s3_gets", used("s3_gets") - held.s3_gets)
        + book.price("s3_events", used("s3_events")),
        "stored artifacts": book.price("s3_gb_months", stored_gb),
        "logs and metrics": book.price("log_gb", log_gb)
        + book.price("log_gb_months", log_gb)
        + book.price("custom_metrics", book.uses["while_busy"]["custom_metrics"] * busy)
        + book.price("custom_metrics", book.uses["while_stored"]["custom_metrics"]),
    }
    idle = idle_bill(book)
    lines |= _upkeep(team, book)
    if team.traced:
        lines["traces"] = book.price(
            "traces", _traced(requests) + book.uses["while_idle"]["runs_a_month"]
        )
    if team.edge:
        lines["the edge, without downloads"] = _edge(team, book)
    by_edge_gb = team.edge_downloads * team.large_bytes / 1e9
    traffic_gb = team.tasks * team.hit_share * team.average_bytes / 1e9 - by_edge_gb
    traffic = book.price("traffic_gb", traffic_gb) + book.price("edge_traffic_gb", by_edge_gb)
    return Bill({**lines, **idle.lines}, traffic=traffic)


def _upkeep(team: Team, book: Book) -> dict[str, float]:
    """What recovery and the daily checks of the totals use."""
    artifacts, each = team.stored_artifacts, book.uses["each_artifact"]
    scanned = artifacts * DAYS_A_MONTH * each["item_bytes"] / book.uses["scan_unit_bytes"]
    protected_gb = team.engineers * book.uses["each_engineer"]["protected_bytes"] / 1e9
    return {
        "daily checks": book.price("dynamodb_reads", scanned),
        "point-in-time recovery": book.price("recovery_gb_months", protected_gb),
    }


class _Held(NamedTuple):
    """What small bodies next to the index use, and the requests to the bucket that they save, per month."""

    reads: float = 0.0
    writes: float = 0.0
    gb_months: float = 0.0
    s3_gets: float = 0.0


def _held(team: Team, book: Book) -> _Held:
    each = book.uses["each_held_body"]
    if team.small_bytes > each["most_bytes"]:
        return _Held()
    size = team.small_bytes + each["item_bytes"]
    hits, stored = team.requests["small_hit"], team.uploads * team.small_share
    return _Held(
        reads=hits * (math.ceil(size / each["read_bytes"]) - 1),
        writes=stored * math.ceil(size / each["write_bytes"]),
        gb_months=stored * size / 1e9 * each["days"] / DAYS_A_MONTH,
        # One to find out whether an upload is complete is as before, and one more reads its body.
        s3_gets=hits - (stored if team.preflight else 0),
    )


def _edge(team: Team, book: Book) -> float:
    """What the edge costs in addition to the traffic to builds."""
    requests = team.edge_uploads + team.edge_downloads
    each = book.uses["each_edge_request"]
    return (
        book.price("edge_upload_gb", team.edge_uploads * team.average_bytes / 1e9)
        + book.price("edge_requests", requests)
        + book.price("edge_functions", requests * each["functions"])
        + book.price("edge_store_reads", requests * each["store_reads"])
    )


def _traced(requests: Mapping[str, float]) -> float:
    """An upper bound: requests spread evenly over the working hours."""
    seconds = WORKING_DAYS_A_MONTH * WORKING_HOURS_A_DAY * 3600
    hits_and_misses = ("small_hit", "redirected_hit", "miss")
    by_function = [
        sum(requests[kind] for kind in hits_and_misses),
        requests["announcement"] + requests["offer"],
        *(requests[kind] for kind in ("commit", "status", "events", "run")),
    ]
    first = seconds * TRACED_A_SECOND
    return sum(min(count, first) + max(count - first, 0) * TRACED_SHARE for count in by_function)
