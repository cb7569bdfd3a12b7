"""Runs in the usage table: `(owner, "run#<time of start>#<turbo's id>")`, with a time to live.

A run that is reported twice has one item. Its tasks are one compressed attribute: 500 tasks take 4 kB. The hashes of
their artifacts are another one, which takes what space is left.

A second item, `point#...`, has what trends need, in some 250 bytes: DynamoDB bills and pages by the size of items, so a
month of 2,000 runs is one page.
"""

import base64
import json
import re
import zlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from larder.actor import Actor
from larder.clock import from_ms, to_epoch_seconds, to_ms
from larder.conditions import begins_with, between, equals, exists, missing
from larder.tables import USAGE, Item, commit
from larder.why.models import (
    MAX_NAME,
    TURBO,
    Point,
    Run,
    RunsPage,
    RunTask,
    StoredRun,
    TaskRow,
    Totals,
    kept,
    names_of,
    totals_of,
)
from larder.why.records import ComparisonJson

_PREFIX = "run#"
_POINT = "point#"

MAX_PACKED = 8_000
"""The most characters of the compressed tasks of a run, with their hashes. A hundred runs fit into a page of 1 MB."""

MAX_EXPLANATION = 4_000
"""The most characters of a compressed explanation. Usually it has half of them."""


_MAX_POINT_CAUSES = 3

_HASH = re.compile(r"(?!0{16})[0-9a-f]{16}")
"""A hash of turbo, which takes eight bytes. Others are not kept."""

_NO_HASH = "0" * 16


Packed = Item
"""The item of a run that is not stored yet."""


def item_of(owner: str, run: Run, *, expires_at: datetime) -> Packed:
    packed = _packed(run.tasks)
    return {
        "owner": owner,
        "day": f"{_PREFIX}{run.place}",
        "expires_at": to_epoch_seconds(expires_at),
        "started_at": to_ms(run.started_at),
        "duration_ms": run.duration_ms,
        "exit_code": run.exit_code,
        "turbo_version": run.turbo_version,
        "client": None if run.client == TURBO else run.client,
        "branch": run.branch,
        "sha": run.sha,
        "title": run.title,
        "author": run.author,
        "pull": run.pull,
        "ci": run.ci,
        "cache_unused": None if run.used_cache else True,
        "key_id": run.reporter.credential_id,
        "user_id": run.reporter.holder_id,
        "names": list(run.names),
        "totals": list(run.totals),
        "kept": packed,
        "hashes": _packed_hashes(run.hashes, most=MAX_PACKED - len(packed)),
        "scope": run.scope,
        "trusted": run.trusted,
        "only_reads": run.only_reads or None,
        "inputs": run.inputs,
        "explanation": None if run.explanation is None else _packed_explanation(run.explanation),
    }


def with_inputs(item: Packed, run: Run) -> Packed:
    """The item of a run whose object was stored since. Nothing else of it is packed again."""
    return {**item, "inputs": run.inputs}


def add(item: Item) -> bool:
    """Store a run. False if it is stored already; it then stays as it is."""
    return commit(USAGE.put(item, when=missing("owner")))


def explain(owner: str, run: Run, explanation: ComparisonJson) -> bool:
    """Add the explanation to a run that this credential has stored. False if it has one, or is deleted."""
    packed = _packed_explanation(explanation)
    if packed is None:
        return False
    own = equals(key_id=run.reporter.credential_id) & missing("explanation")
    day = f"{_PREFIX}{run.place}"
    return commit(USAGE.update(owner, day, set={"explanation": packed}, when=own))


def add_point(owner: str, run: Run, explanation: ComparisonJson | None, *, expires_at: int) -> bool:
    """Store what trends need of a run. False if it is there."""
    causes = None
    if explanation is not None:
        # The first causes cost the most.
        causes = [
            [cause["kind"], cause["subject"], cause["task"], cause["buildMs"]]
            for cause in explanation["causes"]
            if cause["class"] != "code"
        ][:_MAX_POINT_CAUSES]
    item = {
        "owner": owner,
        "day": f"{_POINT}{run.place}",
        "expires_at": expires_at,
        "duration_ms": run.duration_ms,
        "branch": run.branch,
        "sha": run.sha,
        "pull": run.pull,
        "cache_unused": None if run.used_cache else True,
        "totals": list(run.totals),
        "scope": run.scope,
        "causes": causes,
    }
    return commit(USAGE.put(item, when=missing("owner")))


