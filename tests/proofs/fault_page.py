"""docs/faults.md, as a run of the whole matrix makes it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.proofs.fault_deliveries import Delivery

COLUMNS = {
    "throttled": ("throttled", "The store says that it is too busy, to every try."),
    "throttled within": (
        "part",
        "A part is too busy: a transaction is cancelled for it, or a batch of reads leaves its keys, at every try.",
    ),
    "500": ("500", "Every try is answered 500, and nothing is done."),
    "503": ("503", "The same with 503."),
    "no answer": (
        "silent",
        "No try is answered, and nothing is done: each waits for its time-out.",
    ),
    "reset before": (
        "reset",
        "Every try's connection is reset before it is carried out; an upload's in the middle of its body.",
    ),
    "reset once": ("reset 1x", "The same of the first try alone."),
    "late": ("late", "Every answer comes late, before the time-out."),
    "lost reply once": (
        "lost 1x",
        "The first try is carried out, and its connection reset in place of a reply.",
    ),
    "lost replies": ("lost", "The same of every try."),
    "no answer, done": ("silent, done", "Every try is carried out, and none is answered."),
    "500 once, done": ("500 1x, done", "The first try is carried out, and answered 500."),
    "cut reply": ("cut", "Every try is carried out, and its reply breaks off in the middle."),
    "crash before": ("crash before", "The function's process ends before the call leaves."),
    "crash after": ("crash after", "It ends when the call is carried out, before it learns so."),
}
"""By the name of a fault: the title of its column, and what happens."""

SIGNS = {
    "as ever": (
        "ok",
        "Answered as without the fault: the client of AWS has tried again, or has waited.",
    ),
    "without it": (
        "without",
        """The same, although the call failed for good. The answer does not rest on it: a limit on requests that cannot
        be counted lets them pass, and so does the limit of a key without an allowance, with a metric; a look at the
        slug, a note of the last use, the removal of expired keys, a request to make room, or the mail that tells of a
        changed password is left out; a sweep leaves the item to the next one.""",
    ),
    "503": (
        "503",
        """503 `try_again` with `Retry-After`, and repeated it succeeds. A function without a route raises instead, and
        is invoked again.""",
    ),
    "503, done": (
        "503 done",
        "503, but the request was carried out. Repeated, it is refused for what is done: the table below tells how.",
    ),
    "done": (
        "done",
        """The request is refused for what it has done itself: its first try was carried out, and its second, of which
        alone the reply came, found that. As in the table below.""",
    ),
    "in part": (
        "in part",
        "A query tells of some hashes that they could not be looked up; the client takes them for missing.",
    ),
    "no answer": (
        "none",
        "The process ended. The gateway answers 500 in its place; the repeated request, or event, succeeds.",
    ),
    "no answer, done": (
        "none, done",
        "The same, and the repeated request is refused for what is done.",
    ),
}
"""By outcome: how a cell shows it, and what it means."""

NOT_RUN = "not run"

_HEAD = """\
# Faults

What happens when DynamoDB, S3, Lambda, Secrets Manager or SES fail in the middle of a request, or the function does.
`make faults` makes this page. It puts a proxy between the handlers and the local stores, records the calls that each
request makes, and then lets every one of them fail in every way below: {cells} cells in the last run. A cell that is
none of the outcomes below fails the run, a 500 among them.

After each cell it is checked that

- the client got an answer with a code of [errors.md](errors.md) in less time than a function has;
- readers meet nothing half, and nothing with another's tag: the artifact from before, the new one, or none, by GET
  and by HEAD;
