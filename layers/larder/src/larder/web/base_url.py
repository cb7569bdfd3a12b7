"""The base URL of this deployment."""

from larder.settings import settings
from larder.web.powertools.resolver import Request


def base_url(request: Request) -> str:
    """Scheme, host and port, without a slash at the end: from the option, or else from the gateway.

    Never from the client's Host header: an attacker could use it to change the links in our emails.
    """
    if configured := settings().base_url:
        return configured.rstrip("/")
    scheme = "http" if request.headers.get("x-forwarded-proto") == "http" else "https"
    return f"{scheme}://{request.resolved_event['requestContext']['domainName']}"
