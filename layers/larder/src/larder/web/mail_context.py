"""What accounts need from a request: the client's address and user agent, and the base URL for links in emails."""

from typing import Annotated

from larder.accounts.email_jobs import MailContext, RequestDescription
from larder.web.client_address import client_address
from larder.web.powertools.resolver import Depends, Request
from larder.web.request_context import base_url


def described(request: Request) -> RequestDescription:
    return RequestDescription(
        method=request.method,
        path=request.resolved_event.path,
        ip_address=client_address(request),
        user_agent=request.headers.get("user-agent"),
    )


def mail_context(request: Request) -> MailContext:
    return MailContext(base_url=base_url(request), request=described(request))


RequestMailContext = Annotated[MailContext, Depends(mail_context)]
