"""A message, before and after it was put into the outbox."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message to one address, as text and as HTML. Raises ValueError when a header could be put into it."""

    to: str
    subject: str
    text: str
    html: str

    def __post_init__(self) -> None:
        if not (self.to.isprintable() and self.subject.isprintable()):
            raise ValueError("an address or a subject holds a control character")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message in the outbox. Ids sort by the time of sending."""

    id: str
    sent_at: datetime
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxPage:
    """Messages, newest first. `next_before` asks for the page after this one; None when there is none."""

    messages: tuple[StoredMessage, ...]
    next_before: str | None


class MailRefused(Exception):
    """SES does not take the message. Only SES's code is told: its own words name the address."""
