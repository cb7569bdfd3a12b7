"""The structured log: one JSON object per line, with the request's id. Never log a token, a body or a signed URL."""

import logging
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from larder.web.powertools.logger import Logger

if TYPE_CHECKING:
    from larder.web.powertools.context import LambdaContext

_NAME = "larder"
_LONGEST_AGENT = 200


@cache
def logger() -> Logger:
    """The logger. Metrics and audit entries are lines of the level INFO, so no variable changes its level."""
    log = Logger(service=_NAME, use_rfc3339=True)
    logging.getLogger(_NAME).setLevel(logging.INFO)
    return log


def log_of_request(event: dict[str, Any]) -> Logger:
    """The logger with the fields of this HTTP request. Clears those of the previous request."""
    log, context = logger(), event["requestContext"]
    log.clear_state()
    agent = context["http"].get("userAgent", "")[:_LONGEST_AGENT]
    log.append_keys(
        request_id=context["requestId"],
        route=context.get("routeKey"),
        method=context["http"]["method"],
        # Here, because API Gateway does not escape quotes in its access log.
        # JSON leaves separators of lines and half characters as they are.
        user_agent=agent if agent.isprintable() else ascii(agent),
    )
    return log


def logged(
    handler: "Callable[[dict[str, Any], LambdaContext], None]",
) -> "Callable[[dict[str, Any], LambdaContext], None]":
    """Wrap a handler without a route: its log lines have the id of the invocation."""

    @wraps(handler)
    def run(event: dict[str, Any], context: "LambdaContext") -> None:
        logger().clear_state()
        logger().append_keys(request_id=context.aws_request_id)
        handler(event, context)

    return run
