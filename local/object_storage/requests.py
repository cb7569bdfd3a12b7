"""Requests for objects, with versions, which nanio lacks: an upload adds a version, and a request can name one.

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/versioning-workflows.html
"""

from __future__ import annotations

from urllib.parse import quote, unquote
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from nanio.errors import AccessDenied, NotImplemented_
from nanio.handlers._body import extract_user_metadata
from nanio.handlers.bucket import dispatch_bucket
from nanio.handlers.object import dispatch_object, get_object, head_object, put_object
from nanio.xml import S3_NS, copy_object_result_xml
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from local.object_storage.storage import Storage, only_first
from local.object_storage.versions import Version, new_version

COPY_HEADER = "x-amz-copy-source"
VERSION_HEADER = "x-amz-version-id"

_MOST_LISTED = 1000
_FORCED_HEADERS = {
    f"response-{name}": name
    for name in (
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-type",
        "expires",
    )
}
"""Parameters of a signed GET that set a header of the reply."""


def routes() -> list[Route]:
    return [
        Route("/{bucket}", _bucket, methods=["GET", "HEAD", "PUT", "DELETE", "POST"]),
        Route("/{bucket}/{key:path}", _object, methods=["GET", "HEAD", "PUT", "DELETE", "POST"]),
    ]


async def _bucket(request: Request) -> Response:
    if request.method == "GET" and "versions" in request.query_params:
        return _list_versions(request)
    if request.method == "POST" and "delete" in request.query_params:
        return await _delete_objects(request)
    return await dispatch_bucket(request)  # type: ignore[no-any-return]


async def _object(request: Request) -> Response:
    bucket, key = request.path_params["bucket"], request.path_params["key"]
    storage: Storage = request.app.state.storage
    if request.method == "POST" or "uploadId" in request.query_params:
        reply: Response = await dispatch_object(request)
        if request.method == "POST" and "uploadId" in request.query_params:
            reply.headers[VERSION_HEADER] = storage.add_version(bucket, key).id
        return reply
    version_id = request.query_params.get("versionId")
    if request.method == "PUT":
        version = new_version(key)
        if COPY_HEADER in request.headers:
            reply = await _copy(request, storage, bucket, version)
        else:
            with only_first(storage, bucket, key, request.headers.get("if-none-match")):
                reply = await put_object(request, bucket, version.stored_name)
    elif request.method == "DELETE":
        version, reply = _delete(storage, bucket, key, version_id)
    else:
        version = storage.find(bucket, key, version_id)
        if version.is_delete_marker:
            return Response(status_code=405)
        answer = head_object if request.method == "HEAD" else get_object
        reply = await answer(request, bucket, version.stored_name)
        for parameter, header in _FORCED_HEADERS.items():
            if parameter in request.query_params:
                reply.headers[header] = request.query_params[parameter]
    reply.headers[VERSION_HEADER] = version.id
    return reply


async def _copy(request: Request, storage: Storage, bucket: str, version: Version) -> Response:
    """Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html"""
    if "X-Amz-Signature" in request.query_params:
        # Larder signs only the host in an address. S3 refuses headers of its own that are not signed.
        raise AccessDenied("There were headers present in the request which were not signed")
    if request.headers.get("x-amz-metadata-directive") != "REPLACE":
        raise NotImplemented_("This server copies objects only with new metadata.")
    source, _, version_id = request.headers[COPY_HEADER].partition("?versionId=")
    source_bucket, _, source_key = unquote(source).removeprefix("/").partition("/")
    original = storage.find(source_bucket, source_key, unquote(version_id) or None)
    read = await storage.get_object(source_bucket, original.stored_name)
    info = await storage.put_object(
        bucket,
        version.stored_name,
        read.body,
        content_type=request.headers.get("content-type", "binary/octet-stream"),
        user_metadata=extract_user_metadata(request),
    )
    body = copy_object_result_xml(etag=info.etag, last_modified=info.last_modified)
    return Response(body, media_type="application/xml")


async def _delete_objects(request: Request) -> Response:
    """Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html"""
    storage: Storage = request.app.state.storage
    # The caller has the credentials of this cloud.
    asked = ET.fromstring(await request.body())  # noqa: S314
    if asked.findtext(f"{{{S3_NS}}}Quiet") != "true":
        raise NotImplemented_("This server only deletes objects quietly.")
    for each in asked.iter(f"{{{S3_NS}}}Object"):
        key, version_id = (each.findtext(f"{{{S3_NS}}}{name}") for name in ("Key", "VersionId"))
        _delete(storage, request.path_params["bucket"], key or "", version_id)
    return Response(f'<DeleteResult xmlns="{S3_NS}"/>', media_type="application/xml")


def _delete(
    storage: Storage, bucket: str, key: str, version_id: str | None
) -> tuple[Version, Response]:
    """Without a version, a delete marker hides the object. With one, that version is deleted."""
    if version_id is None:
        marker = storage.add_delete_marker(bucket, key)
        return marker, Response(status_code=204, headers={"x-amz-delete-marker": "true"})
    for version in storage.versions(bucket, key):
        if version.id == version_id:
            storage.delete_object(bucket, version.stored_name)
    return Version(key, version_id), Response(status_code=204)


def _list_versions(request: Request) -> Response:
    """Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html"""
    bucket, asked = request.path_params["bucket"], request.query_params
    storage: Storage = request.app.state.storage
    limit = min(int(asked.get("max-keys", _MOST_LISTED)), _MOST_LISTED)
    after = None
    if marker := asked.get("key-marker"):
        # Without a version, the page begins after the last version of the key.
        after = f"{marker}@{asked.get('version-id-marker') or '~'}"
    versions, truncated = storage.list_versions(
        bucket, prefix=asked.get("prefix", ""), after=after, limit=limit
    )
    fields = [_tag("Name", bucket), _tag("EncodingType", "url"), _tag("MaxKeys", limit)]
    fields.append(_tag("IsTruncated", str(truncated).lower()))
    if truncated:
        last, _ = versions[-1]
        fields.append(_tag("NextKeyMarker", quote(last.key)))
        fields.append(_tag("NextVersionIdMarker", last.id))
    for version, info in versions:
        newest = storage.versions(bucket, version.key)[:1] == [version]
        described = [
            _tag("Key", quote(version.key)),
            _tag("VersionId", version.id),
            _tag("IsLatest", str(newest).lower()),
            _tag("LastModified", info.last_modified.strftime("%Y-%m-%dT%H:%M:%S.000Z")),
        ]
        if not version.is_delete_marker:
            described += [_tag("ETag", info.etag), _tag("Size", info.size)]
        kind = "DeleteMarker" if version.is_delete_marker else "Version"
        fields.append(f"<{kind}>{''.join(described)}</{kind}>")
    body = f'<ListVersionsResult xmlns="{S3_NS}">{"".join(fields)}</ListVersionsResult>'
    return Response(body, media_type="application/xml")


def _tag(name: str, content: object) -> str:
    return f"<{name}>{escape(str(content))}</{name}>"
