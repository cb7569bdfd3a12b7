"""Direct uploads to S3, as clients with preflight send them."""

from typing import Any
from urllib.parse import urlsplit

from larder import aws
from larder.settings import settings
from tests.requests import Context, Sender, invoke

PREFLIGHT = {
    "access-control-request-method": "PUT",
    "access-control-request-headers": "Authorization, Content-Type, User-Agent, x-artifact-duration",
    "user-agent": "turbo 2.11.11 1.98.0-nightly linux x86_64",
}


def offer(send: Sender, hash: str) -> str:
    """Request an upload URL. Return the object's key."""
    reply = send("OPTIONS", f"/v8/artifacts/{hash}", headers=PREFLIGHT)
    assert reply.status == 204, reply
    return urlsplit(reply.headers["location"]).path.removeprefix("/")


def put_object(key: str, body: bytes) -> None:
    aws.s3().put_object(Bucket=settings().artifacts_bucket, Key=key, Body=body)


def upload(send: Sender, hash: str, body: bytes) -> str:
    """Request an upload URL and upload, without S3's event. Return the object's key."""
    key = offer(send, hash)
    put_object(key, body)
    return key


def announce(key: str, context: Context | None = None, *, size_bytes: int | None = None) -> None:
    """Deliver S3's event of a finished object, with the object's size unless `size_bytes` is set."""
    if size_bytes is None:
        size_bytes = {one["Key"]: one["Size"] for one in listed()}.get(key, 0)
    event = {
        "source": "aws.s3",
        "detail-type": "Object Created",
        "detail": {
            "bucket": {"name": settings().artifacts_bucket},
            "object": {"key": key, "size": size_bytes},
        },
    }
    invoke("artifacts.commit_upload.handler", event, context)


def object_keys() -> list[str]:
    """Every object in the bucket."""
    return [one["Key"] for one in listed()]


def listed() -> list[dict[str, Any]]:
    """Every object in the bucket with its size."""
    listing = aws.s3().list_objects_v2(Bucket=settings().artifacts_bucket)
    return [dict(one) for one in listing.get("Contents", [])]
