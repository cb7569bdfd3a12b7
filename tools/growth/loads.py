"""How close a company comes to each limit in limits.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from tools.cost.bill import DAYS_A_MONTH, Book, Team

HOURS_A_DAY = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """One large team. Stored artifacts and retention give the number of builds, the peak gives their rate."""

    engineers: int = 1_000
    artifacts: int = 10_000_000
    peak: float = 2_000.0
    """Requests to the API per second, at the peak."""
    busiest_key: float = 0.8
    """Share of the requests that use one key, such as that of the company's CI."""
    hit_share: float = 0.9

    @property
    def team(self) -> Team:
        """A team for `make cost` whose builds store this many artifacts."""
        usual = Team(engineers=self.engineers, hit_share=self.hit_share)
        uploads = self.artifacts * DAYS_A_MONTH / usual.retention_days
        tasks_a_day = uploads / (1 - self.hit_share) / (usual.tasks / usual.tasks_a_day)
        return Team(
            engineers=self.engineers, tasks_a_day=round(tasks_a_day), hit_share=self.hit_share
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit."""

    name: str
    most: float
    unit: str
    kind: str
    then: str


@dataclass(frozen=True, slots=True)
class Limits:
    """limits.toml."""

    as_of: date
    bounds: Mapping[str, Bound]
    takes: Mapping[str, Mapping[str, float]]
    sweep: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Load:
    """How much of one limit a company uses at its peak."""

    bound: Bound
    amount: float
    peak: float = field(repr=False)

    @property
    def share(self) -> float:
        return self.amount / self.bound.most

    @property
    def reached_at(self) -> float:
        """The peak, in requests per second, at which such a company reaches the limit."""
        return self.peak / self.share


def read_limits() -> Limits:
    stored: dict[str, Any] = tomllib.loads(Path(__file__).with_name("limits.toml").read_text())
    bounds = {name: Bound(**one) for name, one in stored["bounds"].items()}
    return Limits(stored["as_of"], bounds, stored["takes"], stored["sweep"])


def rates(company: Company, book: Book) -> dict[str, float]:
    """Requests of each kind per second at the peak. Artifacts expire evenly, a month after the upload."""
    counts = company.team.requests
    uses: Mapping[str, Mapping[str, float]] = book.uses["requests"]
    api = sum(count for kind, count in counts.items() if uses[kind].get("api"))
    a_second = {kind: company.peak * count / api for kind, count in counts.items()}
    return {**a_second, "expiry": expiries_an_hour(company) / 3600}


def expiries_an_hour(company: Company) -> float:
    return company.artifacts / company.team.retention_days / HOURS_A_DAY


def loads(company: Company, limits: Limits, book: Book) -> list[Load]:
    """How much of each limit is used, sorted by which is reached first."""
    by_kind = rates(company, book)
    uses: Mapping[str, Mapping[str, float]] = book.uses["requests"]

    def used(what: str) -> float:
        return sum(rate * uses[kind].get(what, 0) for kind, rate in by_kind.items())

    def taken(what: str) -> float:
        return sum(by_kind[kind] * units for kind, units in limits.takes[what].items())

    amounts = {
        "throttling_rate": company.peak,
        "api_requests": company.peak,
        "functions_at_once": used("milliseconds") / 1000,
        "invocations": sum(by_kind.values()),
        "one_key": taken("one_key") * company.busiest_key,
        "team_item": taken("team_item"),
        "team_totals": taken("team_totals"),
        "usage_day": taken("usage_day"),
        # DynamoDB limits each index apart from its table.
        "table_writes": max(map(taken, ("artifacts_writes", "by_sweep_writes", "usage_writes"))),
        "table_reads": max(
            map(taken, ("artifacts_reads", "teams_reads", "keys_reads", "identity_reads"))
        ),
        # The company is one team, whose artifacts, last uses, uploads, members and usage each have one partition key.
        "partition_writes": max(
            map(
                taken,
                ("artifacts_writes", "by_last_use_writes", "by_upload_writes", "usage_writes"),
            )
        ),
        "partition_reads": max(map(taken, ("artifacts_reads", "teams_reads"))),
        "s3_writes": used("s3_puts"),
        "s3_reads": used("s3_gets"),
        "events": used("s3_events"),
        "sweep": expiries_an_hour(company),
        "totals_check": company.artifacts,
        "reported_runs": by_kind["status"] * 3600,
        "sandbox_mail": company.engineers,
    }
    found = [Load(limits.bounds[name], amount, company.peak) for name, amount in amounts.items()]
    return sorted(found, key=lambda load: load.share, reverse=True)
