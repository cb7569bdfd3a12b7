"""The bucket: one object per upload. Each carries its metadata, so that the index can be rebuilt from the bucket."""

from collections.abc import Iterator
from urllib.parse import quote

from larder import aws
from larder.artifacts.models import (
    ArtifactMetadata,
    DownloadUrl,
    StoredObject,
    Upload,
    Writer,
    parse_object_key,
)
from larder.errors import TryAgain
from larder.settings import region, s3_endpoint, settings

_MISSING = frozenset({"404", "NoSuchKey", "NotFound"})


def put(upload: Upload, body: bytes, metadata: ArtifactMetadata, writer: Writer | None) -> None:
    aws.s3().put_object(
        Bucket=settings().artifacts_bucket,
        Key=upload.object_key,
        Body=body,
        ContentType="application/octet-stream",
        Metadata=_to_headers(metadata, writer),
    )


def get(upload: Upload, size_bytes: int) -> bytes | None:
    """Read the object. Returns None if it is gone or has another size; its body is not read in that case."""
    try:
        reply = aws.s3().get_object(Bucket=settings().artifacts_bucket, Key=upload.object_key)
    except aws.ClientError as error:
        if aws.error_code(error) in _MISSING:
            return None
        raise
    if reply["ContentLength"] != size_bytes:
        reply["Body"].close()
        return None
    try:
        return reply["Body"].read()
    except aws.BotoCoreError as error:
        raise TryAgain from error


def head(upload: Upload) -> StoredObject | None:
    """Read the object's size, time and metadata. Returns None if it does not exist (yet)."""
    try:
        reply = aws.s3().head_object(Bucket=settings().artifacts_bucket, Key=upload.object_key)
    except aws.ClientError as error:
        if aws.error_code(error) in _MISSING:
            return None
        raise
    metadata, writer = _from_headers(reply["Metadata"])
    return StoredObject(
        size_bytes=reply["ContentLength"],
        stored_at=reply["LastModified"],
        metadata=metadata,
        writer=writer,
    )


def delete(upload: Upload) -> None:
    """Delete the object. No error if it does not exist."""
    aws.s3().delete_object(Bucket=settings().artifacts_bucket, Key=upload.object_key)


def list_uploads() -> Iterator[Upload]:
    """Every upload in the bucket, ordered by owner, hash and time. Skips objects with other names."""
    pages = (
        aws.s3()
        .get_paginator("list_objects_v2")
        .paginate(Bucket=settings().artifacts_bucket, Prefix="artifacts/")
    )
    for page in pages:
        for listed in page.get("Contents", []):
            upload = parse_object_key(listed["Key"])
            if upload is not None:
                yield upload


def upload_url(upload: Upload) -> str:
    """A presigned URL to PUT the object. Only `host` is signed, so that headers added by the client do not break it."""
    return aws.presign("PUT", _url(upload), expires_s=settings().upload_url_seconds)


def download_url(upload: Upload) -> DownloadUrl:
    url = aws.presign("GET", _url(upload), expires_s=settings().download_url_seconds)
    return DownloadUrl(url)


def _url(upload: Upload) -> str:
    bucket = settings().artifacts_bucket
    key = quote(upload.object_key)
    if endpoint := s3_endpoint():
        return f"{endpoint.rstrip('/')}/{bucket}/{key}"
    # The regional endpoint: for a new bucket, the global one replies with a redirect, which breaks the signature.
    return f"https://{bucket}.s3.{region()}.amazonaws.com/{key}"


def _to_headers(metadata: ArtifactMetadata, writer: Writer | None) -> dict[str, str]:
    interactive = None if metadata.interactive is None else str(int(metadata.interactive))
    headers = {
        "duration-ms": None if metadata.duration_ms is None else str(metadata.duration_ms),
        "tag": metadata.tag,
        "sha": metadata.sha,
        "dirty-hash": metadata.dirty_hash,
        "ci": metadata.ci,
        "interactive": interactive,
        "writer": None if writer is None else writer.id,
        "user-id": None if writer is None else writer.user_id,
    }
    return {name: value for name, value in headers.items() if value is not None}


def _from_headers(headers: dict[str, str]) -> tuple[ArtifactMetadata, Writer | None]:
    duration = headers.get("duration-ms", "")
    metadata = ArtifactMetadata(
        duration_ms=int(duration) if duration.isdecimal() else None,
        tag=headers.get("tag"),
        sha=headers.get("sha"),
        dirty_hash=headers.get("dirty-hash"),
        ci=headers.get("ci"),
        interactive={"0": False, "1": True}.get(headers.get("interactive", "")),
    )
    writer = headers.get("writer")
    return metadata, Writer(writer, headers.get("user-id")) if writer else None
