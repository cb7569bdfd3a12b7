"""The command `make growth`, and the table it prints."""

import click

from larder_cli.commands import examples, json_option
from larder_cli.output import Record, print_json, print_table
from tools.cost.bill import read_book
from tools.growth.loads import Company, Load, loads, read_limits

_COLUMNS = ("limit", "used", "of", "unit", "reached at", "percent")
_DEFAULTS = Company()


@click.command(
    "growth",
    epilog=examples(
        "make growth", 'make growth ARGS="--engineers 200 --artifacts 1000000 --peak 300"'
    ),
)
@click.option(
    "--engineers",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    default=_DEFAULTS.engineers,
    show_default=True,
    help="Engineers, all in one team.",
)
@click.option(
    "--artifacts",
    metavar="N",
    type=click.IntRange(1, 10_000_000_000),
    default=_DEFAULTS.artifacts,
    show_default=True,
    help="Stored artifacts, each kept for 30 days.",
)
@click.option(
    "--peak",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    default=int(_DEFAULTS.peak),
    show_default=True,
    help="Requests per second at the peak.",
)
@click.option(
    "--busiest-key",
    metavar="PERCENT",
    type=click.IntRange(0, 100),
    default=80,
    show_default=True,
    help="Share of the requests that use the busiest key.",
)
@click.option(
    "--hits",
    metavar="PERCENT",
    type=click.IntRange(0, 99),
    default=90,
    show_default=True,
    help="Share of the lookups that are hits.",
)
@json_option
def growth(
    engineers: int,
    artifacts: int,
    peak: int,
    busiest_key: int,
    hits: int,
    as_json: bool,
) -> None:
    """Estimate which limit a large company reaches first. `make cost` estimates what a month costs.

    Uses Amazon's published limits, the limits of the template, and how much of each a request uses. Needs no deployment
    and no AWS account.
    """
    company = Company(
        engineers=engineers,
        artifacts=artifacts,
        peak=peak,
        busiest_key=busiest_key / 100,
        hit_share=hits / 100,
    )
    limits, book = read_limits(), read_book()
    found = loads(company, limits, book)
    if as_json:
        print_json({"limits": [_record(load) for load in found]})
        return
    print_table(growth_rows(found), _COLUMNS, empty="", as_json=False)
    click.echo(f"\nAt {peak:,} requests per second; limits as of {limits.as_of}.")


def growth_rows(found: list[Load]) -> list[Record]:
    """A row for each limit, sorted by which is reached first."""
    return [
        {
            "limit": load.bound.name,
            "used": f"{load.amount:,.0f}",
            "of": f"{load.bound.most:,.0f}",
            "unit": load.bound.unit,
            "reached at": f"{load.reached_at:,.0f}",
            "percent": round(100 * load.share),
        }
        for load in found
    ]


def _record(load: Load) -> Record:
    return {
        "limit": load.bound.name,
        "kind": load.bound.kind,
        "used": round(load.amount, 1),
        "of": load.bound.most,
        "unit": load.bound.unit,
        "share": round(load.share, 3),
        "reached_at_requests_per_second": round(load.reached_at),
        "then": load.bound.then,
    }
