"""The errors of AWS, and which of them a call is sent again for. Both clients follow these rules."""

from collections.abc import Mapping
from typing import Any

from larder import deadline
from larder.errors import TryAgain

TRIES = 3
CONNECT_TIMEOUT_S = 2
READ_TIMEOUT_S = 5
S3_READ_TIMEOUT_S = 10
"""The largest body that passes through a function has 5 MB. Less than the time that larder.deadline reserves."""

_FINAL = frozenset(
    {
        "AccessDeniedException",
        "ConditionalCheckFailedException",
        "ResourceNotFoundException",
        "ValidationException",
    }
)
"""Errors of DynamoDB that every retry would get again."""

_THROTTLES = frozenset(
    {
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        # The same transaction was sent again after a time-out, and the first is still in progress.
        "TransactionInProgressException",
    }
)
_LATE_BODIES = frozenset({"RequestTimeout", "RequestTimeoutException"})
"""The error code of S3, with status 400, if a body does not arrive in time."""
_TRANSIENT = frozenset({500, 502, 503, 504})
_THROTTLED_WITHIN = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})
"""The reasons for a transaction canceled by throttling. botocore does not retry it."""


class ClientError(Exception):
    """AWS refused a call. `response` is like that of botocore's exception of this name."""

    def __init__(self, response: Mapping[str, Any], operation: str) -> None:
        self.response = response
        self.operation = operation
        error = response.get("Error", {})
        super().__init__(f"{operation}: {error.get('Code', '')}: {error.get('Message', '')}")


class Throttled(Exception):
    """DynamoDB refused all of a BatchGetItem. The caller requests it again, as it does if DynamoDB refuses a part."""


def error_code(error: ClientError) -> str:
    return code_of(error.response)


def code_of(response: Mapping[str, Any]) -> str:
    code: str = response.get("Error", {}).get("Code", "")
    return code


def check_deadline() -> None:
    """Raise TryAgain if no further call, and no further try of one, may begin."""
    if deadline.exceeded():
        raise TryAgain


def check_retry(operation: str, status: int | None, response: Mapping[str, Any]) -> None:
    """Raise TryAgain if a call that failed must not be tried again. The status of a lost connection is None."""
    if operation == "BatchGetItem" and code_of(response) in _THROTTLES:
        raise Throttled
    if deadline.has_one_try() and code_of(response) not in _FINAL:
        raise TryAgain
    if status is None or status >= 500 or is_throttled_within(response):
        check_deadline()


def is_transient(status: int, response: Mapping[str, Any]) -> bool:
    """Whether the same request may work a moment later, as botocore's standard mode has it, and _again of boto.py."""
    code = code_of(response)
    return (
        status in _TRANSIENT
        or code in _THROTTLES
        or code in _LATE_BODIES
        or is_throttled_within(response)
    )


def is_throttled_within(response: Mapping[str, Any]) -> bool:
    """Whether throttling canceled a transaction, and no final reason did."""
    codes = {reason.get("Code") for reason in response.get("CancellationReasons", ())}
    return bool(codes & _THROTTLED_WITHIN) and "ConditionalCheckFailed" not in codes


def failure(status: int, response: Mapping[str, Any], operation: str) -> Exception:
    """The exception for an error reply: TryAgain if the call may work later."""
    code = code_of(response)
    if code in _THROTTLES or code in _LATE_BODIES or status >= 500 or is_throttled_within(response):
        return TryAgain()
    return ClientError(response, operation)
