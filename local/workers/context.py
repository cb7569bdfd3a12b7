"""The context object of an invocation, with the attributes of Lambda's.

Source: https://docs.aws.amazon.com/lambda/latest/dg/python-context.html
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from local.template import function_arn


@dataclass(frozen=True, slots=True)
class Context:
    """`deadline_s` is on the monotonic clock of this machine."""

    function_name: str
    aws_request_id: str
    memory_limit_in_mb: str
    deadline_s: float
    function_version: str = "$LATEST"
    log_group_name: str = "/larder/local"
    log_stream_name: str = "functions.log"
    identity: None = None
    client_context: None = None

    @property
    def invoked_function_arn(self) -> str:
        return function_arn(self.function_name)

    def get_remaining_time_in_millis(self) -> int:
        return max(0, round((self.deadline_s - time.monotonic()) * 1000))
