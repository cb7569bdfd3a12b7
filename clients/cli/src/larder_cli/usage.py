"""`larder usage`: hits, misses and time saved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import click

from larder import clock
from larder.usage.models import Day, Figures, Period, Usage, add_days, period_until, without_parts
from larder_cli.commands import TargetCommand, examples, json_option
from larder_cli.output import (
    Bar,
    Record,
    human_number,
    human_size,
    print_json,
    print_line,
    print_record,
    print_table,
)
from larder_cli.owner_state import block_record, stored_record
from larder_cli.owners import OWNER, Owner, require_owner

if TYPE_CHECKING:
    from larder.artifacts.models import Totals

_MOST_DAYS = 31
_MOST_WEEKS = 26
"""The most rows of a chart. Longer periods are shown by week, the longest by month."""

_PARTS = ("from this cache", "from a local one", "built")


@dataclass(frozen=True, slots=True)
class _OwnerUsage:
    owner: Owner
    usage: Usage
    stored: "Totals"
    status: str


@click.command(
    "usage",
    cls=TargetCommand,
    epilog=examples(
        "larder usage acme",
        "larder usage acme --days 366",
        "larder usage eve@acme.example",
        "larder usage --all --days 7",
        "larder usage acme --json",
    ),
)
@click.argument("owner", metavar=OWNER, required=False)
@click.option(
    "--all",
    "of_all",
    is_flag=True,
    help="Show every team and the sum of all teams, instead of one team.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=30,
    show_default=True,
    help="How many days to show, including today. Days are in UTC.",
)
@json_option
def usage(owner: str | None, of_all: bool, days: int, as_json: bool) -> None:
    """Show the cache usage of a team or a user.

    Shows hits, misses and time saved as clients reported them, as a chart and by CI; uploads; and how much is stored
    now. TEAM is a slug or an id. EMAIL stands for the user's usage without a team.
    """
    from larder.teams.teams import list_teams

    if (owner is None) is not of_all:
        raise click.UsageError("give a TEAM, an EMAIL or --all")
    period = period_until(clock.now().date(), days)
    if owner is None:
        teams = [Owner(id=one.id, slug=one.slug, state=one.state) for one in list_teams()]
        _print_all([_read(team, period) for team in teams], period, as_json=as_json)
    else:
        _print_one(_read(require_owner(owner), period), as_json=as_json)


def _read(owner: Owner, period: Period) -> _OwnerUsage:
    from larder.artifacts.caching import caching_status
    from larder.artifacts.repository.totals import read_totals
    from larder.usage.service import read_usage

    stored = read_totals(owner.id)
    usage = read_usage(
        owner.id,
        period,
        recent_uploads=stored.uploads,
        stored_now=stored.stored,
        now=clock.now(),
    )
    return _OwnerUsage(owner, usage, stored, caching_status(owner.state, stored).value)


def _print_one(one: _OwnerUsage, *, as_json: bool) -> None:
    period, total = one.usage.period, one.usage.total
    if as_json:
        days = zip(period.days, one.usage.days, strict=True)
        records = [
            {"day": day, **_record(figures), **_stored_then(figures)} for day, figures in days
        ]
        print_json({**_owner_record(one), **_period_record(period), "days": records})
        return
    quota = one.owner.state.quota_bytes
    stored = _described_stored(one.stored.artifacts, one.stored.size_bytes)
    print_line(f"{one.owner.name}, {_described(period)}")
    print_line()
    print_record(
        {
            **_summary(total),
            "stored": stored + (f" of {human_size(quota)}" if quota else ""),
            **_growth(one.usage),
            "status": one.status,
            **({} if one.owner.state.block is None else block_record(one.owner.state)),
        },
        as_json=False,
    )
    _print_chart(one.usage)
    _print_parts("ci", {**total.by_ci, "no CI": without_parts(total, total.by_ci)})
    if total.by_tool:
        _print_parts("tool", _by_tool(total))


def _print_all(all_of_them: Sequence[_OwnerUsage], period: Period, *, as_json: bool) -> None:
    total = add_days([one.usage.total for one in all_of_them])
    stored = sum(one.stored.size_bytes for one in all_of_them)
    artifacts = sum(one.stored.artifacts for one in all_of_them)
    if as_json:
        records = [_owner_record(one) for one in all_of_them]
        summed = {"stored_bytes": stored, "artifacts": artifacts, **_totals_record(total)}
        print_json({**_period_record(period), **summed, "teams": records})
        return
    print_line(f"{_counted(len(all_of_them), 'team')}, {_described(period)}")
    print_line()
    print_record({**_summary(total), "stored": _described_stored(artifacts, stored)}, as_json=False)
    busiest_first = sorted(all_of_them, key=lambda one: -sum(_parts(one.usage.total.total)))
    longest = max((sum(_parts(one.usage.total.total)) for one in all_of_them), default=0)
    print_line()
    print_table(
        [
            {
                "team": one.owner.name,
                "tasks": Bar(_parts(one.usage.total.total), longest, width=14),
                "hits": _hit_rate(one.usage.total.total),
                "time_saved_ms": one.usage.total.total.time_saved_ms,
                "stored_bytes": one.stored.size_bytes,
            }
            for one in busiest_first
        ],
        ("team", "tasks", "hits", "time_saved_ms", "stored_bytes"),
        empty="there are no teams: create one with `larder teams create`",
        as_json=False,
        legend=_legend(total),
    )
    _print_parts("ci", {**total.by_ci, "no CI": without_parts(total, total.by_ci)})
    if total.by_tool:
        _print_parts("tool", _by_tool(total))


def _print_chart(usage: Usage) -> None:
    rows = list(_rows(usage))
    print_line()
    longest = max((sum(_parts(day.total)) for _, day in rows), default=0)
    unit = _unit(usage.period)
    print_table(
        [
            {
                unit: label,
                "tasks": Bar(_parts(day.total), longest),
                "hits": _hit_rate(day.total),
                "time_saved_ms": day.total.time_saved_ms,
                "uploaded_bytes": day.uploads.size_bytes,
            }
            for label, day in rows
        ],
        (unit, "tasks", "hits", "time_saved_ms", "uploaded_bytes"),
        empty=f"no client has reported usage in the last {len(usage.days)} days",
        as_json=False,
        legend=_legend(usage.total),
    )


def _rows(usage: Usage) -> Iterator[tuple[str, Day]]:
    """The rows of the chart: a label and the figures of a day, a week or a month, from the first day with usage."""
    days = list(zip(usage.period.days, usage.days, strict=True))
    while days and days[0][1] == Day():
        days.pop(0)
    for label, some in groupby(days, key=lambda day: _label(_unit(usage.period), day[0])):
        yield label, add_days([figures for _, figures in some])


def _unit(period: Period) -> str:
    if len(period.days) <= _MOST_DAYS:
        return "day"
    return "week_of" if len(period.days) <= 7 * _MOST_WEEKS else "month"


def _label(unit: str, day: date) -> str:
    if unit == "month":
        return f"{day:%Y-%m}"
    return str(day - timedelta(days=day.weekday()) if unit == "week_of" else day)


def _by_tool(total: Day) -> dict[str, Figures]:
    return {**total.by_tool, "turbo": without_parts(total, total.by_tool)}


def _print_parts(what: str, parts: Mapping[str, Figures]) -> None:
    busiest_first = sorted(parts.items(), key=lambda part: -sum(_parts(part[1])))
    rows = [
        {
            what: name,
            "tasks": sum(_parts(figures)),
            "hits": _hit_rate(figures),
            "time_saved_ms": figures.time_saved_ms,
        }
        for name, figures in busiest_first
        if figures != Figures()
    ]
    if rows:
        print_line()
        columns = (what, "tasks", "hits", "time_saved_ms")
        print_table(rows, columns, empty="", as_json=False)


def _parts(figures: Figures) -> tuple[int, int, int]:
    """Tasks restored from this cache, restored from a client's local cache, and built."""
    return figures.remote_hits, figures.local_hits, figures.remote_misses


