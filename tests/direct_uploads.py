"""Direct uploads to S3, as clients with preflight send them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from larder import aws
from larder.artifacts.models import NULL_VERSION
from larder.settings import settings
from tests.catalogue import valid
from tests.requests import Context, Sender, invoke

PREFLIGHT = valid("OPTIONS /v8/artifacts/{hash}").headers


def offer(send: Sender, hash: str) -> str:
    """Request an upload URL. Return the object's key."""
    reply = send("OPTIONS", f"/v8/artifacts/{hash}", headers=PREFLIGHT)
    assert reply.status == 204, reply
    return urlsplit(reply.headers["location"]).path.removeprefix("/")


def put_object(key: str, body: bytes) -> str:
    """Store an object. Return its version."""
    bucket = settings().artifacts_bucket
    reply = aws.s3().put_object(Bucket=bucket, Key=key, Body=body)
    return reply.get("VersionId", NULL_VERSION)


def upload(send: Sender, hash: str, body: bytes) -> str:
    """Request an upload URL and upload, without S3's event. Return the object's key."""
    key = offer(send, hash)
    put_object(key, body)
    return key


def announce(
    key: str, context: Context | None = None, *, version: str | None = None, reason: str = "PutObject"
) -> None:
    """Deliver S3's event of a finished object: of this version, or of the current one."""
    if version is None:
        version = next((one.id for one in versions_of(key)), "gone")
    event = {
        "source": "aws.s3",
        "detail-type": "Object Created",
        "detail": {
            "bucket": {"name": settings().artifacts_bucket},
            "object": {"key": key, "size": 1, "version-id": version},
            "reason": reason,
        },
    }
    invoke("artifacts.commit_upload.handler", event, context)


@contextmanager
def keeping_no_versions() -> Iterator[None]:
    """The bucket of version 0.1.0. Objects that it stores are the version `null`."""
    bucket = settings().artifacts_bucket
    aws.s3().put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    yield
    aws.s3().put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


@dataclass(frozen=True)
class StoredVersion:
    key: str
    id: str
    size_bytes: int


def versions() -> list[StoredVersion]:
    """Every version in the bucket, by key, the newest first. Larder makes no delete markers."""
    listing = aws.s3().list_object_versions(Bucket=settings().artifacts_bucket)
    assert listing.get("DeleteMarkers", []) == []
    return [
        StoredVersion(version["Key"], version["VersionId"], version["Size"]) for version in listing.get("Versions", [])
    ]


def versions_of(key: str) -> list[StoredVersion]:
    """The versions of one key, the newest first."""
    return [version for version in versions() if version.key == key]


def object_keys() -> list[str]:
    """The key of every version in the bucket."""
    return [version.key for version in versions()]
