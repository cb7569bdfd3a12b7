"""The calls that builds wait for, by the standard library alone.

Importing botocore and creating its clients takes most of a cold start, and its layers most of a warm request
(docs/decisions/aws-client.md). This module sends the same requests, retries them by the rules of botocore's standard
mode, and returns and raises the same. tests/larder/aws/test_alike.py holds the two clients to that. A client passes
calls that it does not have to boto3's.
"""

import json
import os
import random
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus
from threading import Lock
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from larder.aws.connections import BrokenReply, Endpoint, Reply, StaleConnection
from larder.aws.replies import (
    READ_TIMEOUT_S,
    TRIES,
    check_deadline,
    check_retry,
    failure,
    is_throttled_within,
    is_transient,
)
from larder.aws.sigv4 import Signer, encode_query
from larder.errors import TryAgain

Boto = Callable[[], Any]

_NONE: Mapping[str, str] = MappingProxyType({})
_SAFE_IN_TRACE = "-=;:+&[]{}\"',"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class _Quota:
    """How many retries all calls of a client may make, as in botocore.retries.quota.

    When a service is down, clients stop to retry, so that it can recover.
    """

    _MOST = 500
    _FOR_TIMEOUT, _FOR_RETRY, _FOR_SUCCESS = 10, 5, 1

    def __init__(self) -> None:
        self._left = self._MOST
        self._lock = Lock()

    def take(self, cause: OSError | None) -> int:
        """The amount taken for a retry; 0 if none is left for it."""
        amount = self._FOR_TIMEOUT if isinstance(cause, TimeoutError) else self._FOR_RETRY
        with self._lock:
            if amount > self._left:
                return 0
            self._left -= amount
            return amount

    def give_back(self, taken: int) -> None:
        if self._left < self._MOST:
            with self._lock:
                self._left = min(self._MOST, self._left + (taken or self._FOR_SUCCESS))


class _Request:
    """A request, the same for each of its attempts. Their logs at AWS have its `id` in common."""

    __slots__ = (
        *("body", "endpoint", "headers", "id", "method"),
        *("path", "payload_hash", "query", "target"),
    )

    def __init__(
        self,
        endpoint: Endpoint,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        payload_hash: str,
        query: str = "",
    ) -> None:
        self.endpoint = endpoint
        self.method = method
        self.path = path
        self.query = query
        self.target = f"{path}?{query}" if query else path
        self.headers = headers
        self.body = body
        self.payload_hash = payload_hash
        self.id = os.urandom(16).hex()


class _Failure:
    """An attempt that failed: the error reply, or why there is none. Then its status is None."""

    __slots__ = ("cause", "error", "status")

    def __init__(self, status: int | None, error: Mapping[str, Any], cause: OSError | None) -> None:
        self.status = status
        self.error = error
        self.cause = cause

    def is_transient(self) -> bool:
        return self.status is None or is_transient(self.status, self.error)

    def exception(self, operation: str) -> Exception:
        if self.status is not None:
            return failure(self.status, self.error, operation)
        exception = TryAgain()
        exception.__cause__ = self.cause
        return exception


def _base64(value: bytes) -> str:
    """Bytes in JSON. Those of a reply stay base64."""
    return b64encode(value).decode("ascii")


def _pause(most_s: float) -> None:
    time.sleep(random.random() * most_s)  # noqa: S311  # no secret depends on it


