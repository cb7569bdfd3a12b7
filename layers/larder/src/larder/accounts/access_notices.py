"""Warn users by mail a week before their access ends, so that nobody is surprised by refused keys."""

from collections.abc import Callable
from datetime import datetime

from larder.accounts import repository
from larder.accounts.email_jobs import AccessEnds, MailContext, RequestDescription, send_later

_SCHEDULE = MailContext(
    base_url="",
    request=RequestDescription(method="", path="", ip_address=None, user_agent=None),
)
"""No request asks for the mail. Its link begins with the option `BaseUrl`, or with what the provider knows."""


def warn_of_ending_access(
    *, ended: Callable[[str, MailContext], object], now: datetime, has_time: Callable[[], bool]
) -> int:
    """Send the mails that are due. Returns how many. `ended` is called with each user whose access has ended.

    Reads one small item for each user whose access ends, and no user. A mail can come twice if this is interrupted.
    Raises TryAgain.
    """
    sent = 0
    for user_id, ends_at, warn_at in repository.users_with_ending_access():
        if not has_time():
            break
        if ends_at <= now:
            ended(user_id, _SCHEDULE)
            repository.delete_ending_access_note(user_id, ends_at)
        elif warn_at is not None and warn_at <= now:
            send_later(AccessEnds(user_id=user_id, mail_context=_SCHEDULE))
            repository.note_warning(user_id, ends_at)
            sent += 1
    return sent
