"""Renders docs/faults.md from the results of a run of the fault matrix."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.proofs.fault_deliveries import Delivery

COLUMNS = {
    "throttled": ("throttled", "Every attempt gets a throttling error."),
    "throttled within": (
        "part",
        "Every attempt is throttled in part: a transaction is cancelled, or a batch read returns keys unprocessed.",
    ),
    "500": ("500", "Every attempt gets 500. The store does not carry it out."),
    "503": ("503", "The same, with 503."),
    "no answer": (
        "silent",
        "No attempt gets a reply or is carried out. Each waits for its time-out.",
    ),
    "reset before": (
        "reset",
        "The connection of every attempt is reset before the call is carried out. For an upload, this is in its body.",
    ),
    "reset once": ("reset 1x", "The same, for the first attempt only."),
    "late": ("late", "Every reply comes late, but before the time-out."),
    "lost reply once": (
        "lost 1x",
        "The first attempt is carried out, but its connection is reset instead of a reply.",
    ),
    "lost replies": ("lost", "The same, for every attempt."),
    "no answer, done": ("silent, done", "Every attempt is carried out, but none gets a reply."),
    "500 once, done": ("500 1x, done", "The first attempt is carried out, but gets 500."),
    "cut reply": ("cut", "Every attempt is carried out, but its reply ends in the middle."),
    "crash before": ("crash before", "The function's process ends before it sends the call."),
    "crash after": (
        "crash after",
        "The process ends after the call was carried out, before it reads the reply.",
    ),
}
"""By fault: the title of its column, and what happens."""

SIGNS = {
    "as ever": (
        "ok",
        "The same reply as without the fault. The AWS client retried or waited.",
    ),
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
        "503, but the request was carried out. A repeated request is refused because of that, as in the table below.",
    ),
    "done": (
        "done",
        """The request is refused because of its own first attempt: the store carried that out without a reply, and the
        second attempt found the change. As in the table below.""",
    ),
    "in part": (
        "in part",
        "The reply to a query says that some hashes could not be looked up. The client treats them as missing.",
    ),
    "no answer": (
        "none",
        "The process ended, and the gateway replies 500. The repeated request or event succeeds.",
    ),
    "no answer, done": (
        "none, done",
        "The same, but the repeated request is refused because the first was carried out.",
    ),
}
"""By outcome: its text in a cell, and what it means."""

NOT_RUN = "not run"

_HEAD = """\
# Faults

This page shows what happens if DynamoDB, S3, Lambda, Secrets Manager, SES or the function itself fails in the middle
of a request. `make faults` writes the page. It puts a proxy between the handlers and the local stores, records the
calls that each request makes, and then makes each call fail in every way below: {cells} cells in the last run. The run
fails if a cell has an outcome that is not listed below, such as a 500.

After each cell, the run checks that

- the client got a reply with a code from [errors.md](errors.md) within the time limit of the function;
- readers get the previous artifact, the new one or a 404, with GET and with HEAD, but never a partial artifact or the
  tag of another;
