"""AWS clients, created on first use, and the types of DynamoDB.

wire.py       the calls that builds wait for, by the standard library alone
boto.py       every other call, by boto3
connections.py, sigv4.py    HTTP and signatures of the first
replies.py    errors and retries of both

Functions use the first where they can, unless `AwsClient` is `boto3`. Everything outside of Lambda uses boto3, because
it knows profiles, proxies and other sources of credentials.

This package does not interpret items and objects: repositories and storage modules do. If AWS does not answer after the
client's own retries, or refuses a call because of too many requests, every call raises TryAgain.
"""

import os
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from larder import settings
from larder.aws.replies import S3_READ_TIMEOUT_S, ClientError, Throttled, error_code

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudfront import CloudFrontClient
    from mypy_boto3_cloudfront_keyvaluestore import CloudFrontKeyValueStoreClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sesv2 import SESV2Client

__all__ = ["ClientError", "Throttled", "error_code"]

Item = dict[str, Any]
"""An item or a key with plain Python values: str, bytes, int, bool, None, list, dict, set of str."""

ONLY_BOTO3_KNOWS = (
    "AWS_CA_BUNDLE",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "https_proxy",
    "http_proxy",
)


@cache
def _by_wire() -> bool:
    """Whether this process uses larder.aws.wire."""
    environ = os.environ
    in_lambda = "AWS_LAMBDA_FUNCTION_NAME" in environ and "AWS_ACCESS_KEY_ID" in environ
    if not in_lambda or any(environ.get(name) for name in ONLY_BOTO3_KNOWS):
        return False
    return settings.settings().aws_client == "wire"


def connect(service: str = "dynamodb") -> None:
    """Open a connection for a call that comes later. If that fails, the call connects, and reports the error.

    To DynamoDB, functions connect while an instance starts. Lambda starts an instance with a whole processor, and calls
    it with a share. To load TLS and its roots, and to shake hands, takes several times as long in a call
    (docs/decisions/cold-starts.md).
    """
    with suppress(OSError, settings.SettingsError):
        if _by_wire() and _url(service).startswith("https:"):
            _wire(service).connect()


def dynamodb() -> "DynamoDBClient":
    client: DynamoDBClient = _client("dynamodb")
    return client


def s3() -> "S3Client":
    client: S3Client = _client("s3")
    return client


def secrets_manager() -> "SecretsManagerClient":
    client: SecretsManagerClient = _client("secretsmanager")
    return client


def lambda_() -> "LambdaClient":
    client: LambdaClient = _client("lambda")
    return client


def sesv2() -> "SESV2Client":
    client: SESV2Client = _boto("sesv2")
    return client


def cloudformation() -> "CloudFormationClient":
    from larder.aws import boto

    client: CloudFormationClient = boto.plain_client("cloudformation")
    return client


def cloudwatch_logs() -> "CloudWatchLogsClient":
    from larder.aws import boto

    client: CloudWatchLogsClient = boto.plain_client("logs")
    return client


def cloudfront() -> "CloudFrontClient":
    from larder.aws import boto

    client: CloudFrontClient = boto.plain_client("cloudfront")
    return client


def cloudfront_key_value_store() -> "CloudFrontKeyValueStoreClient":
    """Needs awscrt, because this API accepts only SigV4A."""
    from larder.aws import boto

    client: CloudFrontKeyValueStoreClient = boto.plain_client("cloudfront-keyvaluestore")
    return client


def _client(service: str) -> Any:
    return _wire(service) if _by_wire() else _boto(service)


def _boto(service: str) -> Any:
    from larder.aws import boto

    return boto.client(service)


_wires: dict[str, Any] = {}
"""The clients of larder.aws.wire, by service."""


def _wire(service: str) -> Any:
    if service not in _wires:
        # Two threads may make one each. Then both use the first, and its connections.
        return _wires.setdefault(service, _made_wire(service))
    return _wires[service]


def _made_wire(service: str) -> Any:
    from larder.aws import wire

    def boto() -> Any:
        return _boto(service)

    url, region = _url(service), settings.region()
    match service:
        case "dynamodb":
            return wire.DynamoDb(url, region, boto)
        case "s3":
            return wire.S3(url, region, boto, read_timeout_s=S3_READ_TIMEOUT_S)
        case "lambda":
            return wire.Lambda(url, region, boto)
    return wire.SecretsManager(url, region, boto)


def _url(service: str) -> str:
    """The URL of a service: from botocore's own variables, else Amazon's."""
    name = {"secretsmanager": "SECRETS_MANAGER"}.get(service, service.upper())
    own = os.environ.get(f"AWS_ENDPOINT_URL_{name}") or os.environ.get("AWS_ENDPOINT_URL")
    if own:
        return own
    host = f"{service}.{settings.region()}.{settings.url_suffix()}"
    return f"https://{{bucket}}.{host}" if service == "s3" else f"https://{host}"


def reset() -> None:
    """Drop all clients, after credentials, region or endpoints have changed."""
    from larder.aws import boto

    boto.reset()
    _by_wire.cache_clear()
    while _wires:
        _wires.popitem()[1].close()


def read_secret(arn: str) -> tuple[str, datetime]:
    """The text of a secret in Secrets Manager, and when it was stored, by AWS's clock."""
    reply = secrets_manager().get_secret_value(SecretId=arn)
    return reply["SecretString"], reply["CreatedDate"]


def write_secret(arn: str, text: str) -> None:
    """Replace the text of a secret."""
    secrets_manager().put_secret_value(SecretId=arn, SecretString=text)


def presign(method: str, url: str, *, expires_s: int) -> str:
    """Sign `url` for `method` by SigV4 in the query, with only `host` among the signed headers."""
    if not _by_wire():
        from larder.aws import boto

        return boto.presign(method, url, expires_s=expires_s)
    from larder.aws.sigv4 import Signer

    return Signer("s3", settings.region()).presign(method, url, expires_s=expires_s)


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
        case bytes():
            return {"B": value}
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
        case "B":
            return value if isinstance(value, bytes) else b64decode(value)
        case "L":
            return [_plain(inner) for inner in value]
        case "M":
            return {name: _plain(inner) for name, inner in value.items()}
        case "NULL":
            return None
    raise TypeError(f"no table holds a value of the type {kind}")
