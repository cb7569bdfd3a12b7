"""The headers that every reply of a function has, whether it succeeds or fails."""

from collections.abc import Mapping
from typing import Any

_FOR_ALL = {
    # Replies depend on the caller's credentials, and some contain new ones.
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
_OVER_HTTPS = {
    **_FOR_ALL,
    # One year. Not for subdomains, which may belong to other services.
    "Strict-Transport-Security": "max-age=31536000",
}


def add_security_headers(reply: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Add the headers to the reply to an event. Headers that the reply has already stay unchanged."""
    # As in larder.web.cookies.is_https, which the cache API does not import.
    is_http = event["headers"].get("x-forwarded-proto") == "http"
    added = _FOR_ALL if is_http else _OVER_HTTPS
    reply["headers"] = {**added, **reply.get("headers", {})}
