"""Usage in replies: times in milliseconds, sizes in bytes, days in UTC."""

from datetime import datetime
from typing import TypedDict

from larder.artifacts.expiry import may_hold_hidden
from larder.clock import IsoDate, to_iso_date
from larder.records import shaped
from larder.teams.models import Block, CachingStatus
from larder.usage.models import Day, Figures, Period, Usage, UsageByKey, without_parts
from larder.web.principals.prefetch import CachePrincipal


class FiguresJson(TypedDict):
    events: int
    interactiveEvents: int
    hits: int
    misses: int
    localHits: int
    localMisses: int
    remoteHits: int
    remoteMisses: int
    timeSavedMs: int
    untimedHits: int


class CiFiguresJson(FiguresJson):
    """The part of one CI vendor; `ci` is null for events that named none."""

    ci: str | None


class ToolFiguresJson(FiguresJson):
    """The part of one build tool. `other` adds up those that Larder does not know."""

    tool: str


class TotalJson(FiguresJson):
    uploads: int
    uploadedBytes: int


class DayJson(TotalJson):
    """`storedBytes` and `artifacts` are what was stored at the last check of the day; now, for today.

    `scopedBytes` is the part of `storedBytes` in own scopes. All three are null for a day without a check.
    """

    day: IsoDate
    storedBytes: int | None
    scopedBytes: int | None
    artifacts: int | None


# A class cannot have a property named `from`, which is a keyword of Python.
PeriodJson = TypedDict("PeriodJson", {"from": IsoDate, "to": IsoDate})


class UsageJson(PeriodJson, TypedDict):
    """What happened in the period, what is stored now, and the limits that hold now.

    `block` goes before `status`: while it is not null, requests for artifacts are answered with 402. `quotaBytes` is
    null for no limit. `scopedBytes` is the part of `storedBytes` in own scopes of a protected team. If `countsHidden`,
    `storedBytes` and `artifacts` may include what was stored before the team was protected, which readers do not see.
    """

    owner: str
    status: CachingStatus
    block: Block | None
    blockReason: str | None
    storedBytes: int
    scopedBytes: int
    artifacts: int
    countsHidden: bool
    quotaBytes: int | None
    total: TotalJson
    ci: list[CiFiguresJson]
    tools: list[ToolFiguresJson]
    days: list[DayJson]


class KeyFiguresJson(FiguresJson):
    """The part of one key or session, or of the rule of CI jobs, whose `userId` is null."""

    id: str
    userId: str | None


class UsageByJson(PeriodJson, TypedDict):
    """`keys` are the ones with the most tasks, and `others` adds up the rest."""

    owner: str
    keys: list[KeyFiguresJson]
    others: FiguresJson


def usage_by_key_json(owner: str, period: Period, usage: UsageByKey) -> UsageByJson:
    return {
        "owner": owner,
        "from": to_iso_date(period.first),
        "to": to_iso_date(period.last),
        "keys": [
            {"id": part.id, "userId": part.user_id, **_figures_json(part.figures)}
            for part in usage.parts
        ],
        "others": _figures_json(usage.others),
    }


def usage_json(principal: CachePrincipal, usage: Usage, now: datetime) -> UsageJson:
    total = usage.total
    state = principal.membership.state
    return {
        "owner": principal.owner,
        "status": principal.caching,
        "block": state.block,
        "blockReason": state.block_reason,
        "storedBytes": principal.totals.size_bytes,
        "scopedBytes": principal.totals.scoped_bytes,
        "artifacts": principal.totals.artifacts,
        "countsHidden": may_hold_hidden(principal.membership, now),
        "quotaBytes": principal.view.quota_bytes,
        "from": to_iso_date(usage.period.first),
        "to": to_iso_date(usage.period.last),
        "total": _total_json(total),
        "ci": [
            *(_ci_json(vendor, part) for vendor, part in total.by_ci.items()),
            _ci_json(None, without_parts(total, total.by_ci)),
        ],
        "tools": [
            *(_tool_json(tool, part) for tool, part in total.by_tool.items()),
            _tool_json("turbo", without_parts(total, total.by_tool)),
        ],
        "days": [
            {
                "day": to_iso_date(day),
                **_total_json(figures),
                "storedBytes": None if figures.stored is None else figures.stored.size_bytes,
                "scopedBytes": None if figures.stored is None else figures.stored.scoped_bytes,
                "artifacts": None if figures.stored is None else figures.stored.artifacts,
            }
            for day, figures in zip(usage.period.days, usage.days, strict=True)
        ],
    }


def _ci_json(ci: str | None, figures: Figures) -> CiFiguresJson:
    return {"ci": ci, **_figures_json(figures)}


def _tool_json(tool: str, figures: Figures) -> ToolFiguresJson:
    return {"tool": tool, **_figures_json(figures)}


def _total_json(day: Day) -> TotalJson:
    return {
        **_figures_json(day.total),
        "uploads": day.uploads.count,
        "uploadedBytes": day.uploads.size_bytes,
    }


def _figures_json(figures: Figures) -> FiguresJson:
    return shaped(FiguresJson, figures)
