"""Types of email: messages, and messages in the outbox."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message to one address, as text and as HTML.

    Raises ValueError for a control character in the address or subject, because it could inject a header.
    """

    to: str
    subject: str
    text: str
    html: str

    def __post_init__(self) -> None:
        if not (self.to.isprintable() and self.subject.isprintable()):
            raise ValueError("the address or the subject contains a control character")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message in the outbox. Ids sort by the time of sending."""

    id: str
    sent_at: datetime
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxPage:
    """Messages, newest first. Pass `next_before` as `before` for the next page; None on the last page."""

    messages: tuple[StoredMessage, ...]
    next_before: str | None


class MailRefused(Exception):
    """SES refused the message. Has only the code from SES, because its message contains the address."""