class _Client:
    """A client of one service. `boto` makes the client that has all other calls.

    Where S3 has a host for each bucket, `url` has `{bucket}`.
    """

    _SERVICE: str

    def __init__(
        self, url: str, region: str, boto: Boto, *, read_timeout_s: float = READ_TIMEOUT_S
    ) -> None:
        self._url = url
        self._read_timeout_s = read_timeout_s
        self._endpoints: dict[str, Endpoint] = {}
        self._signer = Signer(self._SERVICE, region)
        self._boto = boto
        self._quota = _Quota()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._boto(), name)

    def connect(self) -> None:
        """Open a connection for the first call. Raises OSError."""
        self._endpoint().connect()

    def close(self) -> None:
        """Close the connections that no call uses."""
        for endpoint in self._endpoints.values():
            endpoint.close()

    def _endpoint(self, bucket: str = "") -> Endpoint:
        endpoint = self._endpoints.get(bucket)
        if endpoint is None:
            url = self._url.replace("{bucket}", bucket)
            endpoint = Endpoint(url, read_timeout_s=self._read_timeout_s)
            # Of two threads that make one each, both use the first, and its connections.
            endpoint = self._endpoints.setdefault(bucket, endpoint)
        return endpoint

    def _call(
        self, operation: str, request: _Request, *, streams: bool = False
    ) -> tuple[Reply, bytes]:
        """Send a request up to three times. Returns the reply and its body, which is left unread if it `streams`."""
        check_deadline()
        attempt = 1
        taken = 0
        while True:
            result = self._try(request, attempt, streams=streams)
            if not isinstance(result, _Failure):
                self._quota.give_back(taken)
                return result
            check_retry(operation, result.status, result.error)
            if attempt == TRIES or not result.is_transient():
                raise result.exception(operation)
            if is_throttled_within(result.error):
                _pause(0.05 * 2**attempt)
            else:
                taken = self._quota.take(result.cause)
                if not taken:
                    raise result.exception(operation)
                if not isinstance(result.cause, StaleConnection):
                    _pause(2 ** (attempt - 1))
            attempt += 1

    def _try(
        self, request: _Request, attempt: int, *, streams: bool
    ) -> tuple[Reply, bytes] | _Failure:
        headers = {
            "host": request.endpoint.host,
            "amz-sdk-invocation-id": request.id,
            "amz-sdk-request": f"attempt={attempt}",
            **request.headers,
        }
        self._signer.sign(
            request.method, request.path, request.query, headers, request.payload_hash
        )
        trace = os.environ.get("_X_AMZN_TRACE_ID")
        if trace:
            # Not signed, as proxies may change it. By it, AWS also stops functions that invoke each other in a loop.
            headers["x-amzn-trace-id"] = quote(trace, safe=_SAFE_IN_TRACE)
        try:
            reply = request.endpoint.send(request.method, request.target, headers, request.body)
            is_error = reply.status >= HTTPStatus.MULTIPLE_CHOICES
            content = b"" if streams and not is_error else reply.read()
        except OSError as cause:
            return _Failure(None, _NONE, cause)
        if is_error:
            return _Failure(reply.status, self._error(reply, content), None)
        if not self._is_intact(reply, content):
            return _Failure(None, _NONE, BrokenReply("the reply is damaged"))
        return reply, content

    def _error(self, reply: Reply, content: bytes) -> dict[str, Any]:
        """The error as botocore's `ClientError.response` has it."""
        code, message, more = self._parsed_error(reply.status, reply.headers, content)
        return {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": reply.status},
            **more,
        }

    def _parsed_error(
        self, status: int, headers: Mapping[str, str], content: bytes
    ) -> tuple[str, str, Mapping[str, Any]]:
        raise NotImplementedError

    def _is_intact(self, reply: Reply, content: bytes) -> bool:  # noqa: ARG002 - for the others
        return True


