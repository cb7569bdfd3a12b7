"""Describe an operator's command as the origin of an email."""

from typing import TYPE_CHECKING

from larder.settings import settings

if TYPE_CHECKING:
    from larder.accounts.email_jobs import Visit


def operator_visit(command: str) -> "Visit":
    """`command`, such as `larder teams invite`, takes the place of a request's path."""
    from larder.accounts.email_jobs import RequestDescription, Visit

    request = RequestDescription(method="", path=command, ip_address=None, user_agent=None)
    return Visit(base_url=settings().base_url.rstrip("/"), request=request)
