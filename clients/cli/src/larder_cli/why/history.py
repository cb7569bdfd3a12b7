"""What became of a hash, as `GET /v1/tasks/history` says it."""

from collections.abc import Iterator, Mapping
from typing import Any

from larder.clock import from_ms
from larder_cli.output import human_duration
from larder_cli.why.report import cause_line, reason_text


def lines_of(hash: str, history: Mapping[str, Any]) -> Iterator[str]:
    found = history["hashes"]
    if not found:
        yield (
            f"No reported run has {hash}. Larder reads the newest 1,000 runs that used the cache, and keeps the hashes "
            "of about 250 tasks of each."
        )
    for one in found:
        task = f"{one['package']}#{one['task']}" if one["package"] else one["task"]
        time = f" ({human_duration(one['builtMs'])})" if one["builtMs"] else ""
        yield f"{task} {one['hash']}: built {_times(one['built'])}{time}, restored {_times(one['hits'])}"
        yield f"  first seen  {from_ms(one['firstAt']):%Y-%m-%d %H:%M} UTC"
        yield f"  last seen   {from_ms(one['lastAt']):%Y-%m-%d %H:%M} UTC"
        yield f"  branches    {', '.join(one['branches']) or '-'}"
        yield f"  commits     {', '.join(sha[:8] for sha in one['shas']) or '-'}"
        yield f"  on          {', '.join(ci or 'computers' for ci in one['ci']) or '-'}"
        if one.get("cause"):
            yield f"  cause       {cause_line(one['cause'])}"
        if one.get("reason"):
            yield f"  built again {reason_text(one['reason'])}"
        yield f"  stored      {'yes' if one['stored'] else 'no, or not for this token'}"
    if not history["complete"]:
        yield "There are older runs, which were not read."


def _times(count: int) -> str:
    return f"{count:,} time{'' if count == 1 else 's'}"
