"""The S3 application: nanio's signature checks, our requests and storage, and announcements.

Every bucket keeps versions, as the template's does.
"""

from __future__ import annotations

from pathlib import Path

from nanio.app import build_app
from nanio.auth.credentials import StaticCredentialResolver
from nanio.config import Settings
from nanio.errors import BucketAlreadyOwnedByYou
from nanio.storage.multipart import MultipartManager
from starlette.types import ASGIApp

# Also makes nanio keep the signing key.
import local.signatures  # noqa: F401
from local.object_storage.announcements import Announcements
from local.object_storage.requests import routes
from local.object_storage.storage import Storage
from local.template import REGION

_CHUNK_BYTES = 512 * 1024


def object_storage(
    folder: Path, buckets: list[str], credentials: tuple[str, str], *, events: Path, wake_fd: int
) -> ASGIApp:
    """The application over `folder`, with these buckets in it. `events` and `wake_fd` are those of Announcements."""
    access_key, secret_key = credentials
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    events.mkdir(mode=0o700, parents=True, exist_ok=True)
    app = build_app(
        Settings(
            data_dir=folder.resolve(),
            region=REGION,
            chunk_size=_CHUNK_BYTES,
            credentials=StaticCredentialResolver({access_key: secret_key}),
        )
    )
    storage = Storage(folder, chunk_size=_CHUNK_BYTES)
    app.state.storage = storage
    # Before nanio's own routes, and behind its check of signatures.
    app.router.routes[:0] = routes()
    for bucket in buckets:
        try:
            storage.create_bucket(bucket)
        except BucketAlreadyOwnedByYou:
            continue
    # As in the template's lifecycle rule, unfinished multipart uploads are deleted after a day.
    MultipartManager(folder.resolve()).gc_abandoned_uploads(max_age_seconds=24 * 3600)
    return Announcements(app, storage, events, wake_fd)
