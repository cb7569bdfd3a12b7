"""Check the signatures of requests to DynamoDB and Lambda."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache

from nanio.auth import sigv4
from nanio.errors import S3Error

# A key is valid for a day. nanio would derive it again for every request.
sigv4.derive_signing_key = lru_cache(maxsize=16)(sigv4.derive_signing_key)


def is_signed(
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    credentials: tuple[str, str],
) -> bool:
    """Whether the request is signed with these credentials: id and secret."""
    access_key, secret_key = credentials
    # Only S3's clients send the body's hash; for other services the server computes it.
    digest = hashlib.sha256(body).hexdigest()
    try:
        sigv4.verify_header_auth(
            method=method,
            path=path,
            query=query,
            headers={**headers, "x-amz-content-sha256": digest},
            secret_lookup=lambda key: secret_key if key == access_key else None,
        )
    except S3Error:
        return False
    return True
