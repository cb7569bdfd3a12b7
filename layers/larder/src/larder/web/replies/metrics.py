"""Figures in Prometheus's text format, version 0.0.4.

Counters begin at 0 each day, which Prometheus takes for a restart of what it counts.
"""

from collections.abc import Iterator, Mapping, Sequence

from larder.teams.models import CachingStatus
from larder.usage.models import Day, without_parts
from larder.web.principals.prefetch import CachePrincipal
from larder.web.responses import DeclaredResponse

_Samples = Sequence[tuple[Mapping[str, str], float]]
"""The labels and the value of each sample."""


class MetricsResponse(DeclaredResponse[str]):
    """Text for a scraper of metrics."""

    media_type = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(principal: CachePrincipal, today: Day) -> str:
    lines = []
    for name, meaning, samples in _metrics(principal, today):
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        for labels, value in samples:
            named = ",".join(f'{label}="{text}"' for label, text in labels.items())
            lines.append(f"{name}{{{named}}} {value}" if named else f"{name} {value}")
    return "\n".join([*lines, ""])


def _metrics(principal: CachePrincipal, today: Day) -> Iterator[tuple[str, str, _Samples]]:
    """The name, meaning and samples of each metric. Names and texts of labels need no escape."""
    tools = {**today.by_tool, "turbo": without_parts(today, today.by_tool)}
    lookups = [
        ({"tool": tool, "cache": cache, "result": result}, count)
        for tool, part in tools.items()
        for cache, result, count in (
            ("local", "hit", part.local_hits),
            ("local", "miss", part.local_misses),
            ("remote", "hit", part.remote_hits),
            ("remote", "miss", part.remote_misses),
        )
    ]
    saved = [({"tool": tool}, part.time_saved_ms / 1000) for tool, part in tools.items()]
    yield "larder_lookups_total", "Lookups of tasks since midnight UTC.", lookups
    yield "larder_time_saved_seconds_total", "Build time that hits saved since midnight UTC.", saved

    totals, quota, state = principal.totals, principal.view.quota_bytes, principal.membership.state
    serves = principal.caching is CachingStatus.ENABLED and state.block is None
    uploads = today.uploads
    yield "larder_uploads_total", "Artifacts stored since midnight UTC.", [({}, uploads.count)]
    yield "larder_uploaded_bytes_total", "Their size.", [({}, uploads.size_bytes)]
    yield "larder_stored_artifacts", "Artifacts stored now.", [({}, totals.artifacts)]
    yield "larder_stored_bytes", "Bytes stored now.", [({}, totals.size_bytes)]
    if quota is not None:
        yield "larder_quota_bytes", "The most bytes that can be stored.", [({}, quota)]
    yield "larder_caching_enabled", "1 if builds can read and store, else 0.", [({}, int(serves))]
