"""`larder growth`: which limit a large company reaches first, and what it pays."""

import click

from larder_cli.commands import examples, json_option
from larder_cli.cost import cost_rows
from larder_cli.costs import bill, read_book
from larder_cli.loads import Company, Load, loads, read_limits
from larder_cli.output import Bar, Record, print_json, print_table
from larder_cli.quantities import size_bytes

_WIDTH = 20
_COLUMNS = ("limit", "kind", "used", "of", "unit", "reached at", "share")
_DEFAULTS = Company()


@click.command(
    "growth",
    epilog=examples(
        "larder growth", "larder growth --engineers 200 --artifacts 1000000 --peak 300"
    ),
)
@click.option(
    "--engineers",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    default=_DEFAULTS.engineers,
    show_default=True,
    help="How many people build, in one team.",
)
@click.option(
    "--artifacts",
    metavar="N",
    type=click.IntRange(1, 10_000_000_000),
    default=_DEFAULTS.artifacts,
    show_default=True,
    help="How many artifacts are stored, each for 30 days.",
)
@click.option(
    "--stored",
    "stored_bytes",
    metavar="SIZE",
    type=size_bytes,
    default="50TB",
    show_default=True,
    help="How much they are together.",
)
@click.option(
    "--peak",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    default=int(_DEFAULTS.peak),
    show_default=True,
    help="Requests a second when most of them come.",
)
@click.option(
    "--busiest-key",
    metavar="PERCENT",
    type=click.IntRange(0, 100),
    default=80,
    show_default=True,
    help="How many of a hundred requests come with one and the same key.",
)
@click.option(
    "--hits",
    metavar="PERCENT",
    type=click.IntRange(0, 99),
    default=90,
    show_default=True,
    help="How many of a hundred tasks are hits.",
)
@json_option
def growth(
    engineers: int,
    artifacts: int,
    stored_bytes: int,
    peak: int,
    busiest_key: int,
    hits: int,
    as_json: bool,
) -> None:
    """Reckon which limit a large company reaches first.

    From the limits that Amazon publishes, those of the template, and what a request takes of each. Then what a month
    costs. Asks no Larder and no account.
    """
    company = Company(
        engineers=engineers,
        artifacts=artifacts,
        stored_bytes=stored_bytes,
        peak=peak,
        busiest_key=busiest_key / 100,
        hit_share=hits / 100,
    )
    limits, book = read_limits(), read_book()
    found = loads(company, limits, book)
    paid = bill(company.team, book)
    if as_json:
        told = {
            "limits": [_record(load) for load in found],
            "dollars_a_month": {**paid.lines, "total": paid.total, "traffic": paid.traffic},
        }
        print_json(told)
        return
    print_table(growth_rows(found), _COLUMNS, empty="", as_json=False)
    click.echo(f"\nShare in percent at {peak:,} requests a second; limits as of {limits.as_of}.\n")
    print_table(
        cost_rows({f"{engineers:,} engineers": paid}),
        ("dollars a month", f"{engineers:,} engineers"),
        empty="",
        as_json=False,
    )


def growth_rows(found: list[Load]) -> list[Record]:
    """A row for each limit, the one that is reached first above the others. Bars end where the limit is."""
    return [
        {
            "limit": load.bound.name,
            "kind": load.bound.kind,
            "used": f"{load.amount:,.0f}",
            "of": f"{load.bound.most:,.0f}",
            "unit": load.bound.unit,
            "reached at": f"{load.reached_at:,.0f}",
            "share": Bar((round(100 * load.share),), max(100, round(100 * found[0].share)), _WIDTH),
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
        "reached_at_requests_a_second": round(load.reached_at),
        "then": load.bound.then,
    }
