"""The base URL of this deployment, and the parts of a request that an integrator's functions get."""

from larder.extensions import RequestContext
from larder.settings import listed, settings
from larder.web.powertools.resolver import Request

_CREDENTIALS = frozenset({"authorization", "cookie"})


def base_url(request: Request) -> str:
    """Scheme, host and port, without a slash at the end: from the option, or else from the gateway.

    Never from the client's Host header: an attacker could use it to change the links in our emails.
    """
    if configured := settings().base_url:
        return configured.rstrip("/")
    scheme = "http" if request.headers.get("x-forwarded-proto") == "http" else "https"
    return f"{scheme}://{request.resolved_event['requestContext']['domainName']}"


def request_context(request: Request) -> RequestContext:
    """Method, path and headers, without the headers that hold a session or a key."""
    hidden = _CREDENTIALS.union(map(str.lower, listed(settings().api_key_headers)))
    return {
        "method": request.method,
        "path": request.resolved_event.path,
        "headers": {n: value for n, value in lower_headers(request).items() if n not in hidden},
    }


def whole_request_context(request: Request) -> RequestContext:
    """The same with all headers, for the function that finds the key in them."""
    return {**request_context(request), "headers": lower_headers(request)}


def lower_headers(request: Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}
