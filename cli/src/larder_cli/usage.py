"""`larder usage`: what the cache saved."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import TYPE_CHECKING

import click

from larder import clock
from larder_cli.commands import TargetCommand, examples, json_option
from larder_cli.output import Record, print_json, print_table
from larder_cli.teams import require_team

if TYPE_CHECKING:
    from larder.usage.models import Figures


def _read_days(owner: str, days: Sequence[date]) -> list["Figures"]:
    from larder.usage.repository import read_days

    return [day.total for day in read_days(owner, days)]


def _total(figures: Sequence["Figures"]) -> Record:
    rows = [asdict(one) for one in figures]
    return {name: sum(row[name] for row in rows) for name in rows[0]}


@click.command(
    "usage",
    cls=TargetCommand,
    epilog=examples("larder usage acme", "larder usage acme --days 7 --json"),
)
@click.argument("team", metavar="TEAM")
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=30,
    show_default=True,
    help="How many days back, today included. Days are UTC.",
)
@json_option
def usage(team: str, days: int, as_json: bool) -> None:
    """Show what the cache did for a team.

    Hits, misses and time saved of TEAM (slug or id), day by day, as its clients reported them.
    """
    found = require_team(team)
    today = clock.now().date()
    dates = [today - timedelta(days=ago) for ago in reversed(range(days))]
    figures = _read_days(found.id, dates)
    total = _total(figures)
    records = [{"day": day, **asdict(one)} for day, one in zip(dates, figures, strict=True)]
    if as_json:
        print_json({"team": found.slug, "total": total, "days": records})
        return
    shown = [record for record in records if record["events"]]
    print_table(
        [*shown, {"day": "total", **total}] if shown else [],
        ("day", "hits", "misses", "local_hits", "remote_hits", "remote_misses", "time_saved_ms"),
        empty=f"no client of {found.slug} reported anything in the last {days} days",
        as_json=False,
    )
