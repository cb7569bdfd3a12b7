"""Send email, and read the outbox."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from larder.hashing import time_ordered_id
from larder.mail import repository, ses
from larder.mail.models import Message, OutboxPage, StoredMessage
from larder.mail.templates import one_line
from larder.settings import settings

MOST_ON_A_PAGE = 100


def send(message: Message, *, now: datetime) -> str:
    """Send a message with SES, or store it in the outbox if the deployment has no sender.

    Returns the message's id there. Raises TryAgain, and MailRefused if SES refuses the message.
    """
    sender = settings().email_sender
    if sender:
        return ses.send(message, sender=sender, sender_name=one_line(settings().product_name))
    stored = StoredMessage(id=time_ordered_id(now), sent_at=now, message=message)
    days = settings().outbox_retention_days
    repository.add(stored, expires_at=now + timedelta(days=days))
    return stored.id


def read_outbox(*, limit: int = 50, before: str | None = None, now: datetime) -> OutboxPage:
    """A page of at most `limit` messages (100 at most), newest first. `before` is the last page's `next_before`.

    A page can have fewer messages, even none, without being the last. Only a `next_before` of None marks the last page.
    """
    messages, more = repository.newest(min(limit, MOST_ON_A_PAGE), before=before, now=now)
    return OutboxPage(messages=tuple(messages), next_before=more)


def message_ids_from(beginning: str) -> Iterator[str]:
    """The ids that begin with this."""
    return repository.ids_from(beginning)


def find_message(message_id: str, *, now: datetime) -> StoredMessage | None:
    return repository.get(message_id, now=now)
