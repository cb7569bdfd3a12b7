"""What a mail tells of the request that it came of, where that was a command of the operator's."""

from typing import TYPE_CHECKING

from larder.settings import settings

if TYPE_CHECKING:
    from larder.accounts.email_jobs import Visit


def operator_visit(command: str) -> "Visit":
    """`command` stands where a request has its path: `larder teams invite`."""
    from larder.accounts.email_jobs import RequestDescription, Visit

    request = RequestDescription(method="", path=command, ip_address=None, user_agent=None)
    return Visit(base_url=settings().base_url.rstrip("/"), request=request)
