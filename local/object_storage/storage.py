"""nanio's storage with the guarantees that a build cache needs.

An object exists with its metadata or not at all, even if the process is killed. Unfinished uploads never show in a
listing. A reader keeps the object that it began to read. Parallel writes and deletions in one folder do not disturb
each other. The disk is flushed in a thread, so that a large upload does not delay other requests.

Every object is a version and never changes: to nanio it is an object of its own, named `<key>@<version>`
(versions.py). Only this process writes to the folder, so it keeps the versions of each key in memory: a folder can hold
every artifact of a team, and reading it at each request takes longer with each.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import threading
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

from nanio.errors import BadDigest, NoSuchKey, NotImplemented_, PreconditionFailed
from nanio.etag import StreamingMd5, quote_etag
from nanio.keys import validate_object_key
from nanio.storage.backend import GetObjectResult, ListResult, ObjectInfo
from nanio.storage.filesystem import FilesystemStorage, _b64md5_to_hex
from nanio.storage.metadata import write_metadata
from nanio.storage.paths import META_DIR_NAME, metadata_path, object_path

from local.object_storage.versions import (
    NULL_VERSION,
    NoSuchVersion,
    Version,
    new_version,
    parse_stored_name,
)

_VERSIONED = Path(".nanio") / "versioned"
"""Exists when every object in the folder is a version."""
_UNFINISHED = Path(".nanio") / "unfinished"
_TRIES = 20

_first_of: ContextVar[str | None] = ContextVar("first_of", default=None)
"""The key that must not exist when the upload of this context is published."""


@contextlib.contextmanager
def only_first(
    storage: Storage, bucket: str, key: str, if_none_match: str | None
) -> Iterator[None]:
    """With `If-None-Match: *`, let an upload in the block succeed only if the key does not exist.

    S3 knows no other value. Raises PreconditionFailed, at once if it exists already.
    """
    if if_none_match is None:
        yield
        return
    if if_none_match != "*":
        raise NotImplemented_("If-None-Match can only be *.")
    storage.check_absent(bucket, key)
    token = _first_of.set(key)
    try:
        yield
    finally:
        _first_of.reset(token)


class Storage(FilesystemStorage):  # type: ignore[misc]  # nanio has no types
    """Files under one folder: a folder per bucket, a file per object, and a JSON file with its metadata."""

    def __init__(self, folder: Path, *, chunk_size: int) -> None:
        super().__init__(folder, chunk_size=chunk_size)
        self._chunk_bytes = chunk_size
        self._folder: Path = self.data_dir
        # Reentrant, because a publication also notes its version.
        self._publishing = threading.RLock()
        self._versions: dict[tuple[str, str], list[Version]] = {}
        # Uploads that were interrupted by a kill.
        shutil.rmtree(self._folder / _UNFINISHED, ignore_errors=True)
        (self._folder / _UNFINISHED).mkdir(parents=True)
        if not (self._folder / _VERSIONED).exists():
            self._make_all_versions()
            (self._folder / _VERSIONED).touch()
        for bucket, stored_name in self._stored_names():
            self._note(bucket, parse_stored_name(stored_name))

    def versions(self, bucket: str, key: str) -> list[Version]:
        """The versions and delete markers of one key, newest first."""
        validate_object_key(key)
        return list(self._versions.get((bucket, key), ()))

    def find(self, bucket: str, key: str, version_id: str | None) -> Version:
        """The version of this id, or the current one. Raises NoSuchKey, NoSuchVersion."""
        versions = self.versions(bucket, key)
        if version_id is None:
            if not versions or versions[0].is_delete_marker:
                raise NoSuchKey(resource=f"{bucket}/{key}")
            return versions[0]
        for version in versions:
            if version.id == version_id:
                return version
        raise NoSuchVersion(resource=f"{bucket}/{key}")

    def check_absent(self, bucket: str, key: str) -> None:
        """Raises PreconditionFailed if the key has a current version."""
        versions = self.versions(bucket, key)
        if versions and not versions[0].is_delete_marker:
            raise PreconditionFailed(resource=f"{bucket}/{key}")

    def add_version(self, bucket: str, key: str) -> Version:
        """Make a version of an object that nanio has stored under its key, as after a multipart upload."""
        version = new_version(key)
        self._rename(bucket, key, version)
        return version

    def add_delete_marker(self, bucket: str, key: str) -> Version:
        self._require_bucket_dir(bucket)
        marker = new_version(key, is_delete_marker=True)
        path = object_path(self._folder, bucket, marker.stored_name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._note(bucket, marker)
        return marker

    def delete_object(self, bucket: str, key: str) -> None:
        """Delete a version by its stored name."""
        super().delete_object(bucket, key)
        if version := parse_stored_name(key):
            with self._publishing:
                known = self._versions.get((bucket, version.key), [])
                if left := [other for other in known if other != version]:
                    self._versions[bucket, version.key] = left
                else:
                    self._versions.pop((bucket, version.key), None)

    def list_objects(self, bucket: str, **options: Any) -> ListResult:
        """The current versions. A page may have fewer than `max_keys`."""
        page = super().list_objects(bucket, **options)
        page.contents = [
            replace(info, key=version.key)
            for info in page.contents
            if (version := parse_stored_name(info.key)) is not None
            and not version.is_delete_marker
            and self.versions(bucket, version.key)[:1] == [version]
        ]
        return page

    def list_versions(
        self, bucket: str, *, prefix: str, after: str | None, limit: int
    ) -> tuple[list[tuple[Version, ObjectInfo]], bool]:
        """A page of all versions and delete markers by key, newest first, and whether more follow.

        `after` is the stored name of the last version on the previous page.
        """
        page = super().list_objects(bucket, prefix=prefix, start_after=after, max_keys=limit)
        named = [(parse_stored_name(info.key), info) for info in page.contents]
        found = [(version, info) for version, info in named if version is not None]
        return found, page.is_truncated

    async def put_object(
        self,
        bucket: str,
        key: str,
        body: AsyncIterator[bytes],
        *,
        content_type: str = "application/octet-stream",
        user_metadata: Mapping[str, str] | None = None,
        content_encoding: str | None = None,
        content_disposition: str | None = None,
        cache_control: str | None = None,
        expected_md5: str | None = None,
    ) -> ObjectInfo:
        """Store `body` under `key`. Raises S3Error. Nothing is stored if the body ends early."""
        self._require_bucket_dir(bucket)
        validate_object_key(key)
        upload = self._folder / _UNFINISHED / uuid.uuid4().hex
        try:
            digest = None if expected_md5 is None else StreamingMd5()
            size = await _receive(body, upload, digest)
            if digest and _b64md5_to_hex(expected_md5) != digest.hexdigest():
                raise BadDigest
            info = ObjectInfo(
                key=key,
                size=size,
                # As in S3 with KMS encryption, the ETag depends on the content but is not its digest.
                etag=quote_etag(uuid.uuid4().hex),
                last_modified=datetime.now(tz=UTC),
                content_type=content_type,
                user_metadata=dict(user_metadata or {}),
                content_encoding=content_encoding,
                content_disposition=content_disposition,
                cache_control=cache_control,
            )
            await asyncio.to_thread(self._publish, bucket, key, upload, info)
        finally:
            upload.unlink(missing_ok=True)
        return info

    async def get_object(
        self,
        bucket: str,
        key: str,
        *,
        range_start: int | None = None,
        range_end: int | None = None,
    ) -> GetObjectResult:
        """The opened object. Deleting it afterwards does not affect the reader."""
        result = await super().get_object(bucket, key, range_start=range_start, range_end=range_end)
        file = self._open(bucket, key)
        start = result.range_start or 0
        end = result.info.size if result.range_end is None else result.range_end + 1
        result.body = _send(file, start, end, self._chunk_bytes)
        return result

    def _open(self, bucket: str, key: str) -> BinaryIO:
        path = object_path(self._folder, bucket, key)
        try:
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")
        except FileNotFoundError:
            raise NoSuchKey(resource=f"{bucket}/{key}") from None

    def _publish(self, bucket: str, key: str, upload: Path, info: ObjectInfo) -> None:
        described = upload.with_suffix(".json")
        write_metadata(described, info)
        first_of = _first_of.get()
        with self._publishing if first_of is not None else contextlib.nullcontext():
            if first_of is not None:
                self.check_absent(bucket, first_of)
            # Metadata first, because the object exists as soon as its own file does.
            _move(described, metadata_path(self._folder, bucket, key))
            _move(upload, object_path(self._folder, bucket, key))
            self._note(bucket, parse_stored_name(key))

    def _note(self, bucket: str, version: Version | None) -> None:
        """Add a version to those of its key. None is an object without one, as nanio stores a multipart upload."""
        if version is None:
            return
        with self._publishing:
            known = self._versions.get((bucket, version.key), [])
            newest_first = sorted([*known, version], key=attrgetter("stored_name"))
            self._versions[bucket, version.key] = newest_first

    def _rename(self, bucket: str, key: str, version: Version) -> None:
        described = metadata_path(self._folder, bucket, key)
        if described.exists():
            _move(described, metadata_path(self._folder, bucket, version.stored_name))
        stored = object_path(self._folder, bucket, version.stored_name)
        _move(object_path(self._folder, bucket, key), stored)
        self._note(bucket, version)

    def _make_all_versions(self) -> None:
        """Give every object from before versions the version `null`, as S3 does. Safe to repeat after a crash."""
        for bucket, key in self._stored_names():
            if parse_stored_name(key) is None:
                self._rename(bucket, key, Version(key, NULL_VERSION))

    def _stored_names(self) -> Iterator[tuple[str, str]]:
        """Every object in the folder, as bucket and name."""
        for bucket in self.list_buckets():
            root = self._folder / bucket.name
            for folder, folders, names in os.walk(root):
                if META_DIR_NAME in folders:
                    folders.remove(META_DIR_NAME)
                for name in names:
                    yield bucket.name, (Path(folder) / name).relative_to(root).as_posix()


def _move(source: Path, target: Path) -> None:
    # Deleting the last object of a folder also deletes the folder, perhaps just after it was created here.
    for _ in range(_TRIES):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            source.replace(target)
            return
        except FileNotFoundError:
            continue
    source.replace(target)


async def _receive(body: AsyncIterator[bytes], upload: Path, digest: StreamingMd5 | None) -> int:
    """Write the body to the disk and, when there is one, add it to the digest. Returns its size."""
    size = 0
    with upload.open("xb") as file:
        async for chunk in body:
            if digest:
                digest.update(chunk)
            size += file.write(chunk)
        file.flush()
        await asyncio.to_thread(os.fsync, file.fileno())
    return size


async def _send(file: BinaryIO, start: int, end: int, chunk_bytes: int) -> AsyncIterator[bytes]:
    # If the reader disconnects before the first chunk, this never runs, and the file closes with its last reference.
    with file:
        while start < end:
            wanted = min(chunk_bytes, end - start)
            chunk = await asyncio.to_thread(os.pread, file.fileno(), wanted, start)
            if not chunk:
                return
            yield chunk
            start += len(chunk)
