"""The resolver of every HTTP function. It turns errors into replies and logs one line for each request."""

from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, CORSConfig, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.typing import LambdaContext

from larder.deadline import request_deadline
from larder.errors import InternalError, InvalidRequest, LarderError
from larder.metrics import counted
from larder.web.dependencies import with_dependencies
from larder.web.log import log_of_request, logger
from larder.web.responses import auth_error_response, empty, error_response

Reply = Response[str] | Response[None]
Handler = Callable[[dict[str, Any], LambdaContext], dict[str, Any]]


class _Resolver(APIGatewayHttpResolver):
    """Powertools' resolver, with our own injection of dependencies."""

    def route(self, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        register = super().route(*args, **kwargs)

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            register(with_dependencies(function))
            return function

        return decorate


def cache_api(
    error_headers: dict[str, str] | None = None, *, no_route: type[LarderError] | None = None
) -> APIGatewayHttpResolver:
    """A resolver for one endpoint of the cache API. Every error reply has `error_headers`.

    It raises `no_route` if the path's parameter has invalid characters. The default error is about a hash.
    """
    app = _resolver(lambda error: error_response(error, error_headers))

    def refuse(_: NotFoundError) -> Response[str]:
        # The gateway sends only paths of this function's route, so the hash must have invalid characters.
        unnamed = InvalidRequest("hash", "must be 1 to 128 letters and digits")
        return error_response(no_route() if no_route else unnamed, error_headers)

    app.not_found(refuse)
    return app


def auth_api(*, guarded: bool = True) -> APIGatewayHttpResolver:
    """A resolver for one endpoint of `/api/auth`, with the guards of request_guards in front.

    Pages of trusted origins can read its replies. Only endpoints that read no data work without guards.
    """
    # Imported here, because the cache API starts faster without them.
    from larder.web.cors import TrustedOrigins
    from larder.web.guards import guard_request

    app = _resolver(auth_error_response, cors=TrustedOrigins())
    if guarded:
        app.use([guard_request])
    app.not_found(lambda _: empty(404))
    return app


def _resolver(
    error_reply: Callable[[LarderError], Reply], *, cors: CORSConfig | None = None
) -> APIGatewayHttpResolver:
    app = _Resolver(cors=cors)

    def reply(error: LarderError) -> Reply:
        logger().append_keys(error=error.code)
        return error_reply(error)

    def unforeseen(error: Exception) -> Reply:
        logger().error("unforeseen error", exc_info=error)
        return reply(InternalError())

    app.exception_handler(LarderError)(reply)
    app.exception_handler(Exception)(unforeseen)
    return app


HIT_OR_MISS = {200: "Hits", 302: "Redirects", 404: "Misses"}
"""The metric of a request for an artifact, by its status. A redirect is a hit that S3 delivers."""


def lambda_handler(
    app: APIGatewayHttpResolver, *, outcomes: Mapping[int, str] | None = None
) -> Handler:
    """The function that Lambda calls. `outcomes` names the metrics of the route's replies, by status."""

    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        log = log_of_request(event)
        with request_deadline(context.get_remaining_time_in_millis()):
            reply: dict[str, Any] = app.resolve(event, context)
        status = reply["statusCode"]
        outcome = outcomes.get(status) if outcomes else None
        figures = counted(outcome, ["route"]) if outcome else {}
        log.info("answered", extra={"status": status, **figures})
        return reply

    return handler
