"""Mail in tests: the jobs for the function SendAccountEmail, caught before they are sent, and the outbox."""

import re
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ses.models import ses_backends

from larder import clock
from larder.accounts.email_jobs import EmailJob, parse_job
from larder.mail import service
from larder.mail.models import Message
from larder.settings import region, settings
from tests import invocations
from tests.requests import invoke


def handed_over() -> AbstractContextManager[list[dict[str, Any]]]:
    """Record mail jobs without running them."""
    return invocations.handed_over(settings().email_function)


@dataclass(frozen=True)
class Mailbox:
    """Jobs run at `deliver`."""

    payloads: list[dict[str, Any]]

    @property
    def jobs(self) -> list[EmailJob]:
        """The jobs that are not delivered yet, oldest first."""
        return [parse_job(payload) for payload in self.payloads]

    def deliver(self) -> list[Message]:
        """Run the pending jobs. Return every message of the outbox, newest first."""
        while self.payloads:
            invoke("accounts.send_account_email.handler", self.payloads.pop(0))
            # The outbox keeps no order within a millisecond.
            time.sleep(0.001)
        return self.messages()

    def messages(self) -> list[Message]:
        """Every message of the outbox, newest first."""
        return [stored.message for stored in service.read_outbox(limit=100, now=clock.now()).messages]

    def link(self) -> str:
        """Deliver, and return the path and query of the link in the newest message."""
        return link_in(self.deliver()[0])


def link_in(message: Message) -> str:
    """The path and query of the link in a message."""
    (url,) = re.findall(r"^https?://\S+$", message.text, re.MULTILINE)
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def sent_by_ses() -> list[Any]:
    """The messages that SES accepted, as moto stores them: `id`, `source`, `destinations`, `subject`."""
    return list(ses_backends[DEFAULT_ACCOUNT_ID][region()].sent_messages)
