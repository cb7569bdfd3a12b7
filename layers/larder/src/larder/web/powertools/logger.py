"""The logger."""

from aws_lambda_powertools.logging.logger import Logger

__all__ = ["Logger"]