- the repeated request has the result that the client asked for;
- counts are exact, except for the [known inaccuracies](#known-inaccuracies);
- after all events have arrived out of order and the schedules have run for two days, each owner's totals equal the
  index, each artifact has one object, and no record, key or membership of a deleted item is left.

[Decision 31](decisions/0031-answers-before-the-function-ends.md) says what Larder guarantees, and how.

## The faults

A *call* is one operation of a store, with all its attempts: the layer's clients make up to three. If a request makes
several similar calls, such as the pages of a query or the deletions of a removal, the run makes the first two and the
last fail.

| Column | What happens to one call |
|---|---|
"""

_OUTCOMES = """
## The outcomes

A number in the table is how many calls of the request have this outcome.

| Cell | Meaning |
|---|---|
"""

_DONE = """
## Repeated requests that are refused

A reply can get lost after the request was carried out. The client cannot know that. A repeated request then finds its
own change, and gets the usual error for it:

| Request | Reply to the repeated request | Meaning |
|---|---|---|
{rows}

## Known inaccuracies

- **Remaining uses of a key.** If DynamoDB's reply to a verification gets lost, the client retries, and each retry takes
  another use: three at most. The same is true for the count of a key's rate limit. No use is ever given back, and the
  last use never succeeds twice.
- **Rate limits.** While their table fails, Larder does not count requests. The metric `RateLimitStoreFailures` shows
  this. A request whose reply from the table got lost counts twice.
- **Usage figures.** A batch of events is stored and counted once, or not at all. If the reply got lost and the client
  reports the batch again, it counts twice, because clients send no id for a batch.
- **Totals.** A crash or a lost reply between counting and publishing leaves the totals too high by one artifact, at
  most three, so the quota has less room. A lost reply while Larder counts an artifact out leaves them too low by as
  much. The [sweep](architecture.md#what-a-crash-leaves) corrects both within two days.
- **Unused keys, sessions and codes.** If the reply with a new one got lost, the client asks again and gets another.
  The first one is listed, and expires in its time.
- **Mail.** A message can arrive twice. If its job got lost, it does not arrive, and the user asks again. Larder does
  not send the notice of a changed password or address if the reply to the change got lost.
- **Objects.** If an upload was interrupted and its event got lost too, the object stays in the bucket until a lifecycle
  rule deletes it. No one can read it.

For the run, the time-outs of a silent store are ten times shorter. One test waits for the real ones: a request gets a
reply within 17 seconds while DynamoDB is silent, and within 22 while S3 is. A function has 25. A store that sends its
reply slowly is not silent: Lambda ends the function, as in a crash.

## Requests

| Request | Calls | {titles} |
|---|---|{lines}|
"""

_DELIVERIES = """
## Events, invocations and schedules

AWS delivers these at least once: sometimes twice, several at the same time ({at_once} in the run), in any order, and
now and then not at all.

| Function | Delivery | Result |
|---|---|---|
"""

DONE = {
    (200, "usage_exceeded"): "the first request took the key's last use",
    (200, "invalid_api_key"): "the first request took the key's last use, and the key is deleted",
    (400, "invalid_password"): "the password is changed",
    (
        400,
        "invalid_request",
    ): "the id token has given a key, which expires in its time. Get another id token",
    (400, "invalid_token"): "the link is used, and the password is changed",
    (401, "unauthorized"): "the session or key is revoked, or the user is deleted",
    (
        401,
        "invalid_login_code",
    ): "the code is used; its key is listed, and expires in its time. Log in again",
    (404, "key_not_found"): "the key is deleted",
    (404, "rule_not_found"): "the rule is deleted",
    (404, "team_not_found"): "the team is deleted",
    (404, "member_not_found"): "the member is removed, or the invitation withdrawn",
    (404, "invitation_not_found"): "the invitation is accepted, and the user is a member",
    (409, "slug_taken"): "the team exists, and the caller owns it",
    (409, "rule_exists"): "the rule exists: list the rules",
    (422, "user_already_exists_use_another_email"): "the user exists: sign in",
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
    """Render the page. `calls` and `cells` are by scenario; `cells` then has the number of each outcome, by fault.

    `kept` has the rows of the other scenarios, from an earlier run. A scenario that has none gets one that says so.
    """
    names = list(order)
    rows = {name: _row(name, 0, ["?"] * len(COLUMNS)) for name in names} | dict(kept)
    for name, row in cells.items():
        shown = [_cell(row.get(fault, Counter())) for fault in COLUMNS]
        rows[name] = _row(name, calls[name], shown)
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
    text += "".join(f"{rows[name]}\n" for name in names)
    text += _DELIVERIES.format(at_once=at_once)
    for one in deliveries:
        text += f"| `{one.function}` | {one.how} | {one.outcome} |\n"
    return text


def rows_of(page: Path) -> dict[str, str]:
    """The rows of the page's table of requests, by scenario."""
    _, _, section = page.read_text().partition("## Requests\n")
    section, _, _ = section.partition("\n## ")
    return {
        f"{found[1]}{' ' + found[2] if found[2] else ''}": found[0]
        for found in re.finditer(
            r"^\| `([^`]+)`(?: (\([^|]+\)))? \| \d+ \|.*$", section, re.MULTILINE
        )
    }


def deliveries_of(page: Path) -> list[tuple[str, str, str]]:
    """Function, delivery and result of each row of the last table."""
    _, _, section = page.read_text().partition("## Events, invocations and schedules\n")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", section, re.MULTILINE)
    return [(function, how, outcome) for function, how, outcome in rows]


def _row(name: str, calls: int, cells: Iterable[str]) -> str:
    return f"| {_shown(name)} | {calls} | {' | '.join(cells)} |"


def _shown(name: str) -> str:
    route, bracket, variant = name.partition(" (")
    return f"`{route}`{bracket}{variant}"


def _counted(row: str) -> int:
    """The number of cells of the matrix in a row: the sum of the numbers behind its outcomes."""
    _, _, _, *shown, _ = row.split("|")
    return sum(int(times) for cell in shown for times in re.findall(r" (\d+)(?=,| $)", cell))


def _cell(counts: Counter[str]) -> str:
    if counts[NOT_RUN]:
        return "?"
    if not counts:
        return "-"
    return ", ".join(f"{SIGNS[one][0]} {counts[one]}" for one in SIGNS if counts[one])
