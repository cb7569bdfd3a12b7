"""What every request and reply of a function with a route passes: the proxy's secret, the networks of clients, and the
security headers.

If there has to be a proxy in front of the API, requests that did not come through it are refused. Behind a proxy,
clients are counted by the address that it reports. A client that calls the API directly could report any address, so
the proxy adds a secret to each request (docs/deploy.md#your-own-proxy). Every function with a route begins with this
check, so it imports neither botocore nor the resolver.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from larder.settings import settings
from larder.web.log import logger

if TYPE_CHECKING:
    from larder.errors import LarderError

HEADER = "x-larder-proxy-secret"

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


def refusal(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """The reply to a request that `_error` refuses. None if the request may continue."""
    error = _error(event)
    if error is None:
        return None
    from larder.web.replies.errors import code_of, plain_reply

    logger().append_keys(error=code_of(error))
    return plain_reply(error, path=event["rawPath"])


def _error(event: Mapping[str, Any]) -> "LarderError | None":
    """Of a request without the proxy's secret, or from outside of the allowed networks."""
    # Imported here, because pages start faster without them.
    if not _came_through_proxy(event):
        from larder.web.errors import NotThroughProxy

        return NotThroughProxy()
    # After the secret: without it, a client could choose the address that the proxy reports.
    if settings().allowed_networks:
        from larder.web.client_address import address_outside

        if address := address_outside(event):
            from larder.web.errors import NetworkNotAllowed

            return NetworkNotAllowed(address)
    return None


def _came_through_proxy(event: Mapping[str, Any]) -> bool:
    expected = settings().proxy_secret_hash
    # Several secrets, separated by commas, let the operator change the secret without refusing a request.
    given = event["headers"].get(HEADER, "").split(",")
    return not expected or any(_matches(secret.strip(), expected) for secret in given)


def _matches(secret: str, expected: str) -> bool:
    digest = hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
    return hmac.compare_digest(base64.b64encode(digest).decode(), expected)


def add_security_headers(reply: dict[str, Any], event: Mapping[str, Any]) -> None:
    """Add the headers to the reply to an event. Headers that the reply has already stay unchanged."""
    # As in larder.web.cookies.is_https, which the cache API does not import.
    is_http = event["headers"].get("x-forwarded-proto") == "http"
    added = _FOR_ALL if is_http else _OVER_HTTPS
    reply["headers"] = {**added, **reply.get("headers", {})}
