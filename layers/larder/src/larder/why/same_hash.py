"""Why tasks were built although a run before had their hash.

The evidence is what turbo reported in its events, the artifact that is stored now, the runs before, and the audit. The
first reason that has its evidence is returned. Without evidence, it is unknown, with what was found.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from larder.artifacts import eviction, quota, search
from larder.artifacts.records import Eviction, Refused
from larder.artifacts.refusals import read_refusals
from larder.artifacts.repository.totals import read_totals
from larder.audit.models import Action, Entry
from larder.audit.service import read_entries
from larder.clock import to_ms
from larder.settings import settings
from larder.teams.models import CachingStatus
from larder.usage.service import read_lookups
from larder.why.models import Caller, Outcome, Report, Run
from larder.why.reasons import Evidence, Reason
from larder.why.records import MAX_LISTED, SameHashJson

MAX_ENTRIES = 100
"""The most entries of the audit that are looked through."""

MAX_FUNCTION_BYTES = 4_500_000
"""A larger artifact is only stored if turbo announces its upload (preflight)."""

_CLOCK_SKEW = timedelta(seconds=5)

_USE_NOTED_AFTER = timedelta(days=1)
"""A use of an artifact is recorded once in this time."""

_NOTED_AGAIN_AFTER = timedelta(hours=1)

_UPLOADS_TAKE = timedelta(minutes=5)
"""How long after a run an upload that goes straight to S3 may be refused."""

_LONGEST_RUN = timedelta(hours=6)
"""Of a longer run, refusals in its first hours are looked for."""

_LOCAL, _REMOTE = ("LOCAL", "MISS"), ("REMOTE", "MISS")
_DELETIONS = (Action.ARTIFACT_DELETED, Action.REMOVAL_DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A task that was built although earlier runs had its hash. `had` are those runs, the newest first.

    It was `refused` if all of them built it with credentials that only read, so that none could store it.
    """

    id: str
    hash: str
    size_bytes: int | None
    had: Sequence[Run]
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A reason. `certain` if nothing else can lead to its evidence, and `at` is when it happened."""

    reason: Reason
    certain: bool = False
    at: datetime | None = None
    evidence: tuple[Evidence, ...] = ()


def built_again(run: Run, report: Report, listed: Sequence[Run]) -> list[Built]:
    """The tasks of a run that were built with the hash of an earlier one. `listed` are runs, the newest first."""
    inputs = report["inputs"]
    built = [
        task
        for task, own in zip(report["tasks"], inputs["tasks"], strict=True)
        if task["cache"]["status"] == "MISS"
        and task.get("execution")
        and inputs["definitions"][own["definition"]]["cache"]
    ]
    # Each run once: a report can have one hash in all its tasks.
    having: dict[str, dict[str, Run]] = {task["hash"]: {} for task in built}
    offered: set[str] = set()
    for earlier in listed:
        if earlier.id == run.id or not earlier.used_cache:
            continue
        for task, hash in zip(earlier.tasks, earlier.hashes, strict=False):
            if hash in having and task[2] != Outcome.FAILED:
                having[hash][earlier.place] = earlier
                if task[2] != Outcome.BUILT or not earlier.only_reads:
                    offered.add(hash)
    return [
        Built(
            id=f"{task['package']}#{task['task']}" if task.get("package") else task["task"],
            hash=task["hash"],
            size_bytes=task.get("bytes"),
            had=tuple(having[task["hash"]].values()),
            refused=task["hash"] not in offered,
        )
        for task in built
        if having[task["hash"]]
    ]


def reasons(
    caller: Caller, run: Run, built: Sequence[Built], *, now: datetime
) -> list[SameHashJson]:
    """The reason for each task, for 100 tasks at most."""
    if not built:
        return []
    listed = built[:MAX_LISTED]
    scene = _Scene(caller, run, listed, now)
    return [_json(task, scene.reason(task)) for task in listed]


class _Outcomes(dict[str, Mapping[str, set[str]]]):
    """What became of each hash in a run, by the place of the run. Each run is looked through once."""

    def of(self, run: Run, hash: str) -> set[str]:
        if run.place not in self:
            found: dict[str, set[str]] = defaultdict(set)
            for task, of in zip(run.tasks, run.hashes, strict=False):
                if of is not None:
                    found[of].add(task[2])
            self[run.place] = found
        return self[run.place].get(hash, set())


def _builder(hash: str, runs: Iterable[Run], known: _Outcomes) -> Run | None:
    """The run that built it last. None if a run has restored it since. `runs` are the newest first."""
    for run in runs:
        outcomes = known.of(run, hash)
        if Outcome.REMOTE_HIT in outcomes:
            return None
        if Outcome.BUILT in outcomes:
            return run
    return None


def _uploading(run: Run) -> tuple[datetime, datetime]:
    """When uploads of the run can have been refused."""
    return run.started_at, min(run.ended_at, run.started_at + _LONGEST_RUN) + _UPLOADS_TAKE


def _json(task: Built, found: Found) -> SameHashJson:
    return {
        "task": task.id,
        "hash": task.hash,
        "reason": found.reason,
        "certain": found.certain,
        "at": None if found.at is None else to_ms(found.at),
        "evidence": list(found.evidence),
    }


class _Scene:
    """What is known about the time of a run. Only what a task needs is read."""

    def __init__(self, caller: Caller, run: Run, built: Sequence[Built], now: datetime) -> None:
        self._caller, self._run, self._built, self._now = caller, run, built, now
        hashes = [task.hash for task in built]
        known = search.known_artifacts(caller.owner, hashes, view=caller.view, now=now)
        self._stored, self._offered = known
        self._lookups = read_lookups(caller.owner, run.started_at - _CLOCK_SKEW, now)
        self._evictions: dict[bool, Eviction | None] = {}
        self._outcomes = _Outcomes()

    @cached_property
    def _entries(self) -> Sequence[Entry]:
        actions = (*_DELETIONS, Action.CACHING_SET)
        return read_entries(
            self._caller.owner, limit=MAX_ENTRIES, actions=actions, now=self._now
        ).entries

    @cached_property
    def _refusals(self) -> Sequence[Refused]:
        """What is noted of the runs that built the tasks."""
        builders = [
            _builder(task.hash, self._readable(task), self._outcomes) for task in self._built
        ]
        times = [(run.reporter.credential_id, *_uploading(run)) for run in builders if run]
        return read_refusals(self._caller.owner, dict.fromkeys(times))

    def _last_eviction(self, *, scoped: bool) -> Eviction | None:
        if scoped not in self._evictions:
            self._evictions[scoped] = eviction.last_eviction(self._caller.owner, scoped=scoped)
        return self._evictions[scoped]

    @cached_property
    def _free_bytes(self) -> int:
        """The size of the largest artifact that still fits into the quota."""
        totals = read_totals(self._caller.owner)
        return quota.free_bytes(totals, replaces=None, view=self._caller.view)

    def reason(self, task: Built) -> Found:
        of_hash = self._lookups.get(task.hash, {})
        looked_up = of_hash.get(self._caller.actor.credential_id, ())
        if _REMOTE in looked_up:
            return self._missing(task)
        if _LOCAL in looked_up:
            return self._unanswered(task)
        return self._unasked(task, by_others=bool(of_hash))

    def _readable(self, task: Built) -> list[Run]:
        return [run for run in task.had if run.scope in (None, self._caller.own_scope)]

    def _uploaded(self, hash: str) -> bool:
        """Whether the run has stored the artifact."""
        artifact = self._stored.get(hash)
        return artifact is not None and artifact.created_at >= self._run.started_at - _CLOCK_SKEW

    def _missing(self, task: Built) -> Found:
        """turbo asked, and Larder did not have it for this credential."""
        asked = (Evidence.REMOTE_MISS,)
        if any(earlier.ended_at > self._run.started_at for earlier in task.had):
            return Found(reason=Reason.AT_ONCE, certain=True, evidence=(*asked, Evidence.OVERLAP))
        if task.refused:
            evidence = (*asked, Evidence.READ_ONLY)
            at = task.had[0].ended_at
            return Found(reason=Reason.REFUSED, certain=True, at=at, evidence=evidence)
        readable = self._readable(task)
        if not readable:
            return Found(reason=Reason.OTHER_SCOPE, certain=True, evidence=asked)
        last = readable[0]
        trusted_from = self._caller.view.trusted_from
        if last.scope is None and last.ended_at < trusted_from <= self._run.started_at:
            evidence = (*asked, Evidence.TRUSTED_FROM)
            return Found(reason=Reason.HIDDEN, certain=True, at=trusted_from, evidence=evidence)
        return (
            self._deleted(task, last)
            or self._expired(last)
            or self._evicted(last)
            or self._too_large(task)
            or self._was_refused(task, readable)
            or self._refused(task)
            or Found(reason=Reason.UNKNOWN, evidence=asked)
        )

    def _deleted(self, task: Built, last: Run) -> Found | None:
        for entry in self._entries:
            if not last.started_at < entry.at < self._now or entry.action not in _DELETIONS:
                continue
            certain = entry.action is Action.ARTIFACT_DELETED
            if not certain or entry.subject == task.hash:
                evidence = (Evidence.REMOTE_MISS, Evidence.AUDIT)
                return Found(reason=Reason.DELETED, certain=certain, at=entry.at, evidence=evidence)
        return None

    def _expired(self, last: Run) -> Found | None:
        options = settings()
        days = options.retention_days
        if last.scope is not None:
            days = min(days, options.scoped_retention_days)
        at = last.ended_at + timedelta(days=days)
        if at > self._run.started_at:
            return None
        evidence = (Evidence.REMOTE_MISS, Evidence.RETENTION)
        return Found(reason=Reason.EXPIRED, certain=True, at=at, evidence=evidence)

    def _evicted(self, last: Run) -> Found | None:
        """Certain if artifacts were evicted that were used after the last run. That run uses its own before it ends."""
        found = self._last_eviction(scoped=last.scope is not None)
        if found is None or found.at < last.started_at:
            return None
        if found.before < last.started_at - _USE_NOTED_AFTER:
            return None
        certain = found.before >= last.ended_at
        evidence = (Evidence.REMOTE_MISS, Evidence.EVICTED_BEFORE)
        return Found(reason=Reason.EVICTED, certain=certain, at=found.at, evidence=evidence)

    def _too_large(self, task: Built) -> Found | None:
        if task.size_bytes is None or task.size_bytes <= MAX_FUNCTION_BYTES:
            return None
        if task.hash in self._stored:
            return None
        evidence = (Evidence.REMOTE_MISS, Evidence.BYTES, Evidence.NOT_STORED)
        return Found(reason=Reason.TOO_LARGE, certain=True, evidence=evidence)

    def _was_refused(self, task: Built, readable: Sequence[Run]) -> Found | None:
        """An upload was refused while the run built it. Not certain, because it can be that of another task."""
        last = _builder(task.hash, readable, self._outcomes)
        if last is None:
            return None
        first, end = _uploading(last)
        during = [
            noted
            for noted in self._refusals
            if noted.credential_id == last.reporter.credential_id
            # Only the first refusal of an hour is noted.
            and first - _NOTED_AGAIN_AFTER < noted.at <= end
        ]
        if not during:
            return None
        noted = max(during, key=lambda each: each.at)
        evidence = (Evidence.REMOTE_MISS, Evidence.REFUSAL, Evidence(noted.refusal.value))
        return Found(reason=Reason.REFUSED, at=noted.at, evidence=evidence)

    def _refused(self, task: Built) -> Found | None:
        """The run itself built it and did not store it. If its upload would be refused now, it was before, too.

        An upload that was offered may still arrive.
        """
        if self._caller.only_reads or task.hash in self._stored or task.hash in self._offered:
            return None
        if self._caller.view.requires_tag:
            why = Evidence.SIGNATURE_REQUIRED
        elif (task.size_bytes or 1) > self._free_bytes:
            why = Evidence.QUOTA_FULL
        else:
            return None
        evidence = (Evidence.REMOTE_MISS, Evidence.NOT_STORED, why)
        return Found(reason=Reason.REFUSED, at=self._run.ended_at, evidence=evidence)

    def _unanswered(self, task: Built) -> Found:
        """turbo found it in no local cache, and reports nothing of the remote one."""
        changed = next(
            (entry for entry in self._entries if entry.action is Action.CACHING_SET), None
        )
        if changed is not None and changed.subject != CachingStatus.ENABLED:
            evidence = (Evidence.LOCAL_MISS, Evidence.AUDIT)
            return Found(reason=Reason.CACHING_OFF, certain=True, at=changed.at, evidence=evidence)
        if self._uploaded(task.hash):
            return Found(reason=Reason.UNUSABLE, evidence=(Evidence.LOCAL_MISS, Evidence.UPLOADED))
        if task.hash in self._stored:
            return Found(reason=Reason.UNUSABLE, evidence=(Evidence.LOCAL_MISS, Evidence.STORED))
        return Found(reason=Reason.NOT_ASKED, evidence=(Evidence.LOCAL_MISS, Evidence.NOT_STORED))

    def _unasked(self, task: Built, *, by_others: bool) -> Found:
        """This credential reports no look-up. If it uploads nevertheless, the run was forced.

        With events or an upload of others, turbo may have used another credential than the report.
        """
        if not self._uploaded(task.hash):
            reason = Reason.UNKNOWN if by_others else Reason.NOT_ASKED
            return Found(reason=reason, evidence=(Evidence.NO_EVENT,))
        writer = self._stored[task.hash].writer
        evidence = (Evidence.NO_EVENT, Evidence.UPLOADED)
        if writer is None or writer.credential_id != self._caller.actor.credential_id:
            return Found(reason=Reason.UNKNOWN, evidence=evidence)
        return Found(reason=Reason.NOT_ASKED, certain=True, evidence=evidence)
