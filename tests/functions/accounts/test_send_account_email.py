"""Asynchronous invocation by the endpoints that send account mail"""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from larder import aws, clock, extensions
from larder.accounts.email_jobs import (
    EmailJob,
    EmailWasChanged,
    MailContext,
    RequestDescription,
    ResetPassword,
    SignUpAgain,
    VerifyEmail,
    job_record,
    send_later,
)
from larder.accounts.emails import IntegratorFailed
from larder.accounts.link_tokens import callback_url_of, credentials_of
from larder.accounts.models import User
from larder.mail import service
from larder.mail.models import MailRefused
from larder.settings import settings
from tests.conftest import SetOption
from tests.faults import answering, error, unreachable
from tests.mailbox import Mailbox, link_in, sent_by_ses
from tests.requests import Cloud

REQUEST = RequestDescription(method="POST", path="/api/auth/some", ip_address="192.0.2.1", user_agent="Mozilla/5.0")
VISIT = MailContext(base_url="https://cache.example.com", request=REQUEST)
VERIFY = VerifyEmail(email="ada@acme.example", callback_url="", mail_context=VISIT)
RESET = ResetPassword(email="ada@acme.example", callback_url="", mail_context=VISIT)
SIGN_UP_AGAIN = SignUpAgain(email="ada@acme.example", mail_context=VISIT)
CHANGED = EmailWasChanged(
    email="left@acme.example",
    mail_context=VISIT,
    user_id="A" * 32,
    new_email="eve@new.example",
    changed_at_ms=1_795_308_420_000,
)
JOBS = {job.kind: job for job in (VERIFY, RESET, SIGN_UP_AGAIN)}


def mark_verified(user: User) -> None:
    for key in (user.id, f"email#{user.email}"):
        aws.dynamodb().update_item(
            TableName=settings().identity_table,
            Key=aws.serialize({"pk": key, "sk": "user"}),
            UpdateExpression="SET email_verified = :yes",
            ExpressionAttributeValues=aws.serialize({":yes": True}),
        )


class Integrator(ModuleType):
    """A module of the integrator that records its calls."""

    def __init__(self) -> None:
        super().__init__("integrator")
        self.calls: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def deliver(self, data: dict[str, Any], request: dict[str, Any]) -> None:
        self.calls.append((data, request))

    async def deliver_async(self, data: dict[str, Any], request: dict[str, Any]) -> None:
        self.deliver(data, request)

    async def fail_async(self, data: dict[str, Any], request: dict[str, Any]) -> None:
        self.fail(data, request)

    def fail(self, data: dict[str, Any], request: dict[str, Any]) -> None:
        raise ValueError(f"cannot reach {data['user']['email']} with {data['url']}")


@pytest.fixture
def integrator(monkeypatch: pytest.MonkeyPatch) -> Integrator:
    module = Integrator()
    monkeypatch.setitem(sys.modules, "integrator", module)
    extensions.clear_hooks()
    return module


# ----------------------------------------------------------------------------------- verify_email


def test_a_verification_link_leads_to_the_callback(cloud: Cloud, mailbox: Mailbox) -> None:
    send_later(replace(VERIFY, callback_url="/welcome?to=a&b=c"))
    (message,) = mailbox.deliver()
    assert (message.to, message.subject) == ("ada@acme.example", "Larder: Verify your address")
    link = urlsplit(link_in(message))
    assert link.path == "/api/auth/verify-email"
    query = parse_qs(link.query, strict_parsing=True)
    assert query.keys() == {"token", "callback"}
    (callback,) = query["callback"]
    assert callback_url_of(callback, now=clock.now()) == "/welcome?to=a&b=c"


def test_without_a_callback_it_leads_to_our_own_page(cloud: Cloud, mailbox: Mailbox) -> None:
    send_later(VERIFY)
    assert mailbox.link().endswith("&callbackURL=%2Fverified")


def test_a_verified_user_gets_no_mail(cloud: Cloud, mailbox: Mailbox) -> None:
    mark_verified(cloud.user)
    send_later(VERIFY)
    assert mailbox.deliver() == []


# --------------------------------------------------------------------------------- reset_password


