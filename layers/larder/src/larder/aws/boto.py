"""boto3's clients: for the calls that larder.aws.wire does not have, and for all of them if `AwsClient` is `boto3`.

This is the only module that imports boto3 and botocore. Importing it takes longer than a small function needs to start,
so larder.aws imports it when it is needed.
"""

import random
from collections.abc import Mapping
from functools import cache
from threading import RLock
from typing import Any, Literal

from boto3.session import Session
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from botocore.exceptions import ClientError as BotoClientError
from botocore.loaders import Loader
from botocore.session import Session as CoreSession

from larder import settings
from larder.aws.replies import (
    CONNECT_TIMEOUT_S,
    READ_TIMEOUT_S,
    S3_READ_TIMEOUT_S,
    TRIES,
    ClientError,
    check_deadline,
    check_retry,
    failure,
    is_throttled_within,
)
from larder.errors import TryAgain

__all__ = ["BotoClientError", "BotoCoreError"]

# A healthy call takes milliseconds. One that uses every retry takes 15 s plus pauses, and a request can make several:
# larder.deadline keeps a request within its function's time limit.
_CONFIG = Config(
    connect_timeout=CONNECT_TIMEOUT_S,
    read_timeout=READ_TIMEOUT_S,
    retries={"mode": "standard", "total_max_attempts": TRIES},
    max_pool_connections=20,
    tcp_keepalive=True,
    # The code fixes the parameters of every call and mypy checks them, so botocore need not validate each call.
    parameter_validation=False,
)
_S3_CONFIG = _CONFIG.merge(
    Config(
        signature_version="s3v4",
        read_timeout=S3_READ_TIMEOUT_S,
        # Only the checksums that S3 requires: Larder checks the length of bodies, and clients their signature.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
)


# Clients are thread-safe, but creating them with a session is not.
_making = RLock()


class _OwnModels(Loader):
    """Loads only the services of larder.aws. botocore would search four hundred service models for them."""

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002 - botocore names it
        return [
            *(
                "cloudformation",
                "cloudfront",
                "cloudfront-keyvaluestore",
                "dynamodb",
                "lambda",
                "logs",
            ),
            *("s3", "secretsmanager", "sesv2"),
        ]


@cache
def _models() -> Loader:
    return _OwnModels()


@cache
def _session() -> CoreSession:
    session = CoreSession()
    session.register_component("data_loader", _models())
    return session


@cache
def _boto3() -> Session:
    return Session(botocore_session=_session(), region_name=settings.region())


def client(service: str) -> Any:
    """The client of a service. If AWS does not answer, its calls raise TryAgain."""
    with _making:
        return _client(service)


def plain_client(service: str) -> Any:
    """A client for terminals: if AWS does not answer, its calls raise BotoCoreError."""
    with _making:
        return _make(service)


@cache
def _client(service: str) -> Any:
    made = _make(service)
    made.meta.events.register("before-call", _in_time)
    made.meta.events.register_first("needs-retry", _again)
    made.meta.events.register("after-call-error", _no_reply)
    made.meta.events.register("after-call", _bad_reply)
    made.meta.events.register("after-call.s3.GetObject", _careful_body)
    return made


def _make(service: str) -> Any:
    # Named once: botocore would put its name together twice for every call.
    named = Config(user_agent=_session().user_agent())
    config = (_s3_config() if service == "s3" else _CONFIG).merge(named)
    made = _boto3().client(service, config=config)  # type: ignore[call-overload]
    made.meta.events.register_last("after-call", _refused)
    return made


def _s3_config() -> Config:
    style: Literal["path", "virtual"] = "path" if settings.s3_endpoint() else "virtual"
    return _S3_CONFIG.merge(Config(s3={"addressing_style": style}))


def profile_region() -> str | None:
    """The region of the AWS profile in use. For terminals: Lambda sets the region itself."""
    region: str | None = CoreSession().get_config_variable("region")
    return region


def reset() -> None:
    """Drop all clients, after credentials, region or endpoints have changed."""
    with _making:
        for cached in (_session, _boto3, _client):
            cached.cache_clear()


def presign(method: str, url: str, *, expires_s: int) -> str:
    """This uses botocore's signer without a client, because a client's presigning is slower, and by default uses SigV2
    or a global host (docs/architecture.md#presigned-urls).
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


def _in_time(**_: object) -> None:
    check_deadline()


def _again(response: Any, attempts: int, operation: Any, **_: object) -> float | None:
    """How long to wait before a retry that botocore would not make. None leaves the decision to botocore."""
    status, parsed = (None, {}) if response is None else (response[0].status_code, response[1])
    if status is not None and status < 400:
        return None
    check_retry(operation.name, status, parsed)
    if is_throttled_within(parsed) and attempts < TRIES:
        return random.uniform(0, 0.05 * 2**attempts)  # noqa: S311  # no secret depends on it
    return None


def _no_reply(exception: Exception, **_: object) -> None:
    if isinstance(exception, BotoCoreError):
        raise TryAgain from exception


def _bad_reply(http_response: Any, parsed: Mapping[str, Any], model: Any, **_: object) -> None:
    if http_response.status_code >= 300:
        raise failure(http_response.status_code, parsed, model.name)


class _Body:
    """The body of an object. `read` raises TryAgain if the connection is lost."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self) -> bytes:
        try:
            content: bytes = self._body.read()
        except BotoCoreError as error:
            raise TryAgain from error
        return content

    def close(self) -> None:
        self._body.close()


def _careful_body(parsed: dict[str, Any], **_: object) -> None:
    if "Body" in parsed:
        parsed["Body"] = _Body(parsed["Body"])


def _refused(http_response: Any, parsed: Mapping[str, Any], model: Any, **_: object) -> None:
    """Raise our own class, because the other client has no botocore to import."""
    if http_response.status_code >= 300:
        raise ClientError(parsed, model.name)