- the repeated request ends in what was wanted;
- counts are off by nothing but what stands under [What may be off](#what-may-be-off);
- when all events have come, out of order, and the schedules have run for two days, each owner's totals equal the index,
  there is one object for each artifact, and no note, key or membership of what is gone is left.

[Decision 31](decisions/0031-answers-before-the-function-ends.md) tells what is promised and how it is kept.

## The faults

A *call* is one operation of a store with all its tries: three, by the layer's clients. Of calls that are alike, such
as the pages of a query or the artifacts of a removal, the first two and the last are failed.

| Column | What befalls one call |
|---|---|
"""

_OUTCOMES = """
## The outcomes

Numbers in the table count calls of the request.

| Cell | Meaning |
|---|---|
"""

_DONE = """
## Refused for what is done

A reply can get lost after the request was carried out. No store can tell its client so, and no client can know. What
is repeated then finds what it wanted, and is refused in its usual way:

| Request | The repeated one gets | It means |
|---|---|---|
{rows}

## What may be off

- **An allowance.** A verification whose reply got lost on the way from DynamoDB is made again, and takes a further
  use, three at most; the count of a rate limit the same. No use ever comes back, and the last one never passes
  twice.
- **A limit on requests.** While its table fails, requests pass uncounted; the metric `RateLimitStoreFailures` tells.
  A reply that got lost counts twice.
- **Usage figures.** A batch of events is kept and counted once, or not at all. A client that reports it again,
  because the reply got lost, has it counted again: clients send no id by which it could be known.
- **Totals.** A crash, or a lost reply, between counting and publishing leaves them too high by one artifact, by
  three at most, and what the quota has room for too low. A reply that gets lost while one is counted out leaves them
  too low by as much. The [sweep](architecture.md#what-a-crash-leaves) takes either off within two days.
- **Keys, sessions and codes that nobody has.** Whoever asked for one and got no reply asks again and gets another.
  The first is listed, and ends in its time.
- **Mail.** May come twice, and not at all when its job got lost: ask again. The notice of a changed password, or
  address, is not sent when the reply of the change got lost.
- **Objects.** One whose upload was cut off, and whose event got lost too, stays in the bucket till its lifecycle
  ends it. Nobody reads it.

Time-outs of a silent store are shortened for the run, tenfold, and one test waits for the real ones: a request is
answered within 17 seconds while DynamoDB is silent, and within 22 while S3 is; a function has 25. An answer that
keeps trickling is not silent: Lambda ends the function, as in a crash.

## Requests

| Request | Calls | {titles} |
|---|---|{lines}|
"""

_DELIVERIES = """
## Events, invocations and schedules

They come at least once: twice, two at a time ({at_once} in the run), in any order, and now and then not at all.

| Function | It comes | What comes of it |
|---|---|---|
"""

DONE = {
    (200, "usage_exceeded"): "the key's last use is taken, by the first",
    (200, "invalid_api_key"): "the key's last use is taken, by the first, and the key is gone",
    (400, "invalid_password"): "the password is the new one",
    (400, "invalid_token"): "the link is used, the password is the new one",
    (401, "unauthorized"): "the session, the key or the user is gone",
    (
        401,
        "invalid_login_code",
    ): "the code is spent; its key is listed and ends in its time. Log in again",
    (404, "key_not_found"): "the key is gone",
    (404, "team_not_found"): "the team is gone",
    (404, "member_not_found"): "the member, or the invitation, is gone",
    (404, "invitation_not_found"): "the invitation is used: who was invited is a member",
    (409, "slug_taken"): "the team is there, and the caller owns it",
    (422, "user_already_exists_use_another_email"): "the user is there: sign in",
}


def render(
    order: Iterable[str],
    calls: Mapping[str, int],
    cells: Mapping[str, Mapping[str, Counter[str]]],
    done_before: Mapping[str, Iterable[tuple[int, str]]],
    deliveries: Iterable[Delivery],
    at_once: int,
    kept: Mapping[str, str],
) -> str:
    """`calls` and `cells` are by the name of a scenario, cells by fault, each with how often an outcome came.

    `kept` has the rows of the others, as an earlier run made them.
    """
    rows = dict(kept)
    for name, row in cells.items():
        shown = [_cell(row.get(fault, Counter())) for fault in COLUMNS]
        rows[name] = f"| {_shown(name)} | {calls[name]} | {' | '.join(shown)} |"
    total = sum(_counted(row) for row in rows.values())
    text = _HEAD.format(cells=f"{total:,}")
    text += "".join(f"| {title} | {means} |\n" for title, means in COLUMNS.values())
    text += _OUTCOMES
    text += "".join(f"| {sign} | {' '.join(means.split())} |\n" for sign, means in SIGNS.values())
    text += "| - | The request makes no such call. |\n"
    if any("| ? |" in row for row in rows.values()):
        text += "| ? | Not run when this page was made. |\n"
    refusals = [
        f"| {_shown(name)} | {status} `{code}` | {DONE[status, code]} |"
        for name, codes in done_before.items()
        for status, code in codes
    ]
    text += _DONE.format(
        rows="\n".join(refusals),
        titles=" | ".join(title for title, _ in COLUMNS.values()),
        lines="|".join("---" for _ in COLUMNS),
    )
    text += "".join(f"{rows[name]}\n" for name in order)
    text += _DELIVERIES.format(at_once=at_once)
    for one in deliveries:
        text += f"| `{one.function}` | {one.how} | {one.outcome} |\n"
    return text


def rows_of(page: Path) -> dict[str, str]:
    """The rows of cells that the page has, by the request."""
    _, _, section = page.read_text().partition("## Requests\n")
    section, _, _ = section.partition("\n## ")
    return {
        f"{found[1]}{' ' + found[2] if found[2] else ''}": found[0]
        for found in re.finditer(
            r"^\| `([^`]+)`(?: (\([^|]+\)))? \| \d+ \|.*$", section, re.MULTILINE
        )
    }


def deliveries_of(page: Path) -> list[tuple[str, str, str]]:
    """Function, how and outcome of each row of the last table."""
    _, _, section = page.read_text().partition("## Events, invocations and schedules\n")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", section, re.MULTILINE)
    return [(function, how, outcome) for function, how, outcome in rows]


def _shown(name: str) -> str:
    route, bracket, variant = name.partition(" (")
    return f"`{route}`{bracket}{variant}"


def _counted(row: str) -> int:
    """The cells of the matrix that a row tells of: what stands behind each outcome."""
    _, _, _, *shown, _ = row.split("|")
    return sum(int(times) for cell in shown for times in re.findall(r" (\d+)(?=,| $)", cell))


def _cell(counts: Counter[str]) -> str:
    if counts[NOT_RUN]:
        return "?"
    if not counts:
        return "-"
    return ", ".join(f"{SIGNS[one][0]} {counts[one]}" for one in SIGNS if counts[one])