def test_a_reset_link_holds_its_token_in_the_path(cloud: Cloud, mailbox: Mailbox) -> None:
    send_later(replace(RESET, callback_url="https://app.example.com/reset"))
    (message,) = mailbox.deliver()
    assert message.subject == "Larder: Reset your password"
    link = urlsplit(link_in(message))
    *before, token = link.path.split("/")
    assert before == ["", "api", "auth", "reset-password"]
    assert len(token) == 24
    ((name, (callback,)),) = parse_qs(link.query).items()
    assert name == "callback"
    assert callback_url_of(callback, now=clock.now()) == "https://app.example.com/reset"


def test_without_a_callback_it_holds_an_empty_one(cloud: Cloud, mailbox: Mailbox) -> None:
    send_later(RESET)
    assert mailbox.link().endswith("?callbackURL=")


def test_a_verified_user_can_reset_too(cloud: Cloud, mailbox: Mailbox) -> None:
    mark_verified(cloud.user)
    send_later(RESET)
    assert len(mailbox.deliver()) == 1


# ---------------------------------------------------------------------------------- sign_up_again


def test_the_owner_of_an_address_is_informed_about_a_second_sign_up(cloud: Cloud, mailbox: Mailbox) -> None:
    send_later(SIGN_UP_AGAIN)
    (message,) = mailbox.deliver()
    assert message.subject == "Larder: You already have an account"
    assert "\nhttps://cache.example.com\n" in message.text


# ---------------------------------------------------------------------------------- email_changed


def test_the_notice_of_a_new_address_looks_nobody_up(cloud: Cloud, mailbox: Mailbox) -> None:
    """Whether anybody has the address by now, or the user still exists, makes no difference."""
    send_later(CHANGED)
    with unreachable("dynamodb", "GetItem"):
        (message,) = mailbox.deliver()
    assert message.to == "left@acme.example"
    assert "e***@new.example on 2026-11-22 00:47 UTC. It was confirmed with a link" in message.text


def test_the_notice_of_a_new_address_says_when_the_operator_changed_it(mailbox: Mailbox) -> None:
    send_later(replace(CHANGED, by_operator=True))
    (message,) = mailbox.deliver()
    assert "The operator of Larder changed it." in message.text
    assert "with a link" not in message.text
    assert "someone else is using your account" not in message.text


# ------------------------------------------------------------------------------------- every kind


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_no_mail_for_an_address_without_a_user(cloud: Cloud, mailbox: Mailbox, job: EmailJob) -> None:
    send_later(replace(job, email="nobody@acme.example"))
    assert mailbox.deliver() == []


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_mail_goes_to_the_stored_spelling_of_the_address(cloud: Cloud, mailbox: Mailbox, job: EmailJob) -> None:
    send_later(replace(job, email="ADA@ACME.example"))
    (message,) = mailbox.deliver()
    assert message.to == "ada@acme.example"


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_repeated_job_sends_the_mail_twice_without_an_error(cloud: Cloud, mailbox: Mailbox, job: EmailJob) -> None:
    send_later(job)
    mailbox.payloads.append(mailbox.payloads[0])
    assert len(mailbox.deliver()) == 2


def test_a_lone_surrogate_in_a_callback_does_not_fail_the_mail(cloud: Cloud, mailbox: Mailbox) -> None:
    send_later(replace(RESET, callback_url="/\ud800"))
    assert "?callback=" in mailbox.link()


@pytest.mark.parametrize("kind", ["verify_email", "reset_password", "sign_up_again", "change_email"])
def test_no_mail_contains_words_of_the_request(kind: str, cloud: Cloud, mailbox: Mailbox) -> None:
    """Version 0.1.0 hands over a callback_url for every kind."""
    words = "Your-account-is-blocked.Call-+1-555-0100-now"
    job = {**job_record(VERIFY), "kind": kind, "callback_url": f"/{words}?{words}#{words}"}
    if kind == "change_email":
        job |= {"email": "new@acme.example", "user_id": cloud.user.id}
        job["credentials"] = credentials_of(cloud.user)
    mailbox.payloads.append(job)
    (message,) = mailbox.deliver()
    for word in ("account-is-blocked", "555", "Call-"):
        assert word not in message.subject + unquote(message.text) + unquote(message.html)


