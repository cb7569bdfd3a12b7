"""The mail that an operator's command causes."""

from typing import TYPE_CHECKING

from larder.settings import settings
from larder_cli.failures import explanation
from larder_cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Callable

    from larder.accounts.email_jobs import MailContext


def operator_mail_context(command: str) -> "MailContext":
    """`command`, such as `larder teams invite`, takes the place of a request's path."""
    from larder.accounts.email_jobs import MailContext, RequestDescription

    request = RequestDescription(method="", path=command, ip_address=None, user_agent=None)
    return MailContext(base_url=settings().base_url.rstrip("/"), request=request)


def notify(slug: str, send: "Callable[[], None]") -> None:
    """Email the owners of a team. What it is about has happened, so a failure is a warning."""
    try:
        send()
    except Exception as error:
        why = explanation(error)
        if why is None:
            raise
        echo(f"Warning: could not notify the owners of {slug}: {why}", err=True)
