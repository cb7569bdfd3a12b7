"""AWS clients, created on first use. This is the only module that imports botocore.

boto3 is not used: it would add resources, transfers and documents to the same clients, and make cold starts longer
(docs/decisions/0030).

This module does not interpret items and objects: repositories and storage modules do. If AWS does not answer after the
client's own retries, or refuses a call because of too many requests, every call raises TryAgain.
"""

import random
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import Loader
from botocore.session import Session

from larder import deadline, settings
from larder.errors import TryAgain

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sesv2 import SESV2Client

__all__ = ["BotoCoreError", "ClientError"]

Item = dict[str, Any]
"""An item or a key with plain Python values: str, int, bool, None, list, dict, set of str."""

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
_THROTTLED_WITHIN = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})
"""The reasons for a transaction canceled by throttling. botocore does not retry it."""
_TRIES = 3

# A healthy call takes milliseconds. One that uses every retry takes 15 s plus pauses, and a request can make several:
# larder.deadline keeps a request within its function's time limit.
_CONFIG = Config(
    connect_timeout=2,
    read_timeout=5,
    retries={"mode": "standard", "total_max_attempts": _TRIES},
    max_pool_connections=20,
    tcp_keepalive=True,
    # The code fixes the parameters of every call and mypy checks them, so botocore need not validate each call.
    parameter_validation=False,
)
_S3_CONFIG = _CONFIG.merge(
    Config(
        signature_version="s3v4",
        # The largest body that passes through a function has 5 MB. Less than the time that larder.deadline reserves.
        read_timeout=10,
        # Only the checksums that S3 requires: Larder checks the length of bodies, and clients their signature.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
)


# Clients are thread-safe, but creating them with a session is not.
_making = RLock()


def dynamodb() -> "DynamoDBClient":
    with _making:
        client: DynamoDBClient = _client("dynamodb")
    return client


def s3() -> "S3Client":
    with _making:
        client: S3Client = _client("s3")
    return client


def lambda_() -> "LambdaClient":
    with _making:
        client: LambdaClient = _client("lambda")
    return client


def sesv2() -> "SESV2Client":
    with _making:
        client: SESV2Client = _client("sesv2")
    return client


def cloudformation() -> "CloudFormationClient":
    with _making:
        client: CloudFormationClient = _make("cloudformation")
    return client


def cloudwatch_logs() -> "CloudWatchLogsClient":
    with _making:
        client: CloudWatchLogsClient = _make("logs")
    return client


def secrets_manager() -> "SecretsManagerClient":
    with _making:
        client: SecretsManagerClient = _client("secretsmanager")
    return client


class _OwnModels(Loader):
    """Loads only the services above. botocore would search four hundred service models for them."""

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002 - botocore names it
        return ["cloudformation", "dynamodb", "lambda", "logs", "s3", "secretsmanager", "sesv2"]


@cache
def _models() -> Loader:
    return _OwnModels()


@cache
def _session() -> Session:
    session = Session()
    session.register_component("data_loader", _models())
    return session


@cache
def _client(service: str) -> Any:
    client = _make(service)
    client.meta.events.register("before-call", _in_time)
    client.meta.events.register_first("needs-retry", _again)
    client.meta.events.register("after-call-error", _no_reply)
    client.meta.events.register("after-call", _bad_reply)
    return client


def _make(service: str) -> Any:
    # Named once: botocore would put its name together twice for every call.
    named = Config(user_agent=_session().user_agent())
    config = (_s3_config() if service == "s3" else _CONFIG).merge(named)
    return _session().create_client(service, region_name=settings.region(), config=config)


def _s3_config() -> Config:
    style: Literal["path", "virtual"] = "path" if settings.s3_endpoint() else "virtual"
    return _S3_CONFIG.merge(Config(s3={"addressing_style": style}))


def profile_region() -> str | None:
    """The region of the AWS profile in use. For terminals: Lambda sets the region itself."""
    region: str | None = Session().get_config_variable("region")
    return region


def reset() -> None:
    """Drop all clients, after credentials, region or endpoints have changed."""
    with _making:
        for cached in (_session, _client):
            cached.cache_clear()


def _in_time(**_: object) -> None:
    if deadline.exceeded():
        raise TryAgain


def _again(response: Any, attempts: int, **_: object) -> float | None:
    """How long to wait before a retry that botocore would not make. None leaves the decision to botocore."""
    failed = response is None or response[0].status_code >= 400
    if not failed:
        return None
    if deadline.has_one_try() and not _is_final(response):
        raise TryAgain
    throttled = response is not None and _is_throttled_within(response[1])
    if throttled or response is None or response[0].status_code >= 500:
        _in_time()
    if throttled and attempts < _TRIES:
        return random.uniform(0, 0.05 * 2**attempts)  # noqa: S311  # no secret depends on it
    return None


def _is_final(response: Any) -> bool:
    return response is not None and response[1].get("Error", {}).get("Code") in _FINAL


def _is_throttled_within(parsed: Mapping[str, Any]) -> bool:
    """Whether throttling canceled a transaction, and no final reason did."""
    codes = {reason.get("Code") for reason in parsed.get("CancellationReasons", ())}
    return bool(codes & _THROTTLED_WITHIN) and "ConditionalCheckFailed" not in codes


def _no_reply(exception: Exception, **_: object) -> None:
    if isinstance(exception, BotoCoreError):
        raise TryAgain from exception


def _bad_reply(http_response: Any, parsed: Mapping[str, Any], **_: object) -> None:
    code = parsed.get("Error", {}).get("Code")
    throttled = code in _THROTTLES or _is_throttled_within(parsed)
    if throttled or http_response.status_code >= 500 or code in _LATE_BODIES:
        raise TryAgain


def error_code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def serialize(item: Mapping[str, Any]) -> dict[str, Any]:
    """Convert plain values to DynamoDB's typed ones. Attributes that are None are left out."""
    return {name: _typed(value) for name, value in item.items() if value is not None}


def deserialize(item: Mapping[str, Any]) -> Item:
    """Convert DynamoDB's typed values to plain ones. All numbers in the tables are integers."""
    return {name: _plain(value) for name, value in item.items()}


# Source: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_AttributeValue.html
def _typed(value: Any) -> dict[str, Any]:
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case set() | frozenset():
            return {"SS": sorted(value)}
        case list() | tuple():
            return {"L": [_typed(inner) for inner in value]}
        case Mapping():
            return {"M": {name: _typed(inner) for name, inner in value.items()}}
    raise TypeError(f"no table holds a {type(value).__name__}")


def _plain(typed: Mapping[str, Any]) -> Any:
    ((kind, value),) = typed.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "SS":
            return set(value)
        case "N":
            return int(value)
        case "L":
            return [_plain(inner) for inner in value]
        case "M":
            return {name: _plain(inner) for name, inner in value.items()}
        case "NULL":
            return None
    raise TypeError(f"no table holds a value of the type {kind}")


def read_secret(arn: str) -> tuple[str, datetime]:
    """The text of a secret in Secrets Manager, and when it was stored, by AWS's clock."""
    reply = secrets_manager().get_secret_value(SecretId=arn)
    return reply["SecretString"], reply["CreatedDate"]


def write_secret(arn: str, text: str) -> None:
    """Replace the text of a secret."""
    secrets_manager().put_secret_value(SecretId=arn, SecretString=text)


def presign(method: str, url: str, *, expires_s: int) -> str:
    """Sign `url` for `method` by SigV4 in the query, with only `host` among the signed headers.

    This uses botocore's signer without a client, because a client's presigning is slower, and by default uses SigV2 or
    a global host (docs/limits.md#presigned-urls).
    """
    with _making:
        credentials = _session().get_credentials()
    if credentials is None:
        raise TryAgain
    request = AWSRequest(method=method, url=url)
    signer = S3SigV4QueryAuth(
        credentials.get_frozen_credentials(), "s3", settings.region(), expires=expires_s
    )
    signer.add_auth(request)
    return str(request.url)