def test_an_unknown_job_goes_to_the_dead_letter_queue(mailbox: Mailbox) -> None:
    mailbox.payloads.append({"kind": "advertisement"})
    with pytest.raises(KeyError, match="advertisement"):
        mailbox.deliver()


def test_the_outbox_keeps_mail_for_the_configured_time(cloud: Cloud, mailbox: Mailbox, option: SetOption) -> None:
    option("outbox_retention_days", 2)
    send_later(RESET)
    mailbox.deliver()
    now = clock.now()
    assert service.read_outbox(now=now + timedelta(hours=47)).messages
    assert not service.read_outbox(now=now + timedelta(hours=49)).messages


# ------------------------------------------------------------------- functions of the integrator


@pytest.mark.parametrize("function", ["deliver", "deliver_async"])
@pytest.mark.parametrize(
    ("name", "job", "path"),
    [
        ("send_verification_email", VERIFY, "/api/auth/verify-email"),
        ("send_reset_password", RESET, "/api/auth/reset-password/"),
    ],
)
def test_the_integrators_function_replaces_larders_mail(
    cloud: Cloud,
    mailbox: Mailbox,
    option: SetOption,
    integrator: Integrator,
    name: str,
    job: EmailJob,
    path: str,
    function: str,
) -> None:
    setattr(integrator, name, getattr(integrator, function))
    option("extensions", "integrator")
    send_later(job)
    assert mailbox.deliver() == []
    ((data, request),) = integrator.calls
    assert data.keys() == {"user", "url", "token"}
    assert data["user"] == {
        "id": cloud.user.id,
        "name": "Ada",
        "email": "ada@acme.example",
        "emailVerified": False,
        "image": None,
        "createdAt": clock.to_iso(cloud.user.created_at),
        "updatedAt": clock.to_iso(cloud.user.created_at),
    }
    assert data["url"].startswith(f"https://cache.example.com{path}")
    assert data["token"] in data["url"]
    assert request == {"method": "POST", "path": "/api/auth/some", "ipAddress": "192.0.2.1", "userAgent": "Mozilla/5.0"}


def test_the_integrators_function_is_not_called_for_an_unknown_address(
    cloud: Cloud, mailbox: Mailbox, option: SetOption, integrator: Integrator
) -> None:
    option("extensions", "integrator")
    send_later(replace(RESET, email="nobody@acme.example"))
    mailbox.deliver()
    assert integrator.calls == []


@pytest.mark.parametrize("function", ["fail", "fail_async"])
def test_its_failure_is_retried_and_logged_without_its_arguments(
    cloud: Cloud, mailbox: Mailbox, option: SetOption, integrator: Integrator, function: str
) -> None:
    setattr(integrator, "send_reset_password", getattr(integrator, function))  # noqa: B010 - a module has any attribute
    option("extensions", "integrator")
    send_later(RESET)
    with pytest.raises(IntegratorFailed) as failed:
        mailbox.deliver()
    logged = str(failed.value)
    assert logged.startswith("integrator.send_reset_password: ValueError at ")
    assert "ada@acme" not in logged
    assert "http" not in logged
    assert failed.value.__suppress_context__


# ---------------------------------------------------------------------------------------- the log