def read_points(
    owner: str, first: datetime, end: datetime, *, pages: int, now: datetime
) -> tuple[list[Point], bool]:
    """The runs that started from `first` on, but before `end`, newest first, and whether these are all."""
    found: list[Point] = []
    within = between("day", _place(first, _POINT), _place(end, _POINT))
    after = None
    for _ in range(pages):
        items, after = USAGE.page(
            equals(owner=owner) & within, consistent=False, backwards=True, after=after
        )
        found += [_point(item) for item in items if item["expires_at"] > to_epoch_seconds(now)]
        if after is None:
            break
    return found, after is None


def read_page(
    owner: str, first: datetime, end: datetime, *, before: str | None, limit: int, now: datetime
) -> RunsPage:
    """A page of the runs that started from `first` on, but before `end`, newest first. It can have fewer than `limit`.

    `before` is the last page's `before`.
    """
    lowest, highest = _place(first), _place(end)
    start = highest if before is None else f"{_PREFIX}{before}"
    if start < lowest:
        # DynamoDB refuses a start outside of the bounds.
        return RunsPage(runs=(), before=None)
    within = between("day", lowest, highest)
    after = {"owner": owner, "day": start} if start < highest else None
    items, last = USAGE.page(
        equals(owner=owner) & within, consistent=False, backwards=True, limit=limit, after=after
    )
    # DynamoDB's time to live deletes expired items up to two days late.
    kept = [_run(item) for item in items if item["expires_at"] > to_epoch_seconds(now)]
    return RunsPage(
        runs=kept, before=None if last is None else str(last["day"]).removeprefix(_PREFIX)
    )


def read_shared(
    owner: str, first: datetime, end: datetime, *, most: int, pages: int, now: datetime
) -> list[Run]:
    """The newest runs of the shared scope, the newest first, from as many pages of 1 MB as `pages`."""
    found: list[Run] = []
    within = between("day", _place(first), _place(end))
    after = None
    for _ in range(pages):
        items, after = USAGE.page(
            equals(owner=owner) & within,
            consistent=False,
            backwards=True,
            keep=missing("scope"),
            after=after,
        )
        found += [_run(item) for item in items if item["expires_at"] > to_epoch_seconds(now)]
        if len(found) >= most or after is None:
            break
    return found[:most]


def find(owner: str, place: str, *, now: datetime) -> Run | None:
    item = USAGE.get(owner, f"{_PREFIX}{place}")
    if item is None or item["expires_at"] <= to_epoch_seconds(now):
        return None
    return _run(item)


def find_stored(owner: str, place: str) -> StoredRun | None:
    item = USAGE.get(owner, f"{_PREFIX}{place}")
    return None if item is None else _stored_run(item)


def runs_of(owner: str, reporter: str, *, most: int, pages: int) -> tuple[list[StoredRun], bool]:
    """The newest runs of a key, session, user or rule, and whether there may be more."""
    found: list[StoredRun] = []
    after = None
    for _ in range(pages):
        items, after = USAGE.page(
            equals(owner=owner) & begins_with(day=_PREFIX),
            consistent=True,
            backwards=True,
            only=("owner", "day", "key_id", "user_id", "scope", "inputs"),
            after=after,
        )
        found += [
            _stored_run(item) for item in items if reporter in (item["key_id"], item.get("user_id"))
        ]
        if len(found) > most or after is None:
            break
    return found[:most], len(found) > most or after is not None


def delete(owner: str, place: str) -> bool:
    """False if there is no such run any more."""
    commit(USAGE.delete(owner, f"{_POINT}{place}"))
    return commit(USAGE.delete(owner, f"{_PREFIX}{place}", when=exists("owner")))


def _place(moment: datetime, prefix: str = _PREFIX) -> str:
    return f"{prefix}{to_ms(moment):012x}"


def _point(item: Item) -> Point:
    started_at, _, id = str(item["day"]).removeprefix(_POINT).partition("#")
    causes = item.get("causes")
    return Point(
        id=id,
        started_at=from_ms(int(started_at, 16)),
        duration_ms=item["duration_ms"],
        branch=item.get("branch"),
        sha=item.get("sha"),
        pull=item.get("pull"),
        used_cache=not item.get("cache_unused", False),
        totals=Totals(*item["totals"]),
        scope=item.get("scope"),
        causes=None if causes is None else [tuple(cause) for cause in causes],
    )


