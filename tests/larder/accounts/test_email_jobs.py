"""The invocation of the function that writes and sends mail."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from larder import aws, clock
from larder.accounts.email_jobs import EmailJob, EmailKind, RequestDescription, enqueue
from larder.accounts.service import create_user
from larder.errors import InvalidRequest, Throttled, TryAgain
from tests.faults import answering, error, unreachable
from tests.hooks import hooked
from tests.mailbox import Mailbox

JOB = EmailJob(
    kind=EmailKind.RESET_PASSWORD,
    email="ada@acme.example",
    callback_url="/reset",
    base_url="https://cache.example.com",
    request=RequestDescription(method="POST", path="/", ip_address=None, user_agent=None),
)


def with_agent(agent: str | None) -> EmailJob:
    return replace(JOB, request=replace(JOB.request, user_agent=agent))


@pytest.mark.parametrize("kind", EmailKind)
@pytest.mark.parametrize("agent", [None, "Mozilla/5.0"])
def test_the_function_gets_the_job_unchanged(
    mailbox: Mailbox, kind: EmailKind, agent: str | None
) -> None:
    job = replace(with_agent(agent), kind=kind)
    enqueue(job)
    assert mailbox.jobs == [job]


def test_known_and_unknown_addresses_cost_the_same_single_call(mailbox: Mailbox) -> None:
    create_user("ada@acme.example", "Ada", now=clock.now())
    calls: list[str] = []

    def count(model: Any, **_: Any) -> None:
        calls.append(model.name)

    with hooked("provide-client-params", count, aws.dynamodb(), aws.lambda_(), aws.sesv2()):
        for email in ("ada@acme.example", "nobody@acme.example"):
            enqueue(replace(JOB, email=email))
            assert calls == ["Invoke"]
            calls.clear()


def test_a_long_user_agent_is_cut(mailbox: Mailbox) -> None:
    enqueue(with_agent("x" * 10_000))
    assert mailbox.jobs[0].request.user_agent == "x" * 500


@pytest.mark.parametrize(
    "too_long",
    [lambda: replace(JOB, callback_url="/" + "x" * 17_000), lambda: replace(JOB, email="x" * 9**5)],
)
def test_a_job_too_large_for_lambda_or_the_outbox_is_refused(
    mailbox: Mailbox, too_long: Callable[[], EmailJob]
) -> None:
    with pytest.raises(InvalidRequest):
        enqueue(too_long())
    assert mailbox.jobs == []


def test_an_unavailable_lambda_is_reported(aws_in_memory: None) -> None:
    busy = error("TooManyRequestsException", 429)
    with answering("lambda", "Invoke", busy), pytest.raises(Throttled):
        enqueue(JOB)
    with unreachable("lambda", "Invoke"), pytest.raises(TryAgain):
        enqueue(JOB)
