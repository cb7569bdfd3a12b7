"""The invocation of the function that writes and sends mail."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from larder import aws, clock
from larder.accounts.email_jobs import (
    AccessEnds,
    ChangeEmail,
    ConfirmEmailChange,
    EmailJob,
    EmailWasChanged,
    InviteToTeam,
    KeyNeverExpires,
    MailContext,
    MakerLeft,
    PasswordWasReset,
    RequestDescription,
    ResetPassword,
    SignUpAgain,
    TeamProtected,
    TrustGiven,
    VerifyEmail,
    job_record,
    parse_job,
    send_later,
)
from larder.accounts.service import create_user
from larder.errors import AddressTooLong, TryAgain
from tests.faults import answering, error, unreachable
from tests.hooks import hooked
from tests.mailbox import Mailbox

EMAIL = "ada@acme.example"
VISIT = MailContext(
    base_url="https://cache.example.com",
    request=RequestDescription(method="POST", path="/", ip_address=None, user_agent=None),
)
JOB = ResetPassword(email=EMAIL, callback_url="/reset", mail_context=VISIT)
ONE_OF_EACH: list[EmailJob] = [
    VerifyEmail(email=EMAIL, callback_url="/welcome", mail_context=VISIT),
    JOB,
    SignUpAgain(email=EMAIL, mail_context=VISIT),
    ConfirmEmailChange(
        email=EMAIL, callback_url="", user_id="u", new_email="eve@acme.example", credentials="1.2", mail_context=VISIT
    ),
    ChangeEmail(email=EMAIL, callback_url="", user_id="u", credentials="1.2", mail_context=VISIT),
    PasswordWasReset(email=EMAIL, sessions_ended=False, keys_deleted=True, mail_context=VISIT),
    EmailWasChanged(
        email=EMAIL, user_id="u", new_email="eve@acme.example", changed_at_ms=1, by_operator=True, mail_context=VISIT
    ),
    AccessEnds(user_id="u", mail_context=VISIT),
    KeyNeverExpires(user_id="u", key_id="k", key_start="abc", mail_context=VISIT),
    TeamProtected(user_id="u", team_id="team_1", ended=True, mail_context=VISIT),
    TrustGiven(user_id="u", team_id="team_1", key_id="k", made_by="m", mail_context=VISIT),
    MakerLeft(user_id="u", team_id="team_1", maker=EMAIL, rules=["r"], keys=[], mail_context=VISIT),
    InviteToTeam(email=EMAIL, team_id="team_1", invitation_id="i", mail_context=VISIT),
]


def with_agent(job: EmailJob, agent: str | None) -> EmailJob:
    request = replace(VISIT.request, user_agent=agent)
    return replace(job, mail_context=replace(VISIT, request=request))


@pytest.mark.parametrize("job", ONE_OF_EACH, ids=lambda job: job.kind)
@pytest.mark.parametrize("agent", [None, "Mozilla/5.0"])
def test_the_function_gets_the_job_unchanged(mailbox: Mailbox, job: EmailJob, agent: str | None) -> None:
    sent = with_agent(job, agent)
    send_later(sent)
    assert mailbox.jobs == [sent]


JOB_OF_0_1_0 = {
    "email": EMAIL,
    "callback_url": "",
    "base_url": "https://cache.example.com",
    "request": {"method": "POST", "path": "/", "ip_address": None, "user_agent": None},
    "user_id": None,
    "team_id": None,
    "invitation_id": None,
}
"""The fields of every job from version 0.1.0, which the function may still get during an upgrade."""


@pytest.mark.parametrize(
    ("record", "job"),
    [
        (
            {"kind": "verify_email", "callback_url": "/welcome"},
            VerifyEmail(email=EMAIL, callback_url="/welcome", mail_context=VISIT),
        ),
        ({"kind": "reset_password", "callback_url": "/reset"}, JOB),
        ({"kind": "sign_up_again"}, SignUpAgain(email=EMAIL, mail_context=VISIT)),
        (
            {"kind": "change_email", "user_id": "u"},
            ChangeEmail(email=EMAIL, callback_url="", user_id="u", credentials=None, mail_context=VISIT),
        ),
        (
            {"kind": "password_reset"},
            PasswordWasReset(email=EMAIL, sessions_ended=True, keys_deleted=False, mail_context=VISIT),
        ),
        (
            {"kind": "team_invitation", "team_id": "team_1", "invitation_id": "i"},
            InviteToTeam(email=EMAIL, team_id="team_1", invitation_id="i", mail_context=VISIT),
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_job_from_version_0_1_0_is_parsed(record: dict[str, Any], job: EmailJob) -> None:
    assert parse_job({**JOB_OF_0_1_0, **record}) == job


@pytest.mark.parametrize("job", ONE_OF_EACH, ids=lambda job: job.kind)
def test_a_job_holds_the_fields_that_version_0_1_0_requires(job: EmailJob) -> None:
    required = {"kind", "email", "callback_url", "base_url", "request"}
    assert required <= job_record(job).keys()


def test_known_and_unknown_addresses_cost_the_same_single_call(mailbox: Mailbox) -> None:
    create_user("ada@acme.example", "Ada", now=clock.now())
    calls: list[str] = []

    def count(model: Any, **_: Any) -> None:
        calls.append(model.name)

    with hooked("provide-client-params", count, aws.dynamodb(), aws.lambda_(), aws.sesv2()):
        for email in ("ada@acme.example", "nobody@acme.example"):
            send_later(replace(JOB, email=email))
            assert calls == ["Invoke"]
            calls.clear()


def test_a_long_user_agent_is_cut(mailbox: Mailbox) -> None:
    send_later(with_agent(JOB, "x" * 10_000))
    assert mailbox.jobs[0].mail_context.request.user_agent == "x" * 500


@pytest.mark.parametrize(
    "too_long", [lambda: replace(JOB, callback_url="/" + "x" * 17_000), lambda: replace(JOB, email="x" * 9**5)]
)
def test_a_job_too_large_for_lambda_or_the_outbox_is_refused(
    mailbox: Mailbox, too_long: Callable[[], EmailJob]
) -> None:
    with pytest.raises(AddressTooLong):
        send_later(too_long())
    assert mailbox.jobs == []


def test_an_unavailable_lambda_is_reported(aws_in_memory: None) -> None:
    busy = error("TooManyRequestsException", 429)
    with answering("lambda", "Invoke", busy), pytest.raises(TryAgain):
        send_later(JOB)
    with unreachable("lambda", "Invoke"), pytest.raises(TryAgain):
        send_later(JOB)
