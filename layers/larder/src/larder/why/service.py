"""Explain runs when they are reported, and reports that are not stored.

The evidence is there when a run is reported, so its explanation is stored with it, and readers pay nothing. The run is
stored first, so nothing that fails or takes too long here fails a report.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from larder.clock import from_ms
from larder.errors import InvalidValue, TooManyRequests, TryAgain
from larder.hashing import random_id
from larder.metrics import count_in_total
from larder.rate_limits.models import COMPARISONS
from larder.rate_limits.reports import Sender, Sort, take_stored
from larder.rate_limits.service import take
from larder.settings import settings
from larder.teams.models import RunInputs
from larder.why import codes, repository, runs, same_hash, storage
from larder.why.baseline import (
    MAX_AGE,
    MAX_RUNS,
    BaselineQuery,
    Candidate,
    candidates,
    with_committed,
    with_missing,
)
from larder.why.comparison import compare
from larder.why.differences import Differences, OutOfSteps
from larder.why.figures import Reader
from larder.why.inputs import summary_of
from larder.why.models import Caller, Explained, NoCauses, Report, Run
from larder.why.records import ComparisonJson, record
from larder.why.summaries import InvalidSummary, Summary

MAX_TIME = timedelta(seconds=5)
"""After this time, an explanation begins no further read."""

MAX_STEPS = 12_000_000
"""The steps of an explanation, of about a tenth of a microsecond. A run of 1,000 tasks takes 0.3 million."""

OF_A_CANDIDATE = 2 / 3
"""The part of the steps that are left which one candidate can take. Then the next one is compared."""

_BYTES_IN_A_STEP = 8
"""What the parser of JSON reads in a step."""

MAX_OBJECTS = 3
"""The most candidates whose objects are read for a baseline, and the most further ones for tasks that it lacks."""

LEAST_COUNTED = 20_000
"""The bytes that a report counts as at least, because to explain it takes time, too."""

MAX_AHEAD = timedelta(minutes=5)
"""How far a run can have started in the future, because clocks differ."""

_OBJECT_ID = 8


def record_run(
    caller: Caller, run: Run, report: Report | None, *, now: datetime
) -> tuple[bool, Explained]:
    """Store a run, and explain it. False if it is stored already.

    Raises InvalidValue, TooManyRequests.
    """
    run = replace(
        run,
        scope=caller.own_scope,
        trusted=caller.trusted and not caller.only_reads,
        only_reads=caller.only_reads,
    )
    kept = _coded(caller, report)
    summary = None if kept is None else _summary(kept)
    item = _admit(caller.sender, run, now=now)
    if kept is None or summary is None:
        missing = NoCauses.NO_INPUTS if report is None else NoCauses.INPUTS_OFF
        missing = missing if run.used_cache else NoCauses.CACHE_UNUSED
        is_new, explained = repository.add(item), Explained(missing=missing)
    else:
        is_new, explained = _record_explained(caller, run, item, kept, summary, now=now)
    # Last, because it has the causes. Also for a run that is stored already: its report was repeated after a failure.
    with suppress(TryAgain):
        repository.add_point(
            caller.owner, run, explained.explanation, expires_at=item["expires_at"]
        )
    return is_new, explained


def _record_explained(
    caller: Caller,
    run: Run,
    item: repository.Packed,
    kept: Report,
    summary: Summary,
    *,
    now: datetime,
) -> tuple[bool, Explained]:
    """Store a run with its inputs, and explain it."""
    content = storage.packed(kept)
    try:
        take_stored(Sort.INPUTS, caller.sender, max(len(content), LEAST_COUNTED), now=now)
    except TooManyRequests:
        return repository.add(item), Explained(missing=NoCauses.TOO_MANY)
    if not caller.only_reads:
        run = _with_object(caller.owner, run, content)
    is_new = repository.add(repository.with_inputs(item, run))
    if not is_new and run.has_inputs:
        # If this fails, the lifecycle deletes the object.
        with suppress(TryAgain):
            _delete_unused_inputs(caller.owner, run)
    if not run.used_cache:
        return is_new, Explained(missing=NoCauses.CACHE_UNUSED)
    query = _baseline_query(caller, kept, started_at=run.started_at, ci=run.ci)
    explained = _safely(lambda: _with_reasons(caller, run, kept, summary, query, now=now))
    if explained.explanation is not None:
        # Also for a run that is stored already: its explanation may have failed, and the report was repeated.
        with suppress(TryAgain):
            repository.explain(caller.owner, run, explained.explanation)
    return is_new, explained


def explain(
    caller: Caller, report: Report, *, ci: str | None, against: str | None, now: datetime
) -> Explained:
    """Explain a report that is not stored, such as one of a dry run. Raises InvalidValue, TooManyRequests."""
    _take_comparison(caller, now)
    kept = _coded(caller, report)
    if kept is None:
        return Explained(missing=NoCauses.INPUTS_OFF)
    started_at = (report.get("execution") or {}).get("startTime")
    query = _baseline_query(
        caller,
        kept,
        started_at=now if started_at is None else from_ms(started_at),
        ci=ci,
        against=against,
    )
    listed = _recent(caller.owner, query, now)
    return _explained(caller.owner, kept, _summary(kept), query, listed)


def explain_stored(caller: Caller, run: Run, *, against: str | None, now: datetime) -> Explained:
    """Compare a stored run again. The caller reads its scope. Raises TooManyRequests."""
    _take_comparison(caller, now)
    kept = storage.get(caller.owner, run) if run.has_inputs else None
    if kept is None:
        return Explained(missing=NoCauses.NO_INPUTS)
    query = _baseline_query(caller, kept, started_at=run.started_at, ci=run.ci, against=against)
    query = replace(query, trusted_only=query.trusted_only or run.trusted)
    listed = _recent(caller.owner, query, now)
    return _explained(caller.owner, kept, _summary(kept), query, listed)


def explained_run(
    run: Run, caller: Caller, reader: Reader, *, against: str | None, now: datetime
) -> Explained:
    """Why a stored run missed, for those who look at it: the stored explanation, or with `against` a new comparison.

    Raises TooManyRequests, InvalidValue.
    """
    if not reader.sees(run):
        return Explained(missing=NoCauses.NO_INPUTS)
    if against is not None:
        return explain_stored(caller, run, against=against, now=now)
    if run.explanation is not None:
        return Explained(run.explanation)
    if not run.used_cache:
        return Explained(missing=NoCauses.CACHE_UNUSED)
    return Explained(missing=NoCauses.NO_BASELINE if run.has_inputs else NoCauses.NO_INPUTS)


def _admit(sender: Sender, run: Run, *, now: datetime) -> repository.Packed:
    """Check and count a run before it is stored. Returns its item. Raises InvalidValue, TooManyRequests."""
    kept = timedelta(days=settings().run_retention_days)
    if run.started_at > now + MAX_AHEAD:
        raise InvalidValue("execution.start_time", "must not be in the future")
    if run.started_at < now - kept:
        raise InvalidValue("execution.start_time", f"must be within the last {kept.days} days")
    item = repository.item_of(sender.owner, run, expires_at=now + kept)
    size = len(json.dumps(item)) + repository.MAX_EXPLANATION
    take_stored(Sort.RUNS, sender, size, now=now)
    return item


def _delete_unused_inputs(owner: str, run: Run) -> None:
    """Delete the object of a run that was stored already, unless the stored run has this object.

    It has if the reply of its write was lost, and the write was repeated.
    """
    stored = repository.find_stored(owner, run.place)
    if stored is None or stored.inputs != run.inputs:
        storage.delete(owner, run)


def _take_comparison(caller: Caller, now: datetime) -> None:
    """Also without other limits: a person who compares could try values of variables."""
    take(f"comparisons#{caller.compares_as}", COMPARISONS, now=now)


def _coded(caller: Caller, report: Report | None) -> Report | None:
    """The report as the team keeps it. None if it keeps none."""
    team = caller.team
    if report is None or team is None or team.run_inputs is RunInputs.OFF:
        return None
    return codes.coded(report, key=team.inputs_key, kept=team.run_inputs)


def _summary(report: Report) -> Summary:
    try:
        return summary_of(report)
    except InvalidSummary as error:
        place, _, rule = str(error).partition(" ")
        raise InvalidValue(place, rule) from None


def _baseline_query(
    caller: Caller,
    report: Report,
    *,
    started_at: datetime,
    ci: str | None,
    against: str | None = None,
) -> BaselineQuery:
    return BaselineQuery(
        run_id=report.get("id") or "",
        started_at=started_at,
        own_scope=caller.own_scope,
        # What a computer or main misses is not explained by what a pull request ran.
        trusted_only=caller.trusted or ci is None,
        sha=(report.get("scm") or {}).get("sha"),
        ancestors=report.get("ancestors") or (),
        against=against,
        reporter=caller.actor,
    )


def _with_object(owner: str, run: Run, content: bytes) -> Run:
    """The run with its inputs, or without them if they could not be stored."""
    stored = replace(run, inputs=random_id(_OBJECT_ID))
    try:
        storage.put(owner, stored, content)
    except TryAgain:
        return run
    return stored


def _safely(explain: Callable[[], Explained]) -> Explained:
    try:
        return explain()
    except TryAgain:
        return Explained(missing=NoCauses.FAILED)
    except Exception as error:  # noqa: BLE001  # the run is stored without an explanation, whatever the reason
        # The message could quote the report.
        count_in_total("ExplanationFailures", error=type(error).__name__)
        return Explained(missing=NoCauses.FAILED)


def _with_reasons(
    caller: Caller,
    run: Run,
    report: Report,
    summary: Summary,
    query: BaselineQuery,
    *,
    now: datetime,
) -> Explained:
    """The same as `_explained`, with the reasons of the tasks that an earlier run had."""
    kept = timedelta(days=settings().run_retention_days)
    listed = runs.recent_runs(
        caller.owner, run.started_at - kept, run.started_at, limit=MAX_RUNS, now=now
    )
    explained = _explained(caller.owner, report, summary, query, listed)
    if explained.explanation is None:
        return explained
    built = same_hash.built_again(run, report, listed)
    with_reasons: ComparisonJson = {
        **explained.explanation,
        "sameHash": same_hash.reasons(caller, run, built, now=now),
        "sameHashCount": len(built),
    }
    return explained._replace(explanation=with_reasons)


def _recent(owner: str, query: BaselineQuery, now: datetime) -> Sequence[Run]:
    first = query.started_at - MAX_AGE
    return runs.recent_runs(owner, first, query.started_at, limit=MAX_RUNS, now=now)


def _explained(
    owner: str, report: Report, summary: Summary, query: BaselineQuery, listed: Sequence[Run]
) -> Explained:
    found, work = candidates(listed, summary, query), _Work(owner)
    for candidate in islice(found, MAX_OBJECTS):
        with work.part() as compared, suppress(OutOfSteps):
            base_report = work.read(candidate.run)
            if base_report is None:
                continue
            kept, base_kept = codes.comparable(report, base_report)
            base, run = summary_of(base_kept), summary_of(kept)
            if not base.tasks.keys() & run.tasks.keys():
                continue
            if base_report["kept"] == report["kept"]:
                others = _others(found, base, run, work.read, kept=report["kept"])
                base = with_missing(base, others, run.tasks)
            hints = with_committed(base_kept, kept, base, run, compared)
            return Explained(record(compare(base, run, hints, compared), chosen=candidate.chosen))
    return Explained(missing=NoCauses.NO_TIME if work.is_over else NoCauses.NO_BASELINE)


class _Work:
    """What an explanation can still do: its time for reads, and the steps of its comparisons.

    Other people's reports are compared, too. So none takes all the steps, and the next candidate has some.
    """

    def __init__(self, owner: str) -> None:
        self._is_late = self._has_cut = False
        self._owner = owner
        self._ends_at = time.monotonic() + MAX_TIME.total_seconds()
        self._left = MAX_STEPS
        self._compared = Differences(0)

    @property
    def is_over(self) -> bool:
        """Whether something was left out."""
        return self._is_late or self._has_cut

    @contextmanager
    def part(self) -> Iterator[Differences]:
        """The steps of one candidate."""
        given = int(self._left * OF_A_CANDIDATE)
        self._compared = Differences(given)
        yield self._compared
        self._has_cut = self._has_cut or self._compared.left < 0
        self._left -= given - max(self._compared.left, 0)

    def read(self, run: Run) -> Report | None:
        """Raises OutOfSteps."""
        self._is_late = self._is_late or time.monotonic() > self._ends_at
        return None if self._is_late else storage.get(self._owner, run, admit=self._admit)

    def _admit(self, size: int) -> None:
        self._compared.take(size // _BYTES_IN_A_STEP)


def _others(
    found: Iterator[Candidate],
    base: Summary,
    run: Summary,
    read: Callable[[Run], Report | None],
    *,
    kept: str,
) -> Iterator[Summary]:
    """Further runs that have tasks which the baseline lacks."""
    missing = {(task.package, task.task) for id, task in run.tasks.items() if id not in base.tasks}
    if not missing:
        return
    having = (
        candidate.run
        for candidate in found
        if any((package, task) in missing for package, task, _, _ in candidate.run.tasks)
    )
    for other in islice(having, MAX_OBJECTS):
        report = read(other)
        if report is not None and report["kept"] == kept:
            yield summary_of(report)
