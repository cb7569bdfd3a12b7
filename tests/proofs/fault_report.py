"""Renders the results of a run of the fault matrix. docs/faults.md has what operators need of them."""

from collections import Counter
from collections.abc import Iterable, Mapping

from tests.proofs.fault_deliveries import Delivery

COLUMNS = {
    "throttled": ("throttled", "Every attempt gets a throttling error."),
    "throttled within": (
        "part",
        "Every attempt is throttled in part: a transaction is cancelled, or a batch read returns keys unprocessed.",
    ),
    "500": ("500", "Every attempt gets 500. The store does not carry it out."),
    "503": ("503", "The same, with 503."),
    "no answer": ("silent", "No attempt gets a reply or is carried out. Each waits for its time-out."),
    "reset before": (
        "reset",
        "The connection of every attempt is reset before the call is carried out. For an upload, this is in its body.",
    ),
    "reset once": ("reset 1x", "The same, for the first attempt only."),
    "late": ("late", "Every reply comes late, but before the time-out."),
    "lost reply once": ("lost 1x", "The first attempt is carried out, but its connection is reset instead of a reply."),
    "lost replies": ("lost", "The same, for every attempt."),
    "no answer, done": ("silent, done", "Every attempt is carried out, but none gets a reply."),
    "500 once, done": ("500 1x, done", "The first attempt is carried out, but gets 500."),
    "cut reply": ("cut", "Every attempt is carried out, but its reply ends in the middle."),
    "crash before": ("crash before", "The function's process ends before it sends the call."),
    "crash after": ("crash after", "The process ends after the call was carried out, before it reads the reply."),
}
"""By fault: the title of its column, and what happens."""

SIGNS = {
    "as ever": ("ok", "The same reply as without the fault. The AWS client retried or waited."),
    "without it": (
        "without",
        """The same reply, although the call failed for good, because the request can do without it. If Larder cannot
        count requests, it lets them through and writes a metric; the same is true for the rate limit of a key
        with unlimited uses. If it cannot read the key of the edge, clients get presigned URLs. It skips the lookup of a
        slug, the time of the last use, the deletion of expired keys, a request to evict artifacts, or the notice of a
        changed password. A sweep leaves the item to its next run.""",
    ),
    "503": (
        "503",
        """503 `try_again` with `Retry-After`. A repeated request succeeds. A function without a route raises an error
        instead, and Lambda invokes it again.""",
    ),
    "503, done": (
        "503 done",
        "503, but the request was carried out. A repeated request is refused because of that, as docs/faults.md lists.",
    ),
    "done": (
        "done",
        """The request is refused because of its own first attempt: the store carried that out without a reply, and the
        second attempt found the change. As docs/faults.md lists.""",
    ),
    "in part": (
        "in part",
        "The reply to a query says that some hashes could not be looked up. The client treats them as missing.",
    ),
    "no answer": ("none", "The process ended, and the gateway replies 500. The repeated request or event succeeds."),
    "no answer, done": (
        "none, done",
        "The same, but the repeated request is refused because the first was carried out.",
    ),
}
"""By outcome: its text in a cell, and what it means."""

_REPORT = """\
# Faults, call by call

{cells} cells: each is one call of a request that fails in one way. A *call* is one operation of a store, with all its
attempts. Of similar calls, such as the pages of a query, the first two and the last fail. A number is how many calls of
the request have this outcome; `-` says that the request makes no such call.

| Column | What happens to one call |
|---|---|
{columns}
| Cell | Meaning |
|---|---|
{signs}
| Request | Calls | {titles} |
|---|---|{lines}|
{rows}
| Function | Delivery | Result |
|---|---|---|
{deliveries}"""


def render(
    calls: Mapping[str, int], cells: Mapping[str, Mapping[str, Counter[str]]], deliveries: Iterable[Delivery]
) -> str:
    """Render the report. `calls` and `cells` are by scenario; `cells` then has the number of each outcome, by fault."""
    rows = [
        (_shown(name), calls[name], *(_cell(row.get(fault, Counter())) for fault in COLUMNS))
        for name, row in cells.items()
    ]
    total = sum(times for row in cells.values() for counts in row.values() for outcome, times in counts.items())
    return _REPORT.format(
        cells=f"{total:,}",
        columns=_lines(COLUMNS.values()),
        signs=_lines((sign, " ".join(means.split())) for sign, means in SIGNS.values()),
        titles=" | ".join(title for title, _ in COLUMNS.values()),
        lines="|".join("---" for _ in COLUMNS),
        rows=_lines(rows),
        deliveries=_lines((f"`{delivery.function}`", delivery.how, delivery.outcome) for delivery in deliveries),
    )


def _lines(rows: Iterable[tuple[object, ...]]) -> str:
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


def _shown(name: str) -> str:
    route, bracket, variant = name.partition(" (")
    return f"`{route}`{bracket}{variant}"


def _cell(counts: Counter[str]) -> str:
    if not counts:
        return "-"
    return ", ".join(f"{SIGNS[one][0]} {counts[one]}" for one in SIGNS if counts[one])
