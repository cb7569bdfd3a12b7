"""An EventBridge event for every object that arrives, as S3 sends it with `EventBridgeEnabled`.

The event is written to a file before the reply to the upload, and deleted when a function has handled it
(local/event_delivery.py). As with S3, it is delivered at least once, even across a restart.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from nanio.errors import NoSuchKey
from nanio.storage.backend import ObjectInfo
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from local.object_storage.requests import COPY_HEADER, VERSION_HEADER
from local.object_storage.storage import Storage
from local.object_storage.versions import NoSuchVersion, Version
from local.template import ACCOUNT_ID, REGION


class Announcements:
    """ASGI middleware that announces the objects stored by the application behind it."""

    def __init__(self, app: ASGIApp, storage: Storage, folder: Path, wake_fd: int) -> None:
        """`folder` takes the events; a byte is written to the pipe `wake_fd` after each."""
        self._app = app
        self._storage = storage
        self._folder = folder
        self._wake_fd = wake_fd

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stored = _stored_object(scope)
        if stored is None:
            await self._app(scope, receive, send)
            return

        async def announce_then_send(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                # The object has been deleted since.
                version_id = MutableHeaders(scope=message)[VERSION_HEADER]
                with contextlib.suppress(NoSuchKey, NoSuchVersion):
                    self._announce(*stored, version_id)
            await send(message)

        await self._app(scope, receive, announce_then_send)

    def _announce(self, bucket: str, key: str, reason: str, version_id: str) -> None:
        version = self._storage.find(bucket, key, version_id)
        info = self._storage.head_object(bucket, version.stored_name)
        event = object_created(bucket, version, info, reason)
        # Named by time, so that they are delivered roughly in order of the uploads.
        path = self._folder / f"{event['time']}-{event['id']}.json"
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(event), encoding="utf-8")
        unfinished.rename(path)
        # If the pipe is full, its reader is awake already.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(self._wake_fd, b"\n")


def object_created(bucket: str, version: Version, info: ObjectInfo, reason: str) -> dict[str, Any]:
    """The event of one version. `reason` is the S3 operation, such as PutObject.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    """
    now = datetime.now(tz=UTC)
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Object Created",
        "source": "aws.s3",
        "account": ACCOUNT_ID,
        "time": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "region": REGION,
        "resources": [f"arn:aws:s3:::{bucket}"],
        "detail": {
            "version": "0",
            "bucket": {"name": bucket},
            "object": {
                "key": version.key,
                "size": info.size,
                "etag": info.etag.strip('"'),
                "version-id": version.id,
                # Later uploads of one key compare greater, as S3 promises.
                "sequencer": f"{int(now.timestamp() * 1_000_000):018X}",
            },
            "request-id": uuid.uuid4().hex[:16].upper(),
            "requester": ACCOUNT_ID,
            "source-ip-address": "127.0.0.1",
            "reason": reason,
        },
    }


def _stored_object(scope: Scope) -> tuple[str, str, str] | None:
    """(bucket, key, operation) when this request, if it succeeds, completes an object."""
    if scope["type"] != "http":
        return None
    bucket, _, key = unquote(scope["raw_path"].decode("ascii")).removeprefix("/").partition("/")
    if not bucket or not key:
        return None
    parameters = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if scope["method"] == "PUT" and "partNumber" not in parameters:
        is_copy = COPY_HEADER.encode() in dict(scope["headers"])
        return bucket, key, "CopyObject" if is_copy else "PutObject"
    if scope["method"] == "POST" and "uploadId" in parameters:
        return bucket, key, "CompleteMultipartUpload"
    return None
