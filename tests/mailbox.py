"""Mail in the tests: jobs caught where they leave for the function SendAccountEmail, and the outbox."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ses.models import ses_backends

from larder import aws, clock
from larder.accounts.email_jobs import EmailJob, parse_job
from larder.mail import service
from larder.mail.models import Message
from larder.settings import region, settings
from tests.rehearsal.acting import rehearsing
from tests.requests import invoke


@contextmanager
def handed_over() -> Iterator[list[dict[str, Any]]]:
    """Within, asynchronous invocations are taken and not run. Yields their payloads."""
    payloads: list[dict[str, Any]] = []

    def take(params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]] | None:
        assert params["headers"]["X-Amz-Invocation-Type"] == "Event"
        assert (
            params["url_path"] == f"/2015-03-31/functions/{settings().email_function}/invocations"
        )
        payloads.append(json.loads(params["body"]))
        if rehearsing():
            # The invocation that only asks whether it is allowed.
            params["headers"]["X-Amz-Invocation-Type"] = "DryRun"
            return None
        return SimpleNamespace(status_code=202), {"StatusCode": 202, "ResponseMetadata": {}}

    events: Any = aws.lambda_().meta.events
    events.register_first("before-call.lambda.Invoke", take)
    try:
        yield payloads
    finally:
        events.unregister("before-call.lambda.Invoke", take)


@dataclass(frozen=True)
class Mailbox:
    """Jobs wait until `deliver`."""

    payloads: list[dict[str, Any]]

    @property
    def jobs(self) -> list[EmailJob]:
        """What requests have handed over and nobody has delivered yet, oldest first."""
        return [parse_job(payload) for payload in self.payloads]

    def deliver(self) -> list[Message]:
        """Have the function do the jobs that wait. Returns every message of the outbox, newest first."""
        while self.payloads:
            invoke("accounts.send_account_email.handler", self.payloads.pop(0))
        return self.messages()

    def messages(self) -> list[Message]:
        """Every message of the outbox, newest first."""
        return [
            stored.message for stored in service.read_outbox(limit=100, now=clock.now()).messages
        ]

    def link(self) -> str:
        """Deliver; path and query of the link in the newest message."""
        return link_in(self.deliver()[0])


def link_in(message: Message) -> str:
    """Path and query of the link in a message, as a request takes them."""
    (url,) = re.findall(r"^https?://\S+$", message.text, re.MULTILINE)
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def sent_by_ses() -> list[Any]:
    """What SES took, as moto keeps it: `id`, `source`, `destinations`, `subject`."""
    if rehearsed := rehearsing():
        return rehearsed.stack.sent_by_ses()
    return list(ses_backends[DEFAULT_ACCOUNT_ID][region()].sent_messages)
