"""Signature Version 4, in the headers of a request and in the query of a presigned URL.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hmac
import os
import time
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from urllib.parse import quote, urlsplit


class Credentials:
    __slots__ = ("access_key_id", "secret_access_key", "session_token")

    def __init__(self, access_key_id: str, secret_access_key: str, session_token: str) -> None:
        self.access_key_id = access_key_id
        self.secret_access_key = secret_access_key
        self.session_token = session_token


class Signer:
    """Signs requests to one service in one region."""

    def __init__(self, service: str, region: str) -> None:
        self._service = service
        self._region = region

    def sign(
        self, method: str, path: str, query: str, headers: dict[str, str], payload_hash: str
    ) -> None:
        """Add date, token and signature to the headers. All of them are signed; their names are in lower case."""
        credentials, now = function_credentials(), _now()
        headers["x-amz-date"] = now
        if credentials.session_token:
            headers["x-amz-security-token"] = credentials.session_token
        names = sorted(headers)
        lines = "".join([f"{name}:{' '.join(headers[name].split())}\n" for name in names])
        signed = ";".join(names)
        scope = self._scope(now)
        signature = self._signature(
            f"{method}\n{path}\n{query}\n{lines}\n{signed}\n{payload_hash}", scope, credentials, now
        )
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credentials.access_key_id}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}"
        )

    def presign(self, method: str, url: str, *, expires_s: int) -> str:
        """Sign a URL in its query, with only `host` among the signed headers."""
        credentials, parts, now = function_credentials(), urlsplit(url), _now()
        scope = self._scope(now)
        parameters = {
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{credentials.access_key_id}/{scope}",
            "X-Amz-Date": now,
            "X-Amz-Expires": str(expires_s),
            "X-Amz-SignedHeaders": "host",
        }
        if credentials.session_token:
            parameters["X-Amz-Security-Token"] = credentials.session_token
        pairs = [*([parts.query] if parts.query else []), encode_query(parameters)]
        query = "&".join(pairs)
        ordered = "&".join(sorted(query.split("&"), key=lambda pair: pair.split("=", 1)))
        signature = self._signature(
            f"{method}\n{parts.path}\n{ordered}\nhost:{parts.netloc}\n\nhost\nUNSIGNED-PAYLOAD",
            *(scope, credentials, now),
        )
        address = f"{parts.scheme}://{parts.netloc}{parts.path}"
        return f"{address}?{query}&X-Amz-Signature={signature}"

    def _scope(self, now: str) -> str:
        return f"{now[:8]}/{self._region}/{self._service}/aws4_request"

    def _signature(self, canonical: str, scope: str, credentials: Credentials, now: str) -> str:
        digest = sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}"
        key = _key_of_day(credentials.secret_access_key, now[:8], self._region, self._service)
        return hmac.digest(key, text.encode(), "sha256").hex()


def function_credentials() -> Credentials:
    """The credentials of the function's role. Lambda replaces an environment before they expire."""
    return Credentials(
        os.environ["AWS_ACCESS_KEY_ID"],
        os.environ["AWS_SECRET_ACCESS_KEY"],
        os.environ.get("AWS_SESSION_TOKEN", ""),
    )


def encode_query(parameters: Mapping[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in parameters.items())


def _now() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


@lru_cache(maxsize=8)
def _key_of_day(secret: str, day: str, region: str, service: str) -> bytes:
    """Deriving it takes four of the five HMACs of a signature."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
