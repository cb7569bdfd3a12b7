"""Describe an operator's command as the origin of an email."""

from typing import TYPE_CHECKING

from larder.settings import settings

if TYPE_CHECKING:
    from larder.accounts.email_jobs import MailContext


def operator_mail_context(command: str) -> "MailContext":
    """`command`, such as `larder teams invite`, takes the place of a request's path."""
    from larder.accounts.email_jobs import MailContext, RequestDescription

    request = RequestDescription(method="", path=command, ip_address=None, user_agent=None)
    return MailContext(base_url=settings().base_url.rstrip("/"), request=request)
