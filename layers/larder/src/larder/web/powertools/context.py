"""The type of an invocation's context."""

from aws_lambda_powertools.utilities.typing import LambdaContext

__all__ = ["LambdaContext"]
