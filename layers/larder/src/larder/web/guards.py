"""The checks before every handler of `/api/auth`, in this order (docs/clients/better-auth.md#order-of-checks):

1. the rate limit of the client's address and the path,
2. the body: its media type, and that it can be parsed,
3. the origin of the page that sends the request,
4. the callback URLs in body and query.
"""

from typing import TYPE_CHECKING, Any

from larder import clock
from larder.rate_limits.service import limit_of, take
from larder.web.bodies.better_auth import auth_body
from larder.web.client_address import counted_address
from larder.web.origins import check_callbacks, check_origin
from larder.web.powertools.resolver import ApiGatewayResolver, Request, Response

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler.middlewares import NextMiddleware

PREFIX = "/api/auth"

BODYLESS = frozenset({"GET", "HEAD", "OPTIONS"})


def guard_request(app: ApiGatewayResolver, next_middleware: "NextMiddleware") -> Response[Any]:
    """Run all checks. Raises the error of the first that fails."""
    request: Request = app.request
    path = request.route.removeprefix(PREFIX)
    signs_in = path.startswith(("/sign-in", "/sign-up"))
    check_rate(request, path)
    body = None if request.method in BODYLESS else auth_body(request, takes_forms=signs_in)
    check_origin(request, signs_in=signs_in, signs_out=path == "/sign-out")
    check_callbacks(request, body)
    return next_middleware(app)


def check_rate(request: Request, path: str) -> None:
    """Count the request against the limit of its path. Raises TooManyRequests."""
    # Counted by the path's pattern, so that links with different tokens count together.
    if limit := limit_of(path):
        take(f"http#{path}#{counted_address(request)}", limit, now=clock.now())
