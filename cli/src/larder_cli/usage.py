"""`larder usage`: what the cache saved."""

from dataclasses import asdict
from datetime import date, timedelta

import click

from larder import clock
from larder_cli.commands import TargetCommand, examples, json_option
from larder_cli.output import Record, print_json, print_table
from larder_cli.teams import require_team


def _read_days(owner: str, days: list[date]) -> list[Record]:
    from larder.concurrency import in_background
    from larder.usage.repository import read_day

    reads = [in_background(read_day, owner, day) for day in days]
    return [{"day": day, **asdict(read.result())} for day, read in zip(days, reads, strict=True)]


def _total(records: list[Record]) -> Record:
    names = [name for name in records[0] if name != "day"]
    sums = {name: sum(int(str(record[name])) for record in records) for name in names}
    return {"day": "total", **sums}


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
    """Show the hits, misses and time saved of TEAM (slug or id), day by day, as its clients reported them."""
    found = require_team(team)
    today = clock.now().date()
    records = _read_days(found.id, [today - timedelta(days=ago) for ago in reversed(range(days))])
    if as_json:
        print_json({"team": found.slug, "total": _total(records), "days": records})
        return
    shown = [record for record in records if record["events"]]
    print_table(
        [*shown, _total(records)] if shown else [],
        ("day", "hits", "misses", "local_hits", "remote_hits", "remote_misses", "time_saved_ms"),
        empty=f"no client of {found.slug} reported anything in the last {days} days",
        as_json=False,
    )