def test_the_log_has_ids_but_no_links_or_tokens(
    cloud: Cloud, mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    for job in JOBS.values():
        send_later(job)
    messages = mailbox.deliver()
    lines = [str(vars(record)) for record in caplog.records if record.name == "larder"]
    assert len(lines) == len(JOBS)
    assert all(cloud.user.id in line for line in lines)
    for message in messages:
        link = urlsplit(link_in(message))
        secrets = [*link.path.split("/")[4:], *parse_qs(link.query).get("token", [])]
        assert not [line for line in lines for secret in secrets if secret in line]
    assert not [line for line in lines if "ada@acme" in line or "http" in line]


# --------------------------------------------------------------------------------------------- SES


@pytest.fixture
def ses(option: SetOption, aws_in_memory: None) -> None:
    option("email_sender", "larder@acme.example")
    aws.sesv2().create_email_identity(EmailIdentity="acme.example")


def test_with_a_sender_mail_goes_through_ses_and_not_the_outbox(ses: None, cloud: Cloud, mailbox: Mailbox) -> None:
    send_later(VERIFY)
    assert mailbox.deliver() == []
    assert [sent.destinations["ToAddresses"] for sent in sent_by_ses()] == [["ada@acme.example"]]


def test_a_refusal_by_ses_is_retried_and_logged_only_by_its_code(ses: None, cloud: Cloud, mailbox: Mailbox) -> None:
    send_later(VERIFY)
    refusal = error("MessageRejected")
    with answering("sesv2", "SendEmail", refusal), pytest.raises(MailRefused) as refused:
        mailbox.deliver()
    assert str(refused.value) == "MessageRejected"
    assert refused.value.__suppress_context__


# ------------------------------------------------------------------------------- limits of mail


@pytest.fixture
def limited(option: SetOption, monkeypatch: pytest.MonkeyPatch) -> None:
    """With limits, in the middle of an hour and of a day, so that no window ends during the test."""
    option("http_rate_limit_enabled", "true")
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 11, 22, 12, 30, tzinfo=UTC))


def job_of(kind: str, cloud: Cloud) -> EmailJob:
    """A job that sends an email to the address of `cloud.user`."""
    return {**JOBS, "email_changed": replace(CHANGED, email=cloud.user.email)}[kind]


@pytest.mark.parametrize("kind", [*JOBS, "email_changed"])
def test_an_address_gets_five_emails_an_hour(
    cloud: Cloud, mailbox: Mailbox, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(40):
        send_later(job_of(kind, cloud))
    assert len(mailbox.deliver()) == 5
    outcomes = [getattr(record, "outcome", None) for record in caplog.records]
    assert outcomes.count("too many emails to this address") == 35


@pytest.mark.usefixtures("limited")
def test_a_dropped_email_adds_to_a_metric(cloud: Cloud, mailbox: Mailbox, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(7):
        send_later(RESET)
    mailbox.deliver()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    dropped = [line["kind"] for line in lines if "MailDropped" in line]
    assert dropped == ["reset_password"] * 2


@pytest.mark.usefixtures("limited")
def test_emails_that_strangers_can_cause_are_counted_together(cloud: Cloud, mailbox: Mailbox) -> None:
    for _ in range(3):
        send_later(VERIFY)
        send_later(replace(SIGN_UP_AGAIN, email="ADA@acme.example"))
    assert len(mailbox.deliver()) == 5


@pytest.mark.usefixtures("limited")
def test_they_do_not_use_up_reset_links_and_warnings(cloud: Cloud, mailbox: Mailbox) -> None:
    for _ in range(9):
        send_later(VERIFY)
    for job in (RESET, replace(CHANGED, email=cloud.user.email)):
        send_later(job)
    subjects = [message.subject for message in mailbox.deliver()]
    assert subjects.count("Larder: Verify your address") == 5
    assert {"Larder: Reset your password", "Larder: Your address was changed"} < set(subjects)


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(("job", "most"), [(SIGN_UP_AGAIN, 20), (RESET, 12 * 5)])
def test_the_limit_by_day_is_not_for_reset_links(
    cloud: Cloud, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch, job: EmailJob, most: int
) -> None:
    """A stranger who asks for many links must not keep the owner from getting one."""
    for hour in range(12):
        at = datetime(2026, 11, 22, hour, 30, tzinfo=UTC)
        monkeypatch.setattr(clock, "now", lambda at=at: at)
        for _ in range(6):
            send_later(job)
        mailbox.deliver()
    assert len(mailbox.deliver()) == most


@pytest.mark.usefixtures("limited")
def test_the_counters_of_mail_hold_no_address(cloud: Cloud, mailbox: Mailbox) -> None:
    send_later(RESET)
    mailbox.deliver()
    items = aws.dynamodb().scan(TableName=settings().rate_limits_table)["Items"]
    assert items
    assert "ada" not in json.dumps(items)
