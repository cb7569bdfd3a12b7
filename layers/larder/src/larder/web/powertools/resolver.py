"""What handlers of HTTP requests use."""

from aws_lambda_powertools.event_handler.api_gateway import (
    APIGatewayHttpResolver,
    ApiGatewayResolver,
    CORSConfig,
    Response,
)
from aws_lambda_powertools.event_handler.depends import Depends
from aws_lambda_powertools.event_handler.request import Request
from aws_lambda_powertools.shared.cookies import Cookie, SameSite

__all__ = [
    "APIGatewayHttpResolver",
    "ApiGatewayResolver",
    "CORSConfig",
    "Cookie",
    "Depends",
    "Request",
    "Response",
    "SameSite",
]
