"""The table of limits in docs/operations.md, from what requests take and from the defaults of the template."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from larder_cli.deploy.account import API_QUOTA
from local.cloudformation import read_template
from tools.cost.bill import Team, read_book
from tools.generate.text import table_row

_ROOT = Path(__file__).resolve().parents[2]
_TEAM = Team(engineers=1000)
_ITEM_READS, _ITEM_WRITES = 3000, 1000
"""The units a second of one item, and of one partition."""
_KEY_SHARE = 0.8
"""Share of the requests that one key makes."""
_PREFIX_READS = 5500
_FUNCTIONS = 1000
_BY_EVENT = ("commit", "expiry")
"""Kinds of work that no request waits for."""


class Limit(NamedTuple):
    limit: str
    reached_at: float
    change: str
    otherwise: str


def large_deployments() -> None:
    print(table_row("Limit", "Reached at", "Change", "Otherwise"))
    print("|---|---:|---|---|")
    for one in sorted(_limits(), key=lambda one: one.reached_at):
        print(table_row(one.limit, f"{one.reached_at:,.0f}", one.change, one.otherwise))


def _limits() -> list[Limit]:
    units = tomllib.loads((_ROOT / "tests" / "proofs" / "capacity.toml").read_text())
    uses = read_book().uses["requests"]
    options = {
        name: one["Default"]
        for name, one in read_template(_ROOT / "template.yaml")["Parameters"].items()
    }
    counts = _TEAM.requests
    requests = sum(count for kind, count in counts.items() if kind not in _BY_EVENT)

    def each(taken: Mapping[str, float]) -> float:
        """How much each request takes, on average."""
        return sum(count * taken.get(kind, 0) for kind, count in counts.items()) / requests

    def of_requests(what: str) -> float:
        return each({kind: use.get(what, 0) for kind, use in uses.items()})

    reads, writes = each(units["artifacts_reads"]), each(units["artifacts_writes"])
    # The team and the member are two items, of which the team is read by all.
    of_team = each(
        {
            kind: amount / 2 if amount == 2 else amount
            for kind, amount in units["teams_reads"].items()
        }
    )
    busiest = max(
        sum(counts[kind] for kind in route) / requests
        for route in (("small_hit", "redirected_hit", "miss"), ("announcement", "offer"))
    )
    table_reads, table_writes = int(options["TableReadUnits"]), int(options["TableWriteUnits"])
    rate = int(options["ThrottlingRate"])
    teams = "[more than one team](#one-team-for-all-builds)"
    missed = "503, which clients treat as a miss"
    return [
        Limit(
            "emails on the first day, with SES in its sandbox: 200",
            400,
            "[production access of SES](deploy.md#send-with-amazon-ses)",
            "mail to others fails",
        ),
        Limit(
            "artifacts of one owner that the sweep can add up: 70 million",
            14_525,
            "more memory for `SweepArtifacts`, or more teams",
            "errors that a crash left in the totals stay",
        ),
        Limit(
            f"reads and writes of a team's partition: {_ITEM_READS:,} and {_ITEM_WRITES:,} a second",
            min(_ITEM_READS / reads, _ITEM_WRITES / writes),
            teams,
            "503 for minutes, until DynamoDB has split the partition",
        ),
        Limit(
            "reported runs of a team: 100,000 an hour",
            3000,
            "[report](usage.md#runs) the runs of `main` only",
            "429, and these runs are missing",
        ),
        Limit(
            f"reads of the team's item: {_ITEM_READS:,} a second",
            _ITEM_READS / of_team,
            teams,
            "[copies](decisions/round-trips.md#what-dynamodb-refuses-is-asked-for-again), then 503",
        ),
        Limit(
            f"uses of one key: {_ITEM_READS:,} a second",
            _ITEM_READS / each(units["keys_reads"]) / _KEY_SHARE,
            "[a key for each pipeline](#one-key-for-all-builds)",
            f"copies, then {missed}",
        ),
        Limit(
            f"reads and writes of a table: {table_reads:,} and {table_writes:,} a second",
            min(table_reads / reads, table_writes / writes),
            "`ThrottlingRate`, which they follow; a quota above 40,000",
            "the alarm *ApiFailing*",
        ),
        Limit(
            f"`ThrottlingRate` of an endpoint: {rate:,} a second",
            rate / busiest,
            "`ThrottlingRate` and `ThrottlingBurst`, to twice the peak",
            "429, and the alarm [HitsLost](#hitslost)",
        ),
        Limit(
            f"requests to HTTP APIs of the account: {API_QUOTA:,} a second",
            API_QUOTA,
            "a quota",
            "429",
        ),
        Limit(
            f"reads under one prefix of the bucket: {_PREFIX_READS:,} a second",
            _PREFIX_READS / of_requests("s3_gets"),
            "none: S3 splits the prefix",
            "503 for a while",
        ),
        Limit(
            f"functions at once: {_FUNCTIONS:,}",
            _FUNCTIONS / (of_requests("milliseconds") / 1000),
            "a quota. A new account can have as few as 10.",
            "429",
        ),
    ]