class _JsonClient(_Client):
    """A client of a service with the protocol `json`. Arguments and replies are those of its API."""

    _CONTENT_TYPE: str
    _TARGET: str

    def _ask(self, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        headers = {
            "content-type": self._CONTENT_TYPE,
            "x-amz-target": f"{self._TARGET}.{operation}",
        }
        body = json.dumps(arguments, default=_base64).encode()
        payload_hash = sha256(body).hexdigest()
        request = _Request(self._endpoint(), "POST", "/", headers, body, payload_hash=payload_hash)
        _, content = self._call(operation, request)
        reply: dict[str, Any] = json.loads(content)
        return reply

    def _is_intact(self, reply: Reply, content: bytes) -> bool:
        checksum = reply.headers.get("x-amz-crc32")
        if checksum is not None and checksum != str(zlib.crc32(content)):
            return False
        return content.startswith(b"{")

    def _parsed_error(
        self,
        status: int,
        headers: Mapping[str, str],  # noqa: ARG002 - for the others
        content: bytes,
    ) -> tuple[str, str, Mapping[str, Any]]:
        return _parsed_json(status, content)


def _parsed_json(status: int, content: bytes) -> tuple[str, str, Mapping[str, Any]]:
    try:
        parsed = json.loads(content)
        code = parsed.get("__type", str(status)).partition(":")[0].rpartition("#")[2]
        message = parsed.get("message", parsed.get("Message", ""))
    except (ValueError, AttributeError):
        # A proxy or a load balancer on the way has sent a page.
        return str(status), "", {}
    return code, message, {name: parsed[name] for name in _MORE if name in parsed}


_MORE = ("CancellationReasons", "Item")
"""What an error of DynamoDB has in addition to a code and a message."""


class DynamoDb(_JsonClient):
    _SERVICE = "dynamodb"
    _CONTENT_TYPE = "application/x-amz-json-1.0"
    _TARGET = "DynamoDB_20120810"

    def get_item(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("GetItem", arguments)

    def batch_get_item(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("BatchGetItem", arguments)

    def query(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("Query", arguments)

    def put_item(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("PutItem", arguments)

    def update_item(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("UpdateItem", arguments)

    def delete_item(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("DeleteItem", arguments)

    def transact_get_items(self, **arguments: Any) -> dict[str, Any]:
        return self._ask("TransactGetItems", arguments)

    def transact_write_items(self, **arguments: Any) -> dict[str, Any]:
        # With this token DynamoDB recognizes a retry, and does not write twice.
        return self._ask(
            "TransactWriteItems", {**arguments, "ClientRequestToken": os.urandom(16).hex()}
        )


class SecretsManager(_JsonClient):
    _SERVICE = "secretsmanager"
    _CONTENT_TYPE = "application/x-amz-json-1.1"
    _TARGET = "secretsmanager"

    def get_secret_value(self, **arguments: Any) -> dict[str, Any]:
        reply = self._ask("GetSecretValue", arguments)
        return {**reply, "CreatedDate": datetime.fromtimestamp(reply["CreatedDate"], UTC)}


class Lambda(_Client):
    _SERVICE = "lambda"

    # The arguments have the names of the API, as boto3's have.

    def invoke(
        self,
        *,
        FunctionName: str,  # noqa: N803
        InvocationType: str,  # noqa: N803
        Payload: bytes,  # noqa: N803
    ) -> dict[str, Any]:
        """Invoke a function by its name. Larder reads no reply."""
        request = _Request(
            *(self._endpoint(), "POST", f"/2015-03-31/functions/{FunctionName}/invocations"),
            {"x-amz-invocation-type": InvocationType},
            Payload,
            payload_hash=sha256(Payload).hexdigest(),
        )
        reply, _ = self._call("Invoke", request)
        return {"StatusCode": reply.status}

    def _parsed_error(
        self, status: int, headers: Mapping[str, str], content: bytes
    ) -> tuple[str, str, Mapping[str, Any]]:
        code, message, _ = _parsed_json(status, content)
        return headers.get("x-amzn-errortype", code).partition(":")[0], message, {}


class Body:
    """The body of an object. `read` raises TryAgain if the connection is lost."""

    __slots__ = ("_reply",)

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def read(self) -> bytes:
        try:
            return self._reply.read()
        except OSError as error:
            raise TryAgain from error

    def close(self) -> None:
        self._reply.close()


class S3(_Client):
    """Objects. The bucket's name is in the host, or in the path in front of the key."""

    _SERVICE = "s3"
    _METADATA = "x-amz-meta-"

    # The arguments have the names of the API, as boto3's have.

    def put_object(
        self,
        *,
        Bucket: str,  # noqa: N803
        Key: str,  # noqa: N803
        Body: bytes,  # noqa: N803
        ContentType: str = "binary/octet-stream",  # noqa: N803
        Metadata: Mapping[str, str] = _NONE,  # noqa: N803
    ) -> dict[str, Any]:
        metadata = {f"{self._METADATA}{name}": value for name, value in Metadata.items()}
        headers = {"content-type": ContentType, **metadata}
        reply, _ = self._ask("PutObject", "PUT", Bucket, Key, headers=headers, body=Body)
        return self._described(reply)

    def get_object(
        self,
        *,
        Bucket: str,  # noqa: N803
        Key: str,  # noqa: N803
        VersionId: str | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        reply, _ = self._ask("GetObject", "GET", Bucket, Key, VersionId, streams=True)
        return {**self._described(reply), "Body": Body(reply)}

    def head_object(
        self,
        *,
        Bucket: str,  # noqa: N803
        Key: str,  # noqa: N803
        VersionId: str | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        reply, _ = self._ask("HeadObject", "HEAD", Bucket, Key, VersionId)
        return self._described(reply)

    def delete_object(
        self,
        *,
        Bucket: str,  # noqa: N803
        Key: str,  # noqa: N803
        VersionId: str | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        reply, _ = self._ask("DeleteObject", "DELETE", Bucket, Key, VersionId)
        return self._described(reply)

    def _ask(
        self,
        operation: str,
        method: str,
        bucket: str,
        key: str,
        version: str | None = None,
        *,
        headers: Mapping[str, str] = _NONE,
        body: bytes = b"",
        streams: bool = False,
    ) -> tuple[Reply, bytes]:
        path = f"/{quote(key, safe='/~')}"
        if "{bucket}" not in self._url:
            path = f"/{bucket}{path}"
        payload_hash = sha256(body).hexdigest()
        request = _Request(
            *(self._endpoint(bucket), method, path),
            {"x-amz-content-sha256": payload_hash, **headers},
            body,
            payload_hash=payload_hash,
            query="" if version is None else encode_query({"versionId": version}),
        )
        return self._call(operation, request, streams=streams)

    def _described(self, reply: Reply) -> dict[str, Any]:
        """What Larder reads of the headers, by their names in botocore."""
        headers = reply.headers
        described: dict[str, Any] = {
            "Metadata": {
                name.removeprefix(self._METADATA): value
                for name, value in headers.items()
                if name.startswith(self._METADATA)
            }
        }
        if "x-amz-version-id" in headers:
            described["VersionId"] = headers["x-amz-version-id"]
        if "content-length" in headers:
            described["ContentLength"] = int(headers["content-length"])
        if "last-modified" in headers:
            described["LastModified"] = datetime.strptime(
                headers["last-modified"].replace("GMT", "+0000"), "%a, %d %b %Y %H:%M:%S %z"
            )
        return described

    def _parsed_error(
        self,
        status: int,
        headers: Mapping[str, str],  # noqa: ARG002 - for the others
        content: bytes,
    ) -> tuple[str, str, Mapping[str, Any]]:
        from xml.etree import ElementTree as ET

        try:
            parsed = ET.fromstring(content)  # noqa: S314 - S3 is trusted
        except ET.ParseError:
            # The reply to HEAD has no body.
            return str(status), _PHRASES.get(status, ""), {}
        return parsed.findtext("Code", str(status)), parsed.findtext("Message", ""), {}
