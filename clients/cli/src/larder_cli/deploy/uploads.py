"""Files of releases in a bucket that keeps versions."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import click
from botocore.exceptions import ClientError


def ensure(
    s3: Any, place: Mapping[str, str], body: bytes, *, may_write: bool = True
) -> tuple[str, int]:
    """Upload the object, unless it is there with this content. Returns its version, and the bytes sent.

    S3 refuses a body with another checksum. Raises ClickException if the object has other content, if the bucket keeps
    no versions, and, unless `may_write`, if it has to be uploaded.
    """
    checksum = base64.b64encode(hashlib.sha256(body).digest()).decode()
    stored = _stored_version(s3, place, checksum)
    if stored is not None:
        return stored, 0
    if not may_write:
        raise click.ClickException(
            f"s3://{place['Bucket']}/{place['Key']} is not published. Run the command without --check"
        )
    made = s3.put_object(**place, Body=body, ChecksumAlgorithm="SHA256", ChecksumSHA256=checksum)
    version = _version_of(made)
    if version is None:
        bucket = place["Bucket"]
        raise click.ClickException(
            f"code-bucket: {bucket} keeps no versions, so what CloudFormation reads could be replaced. Turn them on:\n"
            f"  aws s3api put-bucket-versioning --bucket {bucket} --versioning-configuration Status=Enabled"
        )
    return version, len(body)


def _stored_version(s3: Any, place: Mapping[str, str], checksum: str) -> str | None:
    """The version of the object, if its SHA-256 is this one in Base64. None if it has to be uploaded: there is no
    object, no version of it, or no SHA-256 of the whole, such as after an upload in parts.

    Raises ClickException if it has other content.
    """
    try:
        found = s3.head_object(**place, ChecksumMode="ENABLED")
    except ClientError as error:
        if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
            return None
        raise click.ClickException(
            f"cannot read the bucket {place['Bucket']}, where the code goes: {error}"
        ) from error
    stored, version = str(found.get("ChecksumSHA256", "-")), _version_of(found)
    if "-" in stored:
        return None
    if stored != checksum:
        bucket, key = place["Bucket"], place["Key"]
        raise click.ClickException(
            f"s3://{bucket}/{key} is not the file of this release: its SHA-256 is {stored}, and that of the release "
            f"{checksum}. Nothing was deployed. Find out who has put it there, then delete this version: "
            f"aws s3api delete-object --bucket {bucket} --key {key} --version-id {version or 'null'}"
        )
    return version


def url(s3: Any, place: Mapping[str, str]) -> str:
    """The address of the object, without a signature: CloudFormation reads it with the caller's permissions."""
    signed: str = s3.generate_presigned_url(
        "get_object", {"Bucket": place["Bucket"], "Key": place["Key"]}
    )
    return signed.partition("?")[0]


def _version_of(reply: Mapping[str, Any]) -> str | None:
    """The version that S3 names. An object from before the bucket kept versions has the version null."""
    version = reply.get("VersionId")
    return None if version in (None, "null") else str(version)
