"""The work in the background: queues of what failed, hourly runs, and events of uploads."""

from collections.abc import Iterator
from datetime import timedelta

from larder_cli.output import human_duration, human_number
from larder_cli.status import metrics
from larder_cli.status.deployed import QUEUE, Deployed
from larder_cli.status.metrics import Metric, of_function
from larder_cli.status.rows import Level, Row

HOURLY = ("SweepArtifacts", "SweepDeletedTeams", "SweepDeletedUsers", "SweepExpiredKeys")
"""The functions that run every hour, by logical id."""
ON_UPLOAD = "CommitUpload"
"""The function that publishes direct uploads."""

_MESSAGES = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
_SWEEP_HOURS = 2
_UPLOAD_HOURS = 24
_LONGEST_WAIT_MS = 5 * 60_000
"""An upload is readable before its event arrives, so a few minutes harm nobody."""


def queues(deployed: Deployed) -> Iterator[Row]:
    """Messages about work that failed for good."""
    sqs, urls = deployed.clients["sqs"], deployed.ids(QUEUE)
    is_empty = True
    for name, url in sorted(urls.items()):
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_MESSAGES))
        messages = sum(int(attributes["Attributes"][name]) for name in _MESSAGES)
        if messages:
            is_empty = False
            yield Row(
                "queues",
                Level.WARNING,
                f"{name} holds {_count(messages, 'message')}",
                "docs/operations.md, DeadLetters",
            )
    if is_empty:
        yield Row("queues", Level.OK, f"{len(urls)} empty")


def sweeps(deployed: Deployed) -> Iterator[Row]:
    """Whether the hourly functions run."""
    begun = {name: of_function(deployed.id(name), "Invocations") for name in HOURLY}
    failed = {name: of_function(deployed.id(name), "Errors") for name in HOURLY}
    figures = metrics.read(deployed, [*begun.values(), *failed.values()], hours=_SWEEP_HOURS)
    created = deployed.stack.created
    is_new = created is not None and deployed.now - created < timedelta(hours=_SWEEP_HOURS)
    is_fine = True
    for name in HOURLY:
        runs = {"begun": figures[begun[name]], "failed": figures[failed[name]]}
        for row in _sweep(deployed, name, **runs, is_new=is_new):
            is_fine = False
            yield row
    if is_fine:
        ran = sum(figures[one] > 0 for one in begun.values())
        found = f"{ran} of {len(HOURLY)} ran within two hours, none failed"
        yield Row("sweeps", Level.OK, f"{found}; the stack is new" if is_new else found)


def _sweep(
    deployed: Deployed, name: str, *, begun: int, failed: int, is_new: bool
) -> Iterator[Row]:
    if rule := _stopped_rule(deployed, name):
        yield Row("sweeps", Level.PROBLEM, f"{name} is not started: its rule is off", rule)
    elif not begun and not is_new:
        yield Row(
            "sweeps",
            Level.PROBLEM,
            f"{name} has not run for two hours",
            "docs/operations.md, DeadLetters (HourlyFailures has the reason)",
        )
    elif failed:
        yield Row(
            "sweeps",
            Level.PROBLEM if failed >= begun else Level.WARNING,
            f"{name} failed {failed} of {_count(begun, 'time')} within two hours",
            "docs/operations.md, DeadLetters (HourlyFailures has the reason)",
        )


def uploads(deployed: Deployed) -> Iterator[Row]:
    """Whether the events of direct uploads arrive and are handled."""
    function = deployed.id(ON_UPLOAD)
    if started := _stopped_rule(deployed, ON_UPLOAD):
        found = f"{ON_UPLOAD} gets no events of uploads: its rule is off"
        yield Row("uploads", Level.PROBLEM, found, started)
        return
    of_rule = (("RuleName", deployed.id(_rule_of(ON_UPLOAD))),)
    matched, delivered, undelivered = (
        Metric("AWS/Events", name, of_rule)
        for name in ("MatchedEvents", "Invocations", "FailedInvocations")
    )
    dropped, failed = of_function(function, "AsyncEventsDropped"), of_function(function, "Errors")
    waited = Metric("AWS/Lambda", "AsyncEventAge", (("FunctionName", function),), "Maximum")
    read = metrics.read(
        deployed, (matched, delivered, undelivered, dropped, failed, waited), hours=_UPLOAD_HOURS
    )
    rows = list(
        _late_uploads(
            lost=read[undelivered] + read[dropped],
            failed=read[failed],
            waited_ms=read[waited],
        )
    )
    if read[matched] and not read[delivered]:
        found = f"{_count(read[matched], 'event')} in 24 hours, and none reached {ON_UPLOAD}"
        rows = [Row("uploads", Level.PROBLEM, found, "docs/operations.md, DeadLetters"), *rows]
    yield from rows
    if not rows and read[matched]:
        yield Row(
            "uploads",
            Level.OK,
            f"{_count(read[matched], 'event')} in 24 hours, all handled, the longest wait was "
            f"{human_duration(read[waited])}",
        )
    elif not rows:
        yield Row("uploads", Level.OK, "no events in 24 hours")


def _late_uploads(*, lost: int, failed: int, waited_ms: int) -> Iterator[Row]:
    """What delays uploads. They become visible when a client asks for them, or by the sweep after a day."""
    letters = "docs/operations.md, DeadLetters"
    if lost:
        found = f"{_count(lost, 'event')} in 24 hours did not reach {ON_UPLOAD}"
        yield Row("uploads", Level.WARNING, found, letters)
    if failed:
        found = f"{ON_UPLOAD} failed {_count(failed, 'time')} in 24 hours"
        yield Row("uploads", Level.WARNING, found, letters)
    if waited_ms > _LONGEST_WAIT_MS:
        found = f"an event waited {human_duration(waited_ms)} for {ON_UPLOAD}"
        advice = "check the rows concurrency and throttles: Lambda had no function free"
        yield Row("uploads", Level.WARNING, found, advice)


def _stopped_rule(deployed: Deployed, function: str) -> str | None:
    """How to start the rule of a function again. None if it is on."""
    rule = deployed.id(_rule_of(function))
    events = deployed.clients["events"]
    try:
        if events.describe_rule(Name=rule)["State"] != "DISABLED":
            return None
    except events.exceptions.ResourceNotFoundException:
        return f"docs/operations.md, Differences from the template (the rule {rule} is deleted)"
    return deployed.aws(f"events enable-rule --name {rule}")


def _rule_of(function: str) -> str:
    """SAM names a rule by the function and the event, which have the same name here."""
    return function * 2


def _count(number: int, what: str) -> str:
    return f"{human_number(number)} {what}{'' if number == 1 else 's'}"
