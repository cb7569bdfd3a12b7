"""Where clients reach this deployment."""

from aws_lambda_powertools.event_handler import Request

from larder.settings import settings


def base_url(request: Request) -> str:
    """Scheme, host and port, without a slash at the end: the deployment's option, else what the gateway tells.

    Never the client's Host header, which could make the links in our mails lead elsewhere.
    """
    if configured := settings().base_url:
        return configured.rstrip("/")
    scheme = "http" if request.headers.get("x-forwarded-proto") == "http" else "https"
    return f"{scheme}://{request.resolved_event['requestContext']['domainName']}"
