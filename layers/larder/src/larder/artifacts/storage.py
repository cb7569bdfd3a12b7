"""The bucket: one object per upload. Each carries its metadata, so that the index can be rebuilt from the bucket.

The bucket keeps versions. An artifact names the version of its object, because a client can upload to the same URL
again (docs/decisions/objects.md).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, TypedDict
from urllib.parse import quote

from larder import aws
from larder.actor import Actor
from larder.artifacts.models import (
    MAX_DURATION_MS,
    NULL_VERSION,
    Artifact,
    ArtifactMetadata,
    DownloadUrl,
    Upload,
    is_ci,
    is_revision,
    is_tag,
    parse_object_key,
)
from larder.clock import from_ms, to_ms
from larder.settings import region, s3_endpoint, settings, url_suffix

_MISSING = frozenset({"404", "NoSuchKey", "NoSuchVersion", "NotFound"})

_DOWNLOAD_HEADERS = (
    "response-cache-control=no-store"
    "&response-content-disposition=attachment"
    "&response-content-type=application%2Foctet-stream"
)
"""The headers of a download. Without them, S3 returns those that the upload had, and a browser could show a page."""


class VersionParameter(TypedDict, total=False):
    VersionId: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """A version of an object in S3. `writer` is set if it was uploaded through a function.

    `sha256` and `renewed_at` are as in `Artifact`. A copy has the `stored_at` of the upload, and `copy_of` names the
    version that it is a copy of.
    """

    version: str
    size_bytes: int
    stored_at: datetime
    metadata: ArtifactMetadata
    writer: Actor | None
    sha256: str | None = None
    renewed_at: datetime | None = None
    copy_of: str | None = None


class StoredUpload(NamedTuple):
    """An upload in the bucket, and the version of its object that was published, or can be."""

    upload: Upload
    version: str


class _Version(NamedTuple):
    """A version in a listing, or a delete marker, which has no size."""

    key: str
    id: str
    size_bytes: int | None


def put(
    upload: Upload,
    body: bytes,
    metadata: ArtifactMetadata,
    writer: Actor | None,
    sha256: str | None = None,
) -> str:
    """Store the object, and return its version."""
    reply = aws.s3().put_object(
        Bucket=settings().artifacts_bucket,
        Key=upload.object_key,
        Body=body,
        ContentType="application/octet-stream",
        Metadata=_to_headers(metadata, writer, sha256),
    )
    return reply.get("VersionId", NULL_VERSION)


def get(upload: Upload, version: str, size_bytes: int) -> bytes | None:
    """Read a version. Returns None if it is gone or has another size; its body is not read in that case."""
    try:
        reply = aws.s3().get_object(
            Bucket=settings().artifacts_bucket, Key=upload.object_key, VersionId=version
        )
    except aws.ClientError as error:
        if aws.error_code(error) in _MISSING:
            return None
        raise
    if reply["ContentLength"] != size_bytes:
        reply["Body"].close()
        return None
    return reply["Body"].read()


def head(upload: Upload, version: str | None = None) -> StoredObject | None:
    """Read size, time and metadata of a version, or of the latest one. Returns None if it does not exist (yet)."""
    named: VersionParameter = {} if version is None else {"VersionId": version}
    try:
        reply = aws.s3().head_object(
            Bucket=settings().artifacts_bucket, Key=upload.object_key, **named
        )
    except aws.ClientError as error:
        if aws.error_code(error) in _MISSING:
            return None
        raise
    headers = reply["Metadata"]
    metadata, writer = _from_headers(headers)
    copy_of, uploaded_at = headers.get("copy-of"), headers.get("uploaded-at")
    return StoredObject(
        version=reply.get("VersionId", NULL_VERSION),
        size_bytes=reply["ContentLength"],
        stored_at=from_ms(int(uploaded_at)) if uploaded_at else reply["LastModified"],
        metadata=metadata,
        writer=writer,
        sha256=headers.get("sha256"),
        renewed_at=reply["LastModified"] if copy_of else None,
        copy_of=copy_of,
    )


def copy(artifact: Artifact) -> str | None:
    """Copy the version of the artifact to a new version of its object, so that the lifecycle counts from now.

    Returns the new version, or None if the artifact's version is gone. A copy that was made before, and is not in the
    index yet, is used again.
    """
    latest = head(artifact.upload)
    if latest is not None and latest.copy_of == artifact.version:
        return latest.version
    bucket, key = settings().artifacts_bucket, artifact.upload.object_key
    headers = _to_headers(artifact.metadata, artifact.writer, artifact.sha256)
    try:
        reply = aws.s3().copy_object(
            Bucket=bucket,
            Key=key,
            CopySource={"Bucket": bucket, "Key": key, "VersionId": artifact.version},
            ContentType="application/octet-stream",
            Metadata={
                **headers,
                "copy-of": artifact.version,
                "uploaded-at": str(to_ms(artifact.created_at)),
            },
            # S3 copies an object to itself only if something about it changes.
            MetadataDirective="REPLACE",
        )
    except aws.ClientError as error:
        if aws.error_code(error) in _MISSING:
            return None
        raise
    return reply.get("VersionId", NULL_VERSION)


def delete_version(upload: Upload, version: str) -> None:
    """Delete one version. No error if it does not exist."""
    aws.s3().delete_object(
        Bucket=settings().artifacts_bucket, Key=upload.object_key, VersionId=version
    )


def delete_versions(versions: Sequence[tuple[Upload, str]]) -> set[Upload]:
    """Delete up to a thousand versions with one call. Returns the uploads of those that S3 did not delete.

    No error for a version that does not exist.
    """
    if not versions:
        return set()
    objects: Any = [
        {"Key": upload.object_key, "VersionId": version} for upload, version in versions
    ]
    reply = aws.s3().delete_objects(
        Bucket=settings().artifacts_bucket, Delete={"Objects": objects, "Quiet": True}
    )
    keys = {error["Key"] for error in reply.get("Errors", ())}
    return {upload for upload, _ in versions if upload.object_key in keys}


def delete(upload: Upload, *, keep: str | None = None) -> None:
    """Delete every version of the object and its delete markers, except the version `keep`."""
    for key, versions in _listed(upload.object_key):
        if key == upload.object_key:
            for version in versions:
                if version.id != keep:
                    delete_version(upload, version.id)


def list_uploads() -> Iterator[StoredUpload]:
    """Every upload in the bucket, ordered by owner, hash and time. Skips objects with other names, and deleted ones.

    The published version of an upload is its oldest one of an allowed size: later ones were sent to its URL afterwards.
    """
    for key, versions in _listed("artifacts/"):
        upload = parse_object_key(key)
        if upload is None or any(version.size_bytes is None for version in versions):
            continue
        fitting = [
            version.id
            for version in versions
            if 0 < (version.size_bytes or 0) <= settings().max_upload_bytes
        ]
        # An upload without such a version is listed, too, so that it is discarded.
        yield StoredUpload(upload, (fitting or [version.id for version in versions])[-1])


def _listed(prefix: str) -> Iterator[tuple[str, list[_Version]]]:
    """Keys that begin with `prefix`, each with its versions and delete markers. Versions are listed newest first."""
    for key, versions in groupby(_list_versions(prefix), key=attrgetter("key")):
        yield key, list(versions)


def _list_versions(prefix: str) -> Iterator[_Version]:
    pages = (
        aws.s3()
        .get_paginator("list_object_versions")
        .paginate(Bucket=settings().artifacts_bucket, Prefix=prefix)
    )
    for page in pages:
        versions = [
            _Version(listed["Key"], listed["VersionId"], listed["Size"])
            for listed in page.get("Versions", [])
        ]
        markers = [
            _Version(listed["Key"], listed["VersionId"], None)
            for listed in page.get("DeleteMarkers", [])
        ]
        # Sorting keeps the order of the versions of one key.
        yield from sorted([*versions, *markers], key=attrgetter("key"))


def upload_url(upload: Upload) -> str:
    """A presigned URL to PUT the object. Only `host` is signed, so that headers added by the client do not break it."""
    return aws.presign("PUT", _url(upload), expires_s=settings().upload_url_seconds)


def download_url(upload: Upload, version: str) -> DownloadUrl:
    """A presigned URL to GET a version. Its parameters are signed, too."""
    url = f"{_url(upload)}?{_DOWNLOAD_HEADERS}&versionId={quote(version, safe='')}"
    return DownloadUrl(aws.presign("GET", url, expires_s=settings().download_url_seconds))


def _url(upload: Upload) -> str:
    bucket = settings().artifacts_bucket
    key = quote(upload.object_key)
    if endpoint := s3_endpoint():
        return f"{endpoint.rstrip('/')}/{bucket}/{key}"
    # The regional endpoint: for a new bucket, the global one replies with a redirect, which breaks the signature.
    service = "s3.dualstack" if settings().dual_stack else "s3"
    return f"https://{bucket}.{service}.{region()}.{url_suffix()}/{key}"


def _to_headers(
    metadata: ArtifactMetadata, writer: Actor | None, sha256: str | None
) -> dict[str, str]:
    interactive = None if metadata.interactive is None else str(int(metadata.interactive))
    headers = {
        "duration-ms": None if metadata.duration_ms is None else str(metadata.duration_ms),
        "tag": metadata.tag,
        "sha": metadata.sha,
        "dirty-hash": metadata.dirty_hash,
        "ci": metadata.ci,
        "interactive": interactive,
        "writer": None if writer is None else writer.credential_id,
        "user-id": None if writer is None else writer.holder_id,
        "sha256": sha256,
    }
    return {name: value for name, value in headers.items() if value is not None}


def _from_headers(headers: dict[str, str]) -> tuple[ArtifactMetadata, Actor | None]:
    """The metadata and the writer of an object. The edge stores objects too, so invalid values count as missing."""
    duration = headers.get("duration-ms", "")
    is_duration = duration.isdecimal() and int(duration[:20]) <= MAX_DURATION_MS
    metadata = ArtifactMetadata(
        duration_ms=int(duration) if is_duration else None,
        tag=_valid(headers.get("tag"), is_tag),
        sha=_valid(headers.get("sha"), is_revision),
        dirty_hash=_valid(headers.get("dirty-hash"), is_revision),
        ci=_valid(headers.get("ci"), is_ci),
        interactive={"0": False, "1": True}.get(headers.get("interactive", "")),
    )
    writer = headers.get("writer")
    return metadata, Actor.of(writer, headers.get("user-id")) if writer else None


def _valid(text: str | None, rule: Callable[[str], bool]) -> str | None:
    return text if text is not None and rule(text) else None
