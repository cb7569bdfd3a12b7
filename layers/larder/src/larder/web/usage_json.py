"""Usage on the wire: times in milliseconds, sizes in bytes, days in UTC."""

from typing import Any

from larder.usage.models import Day, Figures, Usage, without_ci
from larder.web.auth import CacheCaller


def usage_json(caller: CacheCaller, usage: Usage) -> dict[str, Any]:
    """What happened in the period, what is stored now, and what rules it.

    `block` goes before `status`: while there is one, requests for artifacts are answered with 402. It and its reason
    are null for none, and so is `quotaBytes`.
    """
    total = usage.total
    state = caller.standing.state
    return {
        "owner": caller.owner,
        "status": caller.caching.value,
        "block": None if state.block is None else state.block.value,
        "blockReason": state.block_reason,
        "storedBytes": caller.totals.size_bytes,
        "artifacts": caller.totals.artifacts,
        "quotaBytes": caller.quota_bytes,
        "from": usage.period.first.isoformat(),
        "to": usage.period.last.isoformat(),
        "total": _day_json(total),
        "ci": [
            *({"ci": vendor, **_figures_json(part)} for vendor, part in total.by_ci.items()),
            {"ci": None, **_figures_json(without_ci(total))},
        ],
        "days": [
            {"day": day.isoformat(), **_day_json(figures)}
            for day, figures in zip(usage.period.days, usage.days, strict=True)
        ],
    }


def _day_json(day: Day) -> dict[str, int]:
    return {
        **_figures_json(day.total),
        "uploads": day.uploads.count,
        "uploadedBytes": day.uploads.size_bytes,
    }


def _figures_json(figures: Figures) -> dict[str, int]:
    return {
        "events": figures.events,
        "interactiveEvents": figures.interactive_events,
        "hits": figures.hits,
        "misses": figures.misses,
        "localHits": figures.local_hits,
        "localMisses": figures.local_misses,
        "remoteHits": figures.remote_hits,
        "remoteMisses": figures.remote_misses,
        "timeSavedMs": figures.time_saved_ms,
    }
