"""The command `make growth`, and the table it prints."""

import click

from larder_cli.commands import examples, json_option
from larder_cli.output import Bar, Record, print_json, print_table
from larder_cli.quantities import size_bytes
from tools.cost.bill import bill, read_book
from tools.cost.command import cost_rows
from tools.growth.loads import Company, Load, loads, read_limits

_WIDTH = 20
_COLUMNS = ("limit", "kind", "used", "of", "unit", "reached at", "share")
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
    "--stored",
    "stored_bytes",
    metavar="SIZE",
    type=size_bytes,
    default="50TB",
    show_default=True,
    help="Total size of the stored artifacts.",
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
    stored_bytes: int,
    peak: int,
    busiest_key: int,
    hits: int,
    as_json: bool,
) -> None:
    """Estimate which limit a large company reaches first, and what a month costs.

    Uses Amazon's published limits, the limits of the template, and how much of each a request uses. Needs no deployment
    and no AWS account.
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
        report = {
            "limits": [_record(load) for load in found],
            "dollars_a_month": {**paid.lines, "total": paid.total, "traffic": paid.traffic},
        }
        print_json(report)
        return
    print_table(growth_rows(found), _COLUMNS, empty="", as_json=False)
    click.echo(
        f"\nShare in percent at {peak:,} requests per second; limits as of {limits.as_of}.\n"
    )
    print_table(
        cost_rows({f"{engineers:,} engineers": paid}),
        ("dollars a month", f"{engineers:,} engineers"),
        empty="",
        as_json=False,
    )


def growth_rows(found: list[Load]) -> list[Record]:
    """A row for each limit, sorted by which is reached first. A full bar is the limit."""
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
        "reached_at_requests_per_second": round(load.reached_at),
        "then": load.bound.then,
    }
