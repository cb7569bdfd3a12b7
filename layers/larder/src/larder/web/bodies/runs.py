"""The file of `turbo run --summarize`, of which only the fields here are read, and reports with inputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from larder.artifacts.models import HASH_PATTERN, MAX_DURATION_MS
from larder.clock import from_ms
from larder.web.bodies.model import BodyModel, validated
from larder.web.bodies.raw import parsed_bytes
from larder.web.bodies.run_inputs import (
    Ancestors,
    Inputs,
    SentHints,
    check_files,
    report_bytes,
)
from larder.web.parameters import Client
from larder.web.powertools.resolver import Depends, Request
from larder.web.principals.authorize import CausesReader, RunReporter
from larder.why.models import (
    MAX_NAME,
    MAX_TASKS,
    MAX_TITLE,
    TURBO,
    Outcome,
    Run,
    RunTask,
    kept_with_hashes,
    names_of,
    totals_of,
)

_MAX_TEXT = 255
_MAX_TIME_MS = 10**14
_MAX_CODE = 2**31
_MAX_BYTES = 10**12

_Text = Annotated[str, Field(min_length=1, max_length=_MAX_TEXT)]
_Moment = Annotated[int, Field(ge=0, le=_MAX_TIME_MS)]
_Code = Annotated[int, Field(ge=-_MAX_CODE, le=_MAX_CODE)]


class _Times(BodyModel):
    startTime: _Moment  # noqa: N815  # the names in turbo's file
    endTime: _Moment  # noqa: N815
    exitCode: _Code | None = None  # noqa: N815

    @property
    def ms(self) -> int:
        return min(MAX_DURATION_MS, max(0, self.endTime - self.startTime))


class _Cache(BodyModel):
    status: Literal["HIT", "MISS"]
    source: Literal["LOCAL", "REMOTE"] | None = None
    timeSaved: Annotated[int, Field(ge=0, le=MAX_DURATION_MS)] = 0  # noqa: N815


class _Task(BodyModel):
    task: _Text
    package: Annotated[str, Field(max_length=_MAX_TEXT)] | None = None
    hash: Annotated[str, Field(pattern=rf"^(?:{HASH_PATTERN})$", max_length=_MAX_TEXT)]
    cache: _Cache
    execution: _Times | None = None
    bytes: Annotated[int, Field(ge=0, le=_MAX_BYTES)] | None = None


class _Scm(BodyModel):
    """turbo's names of what it does not know are empty, such as the branch of a commit that is checked out alone.

    `subject` is that of the commit. turbo's file has neither it, nor what follows.
    """

    branch: Annotated[str, Field(max_length=_MAX_TEXT)] | None = None
    sha: Annotated[str, Field(max_length=_MAX_TEXT)] | None = None
    subject: Annotated[str, Field(max_length=_MAX_TEXT)] | None = None
    author: Annotated[str, Field(max_length=_MAX_TEXT)] | None = None
    pullRequest: Annotated[int, Field(ge=1, le=_MAX_CODE)] | None = None  # noqa: N815


class _Report(BodyModel):
    client: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")] = TURBO
    turboVersion: _Text | None = None  # noqa: N815
    usedCache: bool = True  # noqa: N815
    scm: _Scm | None = None
    tasks: Annotated[list[_Task], Field(max_length=MAX_TASKS)]
    ancestors: Ancestors = Field(default_factory=list)
    dirty: bool | None = None
    inputs: Inputs | None = None
    hints: SentHints | None = None


class _Summary(_Report):
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,64}$")]
    execution: _Times


class _Question(_Report):
    """A dry run has no times, and the id of a run that does not exist."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9]{0,64}$")] = ""
    execution: _Times | None = None
    inputs: Inputs


_SUMMARY = TypeAdapter(_Summary)
_QUESTION = TypeAdapter(_Question)


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run, and its report if that has inputs."""

    run: Run
    report: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Question:
    """A report to explain, and the CI that asks."""

    report: Mapping[str, Any]
    ci: str | None


def run_summary(_principal: RunReporter, request: Request) -> _Summary:
    """Raises InvalidRequest, which names the field of the file and the rule, and RunTooLarge.

    The principal comes first, because a large body takes a second of the processor.
    """
    return validated(_SUMMARY, parsed_bytes(report_bytes(request)))


def asked_report(_principal: CausesReader, client: Client, request: Request) -> Question:
    """A report with inputs. Raises InvalidRequest, RunTooLarge."""
    sent = validated(_QUESTION, parsed_bytes(report_bytes(request)))
    return Question(_report(sent, sent.inputs), client.ci)


def reported_run(
    summary: Annotated[_Summary, Depends(run_summary)],
    client: Client,
    principal: RunReporter,
) -> ReportedRun:
    """The file that `turbo run --summarize` writes. Other fields of it are ignored and not stored."""
    scm = summary.scm
    ran = [(_task(task, task.execution), task.hash) for task in summary.tasks if task.execution]
    tasks, best = [task for task, _ in ran], kept_with_hashes(ran)
    run = Run(
        id=summary.id,
        started_at=from_ms(summary.execution.startTime),
        duration=timedelta(milliseconds=summary.execution.ms),
        exit_code=summary.execution.exitCode,
        turbo_version=summary.turboVersion,
        client=summary.client,
        branch=(scm.branch or None) if scm else None,
        sha=(scm.sha or None) if scm else None,
        title=((scm.subject or "")[:MAX_TITLE] or None) if scm else None,
        author=((scm.author or "")[:MAX_NAME] or None) if scm else None,
        pull=scm.pullRequest if scm else None,
        used_cache=summary.usedCache,
        ci=client.ci,
        reporter=principal.actor,
        names=names_of(tasks),
        totals=totals_of(tasks),
        tasks=[task for task, _ in best],
        hashes=[hash for _, hash in best],
    )
    inputs = summary.inputs
    return ReportedRun(run, None if inputs is None else _report(summary, inputs))


def _report(sent: _Summary | _Question, inputs: Inputs) -> Mapping[str, Any]:
    check_files(inputs)
    # What has a default and was not sent takes no space in the object.
    return sent.model_dump(by_alias=True, exclude_unset=True)


def _task(task: _Task, times: _Times) -> RunTask:
    package, name, cache = (task.package or "")[:MAX_NAME], task.task[:MAX_NAME], task.cache
    if cache.status == "HIT":
        outcome = Outcome.REMOTE_HIT if cache.source == "REMOTE" else Outcome.LOCAL_HIT
        return RunTask(package, name, outcome, cache.timeSaved)
    outcome = Outcome.FAILED if times.exitCode else Outcome.BUILT
    return RunTask(package, name, outcome, times.ms)