def _hit_rate(figures: Figures) -> str | None:
    tasks = sum(_parts(figures))
    return f"{figures.hits / tasks:.0%}" if tasks else None


def _legend(total: Day) -> list[str]:
    parts = zip(_parts(total.total), _PARTS, strict=True)
    return [f"{human_number(count)} {part}" for count, part in parts]


def _summary(total: Day) -> Record:
    return {
        "tasks": sum(_parts(total.total)),
        "hits": _hit_rate(total.total),
        "time_saved_ms": total.total.time_saved_ms,
        "uploads": f"{human_number(total.uploads.count)}, {human_size(total.uploads.size_bytes)}",
    }


def _described(period: Period) -> str:
    return f"{period.first} to {period.last} (UTC)"


def _described_stored(artifacts: int, size_bytes: int) -> str:
    return f"{_counted(artifacts, 'artifact')}, {human_size(size_bytes)}"


def _counted(number: int, what: str) -> str:
    return f"{human_number(number)} {what}" + ("" if number == 1 else "s")


def _period_record(period: Period) -> Record:
    return {"from": period.first, "to": period.last}


def _owner_record(one: _OwnerUsage) -> Record:
    return {
        "team": one.owner.slug,
        "email": one.owner.email,
        "id": one.owner.id,
        "status": one.status,
        **block_record(one.owner.state),
        **stored_record(one.stored),
        "quota_bytes": one.owner.state.quota_bytes,
        **_totals_record(one.usage.total),
    }


def _totals_record(total: Day) -> Record:
    by_ci = [{"ci": ci, **asdict(figures)} for ci, figures in total.by_ci.items()]
    by_tool = [{"tool": tool, **asdict(figures)} for tool, figures in _by_tool(total).items()]
    no_ci = without_parts(total, total.by_ci)
    return {
        "total": _record(total),
        "ci": [*by_ci, {"ci": None, **asdict(no_ci)}],
        "tools": by_tool,
    }


def _record(day: Day) -> Record:
    uploads = {"uploads": day.uploads.count, "uploaded_bytes": day.uploads.size_bytes}
    return {**asdict(day.total), **uploads}


def _stored_then(day: Day) -> Record:
    """What was stored at the last check of a day. None without a check."""
    stored = day.stored
    return {
        "stored_bytes": None if stored is None else stored.size_bytes,
        "scoped_bytes": None if stored is None else stored.scoped_bytes,
        "artifacts": None if stored is None else stored.artifacts,
    }


def _growth(usage: Usage) -> Record:
    """How much more is stored than on the first day of the period with a check. Empty if there is only one."""
    days = zip(usage.period.days, usage.days, strict=True)
    checks = [(day, figures.stored) for day, figures in days if figures.stored is not None]
    if len(checks) < 2:
        return {}
    (since, first), (_, last) = checks[0], checks[-1]
    change = last.size_bytes - first.size_bytes
    return {"growth": f"{'-' if change < 0 else '+'}{human_size(abs(change))} since {since}"}