def _packed(tasks: Sequence[TaskRow]) -> str:
    """The tasks as columns, which take less space and time than rows. Without the last ones if they take too much."""
    packages = {
        name: number for number, name in enumerate(dict.fromkeys(task[0] for task in tasks))
    }
    names = {name: number for number, name in enumerate(dict.fromkeys(task[1] for task in tasks))}
    columns = [
        list(packages),
        list(names),
        [packages[package] for package, _, _, _ in tasks],
        [names[task] for _, task, _, _ in tasks],
        "".join(outcome for _, _, outcome, _ in tasks),
        [ms for _, _, _, ms in tasks],
    ]
    packed = _compressed(columns)
    return packed if len(packed) <= MAX_PACKED else _packed(tasks[: len(tasks) // 2])


def _unpacked(packed: str) -> list[TaskRow]:
    packages, names, package, name, outcomes, ms = json.loads(
        zlib.decompress(base64.b64decode(packed))
    )
    return list(
        zip(
            map(packages.__getitem__, package),
            map(names.__getitem__, name),
            outcomes,
            ms,
            strict=True,
        )
    )


def _packed_hashes(hashes: Sequence[str | None], *, most: int) -> str | None:
    """As many of the first hashes as fit. None without one."""
    texts = [hash if hash and _HASH.fullmatch(hash) else _NO_HASH for hash in hashes]
    # Base64 takes four characters for three bytes.
    kept = bytes.fromhex("".join(texts[: most * 3 // 4 // 8]))
    return base64.b64encode(kept).decode() if any(kept) else None


def _unpacked_hashes(packed: str) -> list[str | None]:
    text = base64.b64decode(packed).hex()
    found = [text[at : at + 16] for at in range(0, len(text), 16)]
    return [None if hash == _NO_HASH else hash for hash in found]


def _packed_explanation(explanation: ComparisonJson) -> str | None:
    """Without the last causes and names if they take too much. None if even one cause does."""
    kept = explanation
    while True:
        packed = _compressed(kept)
        if len(packed) <= MAX_EXPLANATION:
            return packed
        if len(kept["causes"]) <= 1:
            return None
        kept = {
            **kept,
            "complete": False,
            "causes": kept["causes"][: len(kept["causes"]) // 2],
            "sameHash": kept["sameHash"][: len(kept["sameHash"]) // 2],
            "new": kept["new"][: len(kept["new"]) // 2],
            "gone": kept["gone"][: len(kept["gone"]) // 2],
            "notes": kept["notes"][: len(kept["notes"]) // 2],
        }


def _unpacked_explanation(packed: str | None) -> ComparisonJson | None:
    if packed is None:
        return None
    found: ComparisonJson = json.loads(zlib.decompress(base64.b64decode(packed)))
    return found


def _compressed(content: object) -> str:
    text = json.dumps(content, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _unpacked_rows(packed: str) -> list[RunTask]:
    """The tasks of a run that was stored before there were figures: all of them."""
    packages, names, rows = json.loads(zlib.decompress(base64.b64decode(packed)))
    return [
        RunTask(packages[package][:MAX_NAME], names[task][:MAX_NAME], outcome, ms)
        for package, task, _, outcome, ms in rows
    ]


def _stored_run(item: Item) -> StoredRun:
    return StoredRun(
        place=str(item["day"]).removeprefix(_PREFIX),
        reporter=Actor.of(item["key_id"], item.get("user_id")),
        scope=item.get("scope"),
        inputs=item.get("inputs"),
    )


def _run(item: Item) -> Run:
    tasks: Sequence[TaskRow]
    if "tasks" in item:
        all_tasks = _unpacked_rows(item["tasks"])
        names, totals, tasks = names_of(all_tasks), totals_of(all_tasks), kept(all_tasks)
    else:
        names, totals = item["names"], Totals(*item["totals"])
        tasks = _unpacked(item["kept"])
    return Run(
        id=str(item["day"]).rpartition("#")[2],
        started_at=from_ms(item["started_at"]),
        duration=timedelta(milliseconds=item["duration_ms"]),
        exit_code=item.get("exit_code"),
        turbo_version=item.get("turbo_version"),
        client=item.get("client", TURBO),
        branch=item.get("branch"),
        sha=item.get("sha"),
        title=item.get("title"),
        author=item.get("author"),
        pull=item.get("pull"),
        ci=item.get("ci"),
        used_cache=not item.get("cache_unused", False),
        reporter=Actor.of(item["key_id"], item.get("user_id")),
        names=names,
        totals=totals,
        tasks=tasks,
        hashes=_unpacked_hashes(item.get("hashes") or ""),
        scope=item.get("scope"),
        trusted=item.get("trusted", False),
        inputs=item.get("inputs"),
        only_reads=item.get("only_reads", False),
        explanation=_unpacked_explanation(item.get("explanation")),
    )
