"""The command `make cost`, and the table it prints."""

import click

from larder_cli.commands import examples, json_option
from larder_cli.output import Record, print_json, print_table
from larder_cli.quantities import size_bytes
from tools.cost.bill import (
    MAX_BODY_BYTES,
    Bill,
    Team,
    bill,
    idle_bill,
    public_key_dollars,
    read_book,
    refused_dollars,
    warm_dollars,
)

TEAMS = (5, 50, 500)
IDLE = "idle"


@click.command(
    "cost",
    epilog=examples(
        "make cost",
        'make cost ARGS="--engineers 20 --tasks 400 --large 5MB"',
        'make cost ARGS="--engineers 2000 --lookups 2250 --no-preflight --large 4MB --small 10kB"',
    ),
)
@click.option(
    "--engineers",
    metavar="N",
    type=click.IntRange(1, 100_000),
    multiple=True,
    default=TEAMS,
    help="Engineers in the team; repeat it for several teams. By default 5, 50 and 500.",
)
@click.option(
    "--tasks",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    default=Team.__dataclass_fields__["tasks_a_day"].default,
    show_default=True,
    help="Cache lookups per engineer per working day, including CI.",
)
@click.option(
    "--lookups",
    metavar="N",
    type=click.IntRange(1, 1_000_000),
    help="Cache lookups a second, in ten hours of each working day, in place of --tasks: jobs that start in a second "
    "times lookups of a job. 300 jobs of ten minutes with 4,500 lookups each make 2250.",
)
@click.option(
    "--hits",
    metavar="PERCENT",
    type=click.IntRange(0, 100),
    default=90,
    show_default=True,
    help="Share of the lookups that are hits.",
)
@click.option(
    "--large",
    "large_bytes",
    metavar="SIZE",
    type=size_bytes,
    default="20MB",
    show_default=True,
    help="Average size of the largest tenth of the artifacts.",
)
@click.option(
    "--small",
    "small_bytes",
    metavar="SIZE",
    type=size_bytes,
    default="50kB",
    show_default=True,
    help="Size of the others. Larder also keeps those up to 32 KiB next to its index.",
)
@click.option(
    "--renewed",
    metavar="PERCENT",
    type=click.IntRange(0, 99),
    default=0,
    show_default=True,
    help="Share of the artifacts that are still in use when their retention ends.",
)
@click.option(
    "--no-preflight",
    "preflight",
    flag_value=False,
    default=True,
    help="Builds without `turbo --preflight`: each upload goes through the API, up to 4.5 MB.",
)
@click.option("--runs", is_flag=True, help="CI reports the file of `turbo run --summarize`.")
@click.option("--traces", "traced", is_flag=True, help="With the option Tracing=Active.")
@click.option(
    "--edge",
    type=click.Choice(["all", "tagged"]),
    is_flag=False,
    flag_value="all",
    help="With the edge, and this value of EdgeDownloads. `--edge` alone means all.",
)
@click.option(
    "--signed",
    metavar="PERCENT",
    type=click.IntRange(0, 100),
    default=0,
    show_default=True,
    help="Share of the artifacts with a signature. It matters for --edge tagged.",
)
@click.option(
    "--untrusted",
    metavar="PERCENT",
    type=click.IntRange(0, 100),
    default=0,
    show_default=True,
    help="Share of the lookups in a protected team with a credential that is not trusted.",
)
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(0, 100_000),
    default=0,
    show_default=True,
    help="CI jobs per engineer per working day that exchange an id token.",
)
@click.option(
    "--warm",
    metavar="N",
    type=click.IntRange(0, 100),
    default=0,
    help="With the option WarmInstances, and WarmSchedule every five minutes.",
)
@click.option(
    "--daily-requests",
    metavar="N",
    type=click.IntRange(1),
    help="A public read key with this bound: what it costs at most. Needs --daily-size.",
)
@click.option(
    "--daily-size", metavar="SIZE", type=size_bytes, help="Its other bound. Needs --daily-requests."
)
@json_option
def cost(
    engineers: tuple[int, ...],
    tasks: int,
    lookups: int | None,
    hits: int,
    large_bytes: int,
    small_bytes: int,
    renewed: int,
    preflight: bool,
    runs: bool,
    traced: bool,
    edge: str | None,
    signed: int,
    untrusted: int,
    jobs: int,
    warm: int,
    daily_requests: int | None,
    daily_size: int | None,
    as_json: bool,
) -> None:
    """Estimate what a month costs.

    Uses Amazon's published prices without free tiers. Needs no deployment and no AWS account.
    """
    if not preflight and large_bytes > MAX_BODY_BYTES:
        raise click.UsageError(
            "--no-preflight: artifacts above 4.5 MB are not stored without preflight. Set --large to 4.5MB or less."
        )
    if (daily_requests is None) != (daily_size is None):
        raise click.UsageError("--daily-requests and --daily-size belong together")
    book = read_book()
    if daily_requests is not None and daily_size is not None:
        most = public_key_dollars(daily_requests, daily_size, book)
        refused = refused_dollars(1_000_000, book)
        if as_json:
            print_json({"at_most_a_month": most, "each_million_refused": refused})
            return
        click.echo(f"A public read key with these bounds costs at most ${most:,.2f} a month.")
        click.echo(f"A million requests beyond them, which are refused, cost ${refused:,.2f}.")
        return
    bills = {IDLE: idle_bill(book)}
    for number in engineers:
        team = Team(
            engineers=number,
            tasks_a_day=tasks,
            lookups_a_second=lookups or 0,
            hit_share=hits / 100,
            large_bytes=large_bytes,
            small_bytes=small_bytes,
            renewed_share=renewed / 100,
            preflight=preflight,
            runs=runs,
            traced=traced,
            edge=edge or "",
            signed_share=signed / 100,
            untrusted_share=untrusted / 100,
            jobs_a_day=jobs,
        )
        bills[f"{number} engineers"] = bill(team, book)
    for one in bills.values() if warm else ():
        one.lines["warm instances"] = warm_dollars(warm, book)
    if as_json:
        shown = {
            name: {**one.lines, "total": one.total, "traffic": one.traffic}
            for name, one in bills.items()
        }
        print_json({"region": book.region, "prices_as_of": book.as_of, "dollars_a_month": shown})
        return
    rows = cost_rows(bills)
    print_table(rows, ("dollars a month", *bills), empty="", as_json=False)
    click.echo(f"Prices of {book.region}, {book.as_of:%Y-%m-%d}; without free tiers.")


def cost_rows(bills: dict[str, Bill]) -> list[Record]:
    """A row for each thing you pay for, then the total, then the traffic."""
    last = list(bills.values())[-1]
    rows: list[Record] = [
        {"dollars a month": line, **{n: _dollars(one.lines.get(line)) for n, one in bills.items()}}
        for line in last.lines
    ]
    rows.append(
        {"dollars a month": "total", **{n: _dollars(one.total) for n, one in bills.items()}}
    )
    rows.append(
        {
            "dollars a month": "traffic out of AWS, not in the total",
            **{n: _dollars(one.traffic or None) for n, one in bills.items()},
        }
    )
    return rows


def _dollars(amount: float | None) -> str:
    return "" if amount is None else f"{amount:,.2f}"
