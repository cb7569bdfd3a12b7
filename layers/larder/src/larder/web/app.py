"""The resolver of every HTTP function. It turns errors into replies and logs one line for each request."""

from collections.abc import Callable, Mapping
from typing import Any

from larder import aws, warm
from larder.deadline import request_deadline
from larder.errors import (
    LarderError,
)
from larder.metrics import counted
from larder.web.dependencies import with_dependencies
from larder.web.errors import (
    InternalError,
    InvalidRequest,
    PathNotFound,
)
from larder.web.gateway import add_security_headers, refusal
from larder.web.log import log_of_request, logger
from larder.web.powertools.context import LambdaContext
from larder.web.powertools.resolver import APIGatewayHttpResolver, CORSConfig, Response
from larder.web.replies.errors import code_of
from larder.web.responses import (
    auth_error_response,
    empty,
    error_response,
    is_from_own_scope,
    oauth_error_response,
)

Reply = Response[str] | Response[None]
Handler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]

_CACHE = "/v8/artifacts"


class _Resolver(APIGatewayHttpResolver):
    """Powertools' resolver, with our own injection of dependencies."""

    def route(self, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        register = super().route(*args, **kwargs)

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            register(with_dependencies(function))
            return function

        return decorate


def vercel_api(*, no_route: type[LarderError] = PathNotFound) -> APIGatewayHttpResolver:
    """A resolver for one endpoint with errors in the format of Vercel's REST API, which build clients read.

    The gateway sends only paths of this function's route. `no_route` is the error if the parameter in the path has
    characters that the route does not allow.
    """
    return _vercel_api(no_route)


def cache_api(error_headers: Mapping[str, str] | None = None) -> APIGatewayHttpResolver:
    """The same for an endpoint of artifacts: the parameter is a hash. Every error reply has `error_headers`."""
    return _vercel_api(
        lambda: InvalidRequest("hash", "must be 1 to 128 letters, digits, hyphens and underscores"),
        error_headers,
    )


def oauth_api() -> APIGatewayHttpResolver:
    """A resolver for one token endpoint, with errors in the format of OAuth."""
    app = _resolver(oauth_error_response)
    app.not_found(lambda _: oauth_error_response(PathNotFound()))
    return app


def better_auth_api(*, guarded: bool = True) -> APIGatewayHttpResolver:
    """A resolver for one endpoint of `/api/auth`, with errors in the format of the Better Auth client.

    The checks of guards.py run before the handler, and pages of trusted origins can read the replies. Only endpoints
    that read no data work without these checks.
    """
    # Imported here, because the other endpoints start faster without them.
    from larder.web.guards import guard_request
    from larder.web.origins import TrustedOrigins

    app = _resolver(auth_error_response, cors=TrustedOrigins())
    if guarded:
        app.use([guard_request])
    app.not_found(lambda _: empty(404))
    return app


def _vercel_api(
    no_route: Callable[[], LarderError], headers: Mapping[str, str] | None = None
) -> APIGatewayHttpResolver:
    app = _resolver(lambda error: error_response(error, headers))
    app.not_found(lambda _: error_response(no_route(), headers))
    return app


def _resolver(
    error_reply: Callable[[LarderError], Reply], *, cors: CORSConfig | None = None
) -> APIGatewayHttpResolver:
    app = _Resolver(cors=cors)

    def reply(error: LarderError) -> Reply:
        logger().append_keys(error=code_of(error))
        return error_reply(error)

    def unforeseen(error: Exception) -> Reply:
        logger().error("unforeseen error", exc_info=error)
        return reply(InternalError())

    app.exception_handler(LarderError)(reply)
    app.exception_handler(Exception)(unforeseen)
    return app


HIT_OR_MISS = {200: "Hits", 302: "Redirects", 404: "Misses"}
"""The metric of a request for an artifact, by its status. A redirect is a hit that S3 delivers."""

_HIT_IN_OWN_SCOPE = "HitsOwnScope"
"""One more metric of a hit that a credential of a protected team found in its own scope."""


def lambda_handler(
    app: APIGatewayHttpResolver, *, outcomes: Mapping[int, str] | None = None
) -> Handler:
    """The function that Lambda calls. `outcomes` names the metrics of the route's replies, by status.

    A new instance connects to its tables here.
    """

    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        if warm.is_warm_call(event):
            return warm.answer(event)
        log = log_of_request(event)
        with request_deadline(context.get_remaining_time_in_millis()):
            reply: dict[str, Any] = refusal(event) or app.resolve(event, context)
        add_security_headers(reply, event)
        status = reply["statusCode"]
        outcome = outcomes.get(status) if outcomes else None
        also = [_HIT_IN_OWN_SCOPE] if is_from_own_scope(reply) else []
        figures = counted(outcome, ["route"], also=also) if outcome else {}
        if status == 401 and _has_lost_its_token(event):
            figures = counted("RefusedRequests", [])
        log.info("answered", extra={"status": status, **figures})
        return reply

    aws.connect()
    return handler


def _has_lost_its_token(event: dict[str, Any]) -> bool:
    """Whether this is a request to the cache without a token.

    turbo makes none unless it has a token, but leaves it out of a request whose announcement the gateway has throttled
    (docs/clients/turbo.md#preflight). So the metric is the one that the template counts throttled requests in.
    """
    return "authorization" not in event["headers"] and _CACHE in event["routeKey"]
