"""The structured log: one JSON object a line, with the request's id. Never a token, a body or a signed URL."""

from functools import cache

from aws_lambda_powertools import Logger


@cache
def logger() -> Logger:
    """Service name and level come from Powertools' own variables, which the template sets."""
    return Logger(use_rfc3339=True)
