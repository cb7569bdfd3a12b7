"""The vocabulary of the cache: what an artifact is and what a client may say about one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NewType

from larder.clock import from_ms
from larder.errors import InvalidRequest
from larder.hashing import is_random_id
from larder.usage.uploads import Uploads

ArtifactHash = NewType("ArtifactHash", str)
"""A hash as a client names it. The build client's are 16 hexadecimal digits."""

DownloadUrl = NewType("DownloadUrl", str)
"""A presigned URL that serves an artifact for a while."""

MAX_HASH_LENGTH = 128
HASH_PATTERN = rf"[A-Za-z0-9_-]{{1,{MAX_HASH_LENGTH}}}"

INDEXED_BODY_BYTES = 2000
"""Up to this size a body stands in the index beside its object, so that who fetches it needs not ask S3. With all else
that an item holds it stays below 4 KB: reading it costs no more than it did without."""

_HASH = re.compile(HASH_PATTERN)
_PATHS_OF_THEIR_OWN = frozenset({"events", "status"})


def is_hash(text: str) -> bool:
    """Whether an artifact can have this hash."""
    return text not in _PATHS_OF_THEIR_OWN and _HASH.fullmatch(text) is not None


def parse_hash(text: str, field_name: str = "hash") -> ArtifactHash:
    """Letters, digits, `_` and `-`, up to 128 of them. Raises InvalidRequest.

    Wider than the build client's own hexadecimal, for other clients. Narrow enough to be one segment of
    an object key and of a path, whatever a client sends.
    """
    if text in _PATHS_OF_THEIR_OWN:
        raise InvalidRequest(field_name, f"must not be {text!r}: that path has another meaning")
    if not _HASH.fullmatch(text):
        raise InvalidRequest(
            field_name, f"must be 1 to {MAX_HASH_LENGTH} letters, digits, underscores or hyphens"
        )
    return ArtifactHash(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactMetadata:
    """What a client sends with an upload. Empty for direct uploads: S3 drops the client's headers."""

    duration_ms: int | None = None
    tag: str | None = None
    sha: str | None = None
    dirty_hash: str | None = None
    ci: str | None = None
    interactive: bool | None = None


@dataclass(frozen=True, slots=True)
class Writer:
    """Who uploaded: the id of the key or session, and the user; None for uploads from before users were noted."""

    id: str
    user_id: str | None = None

    def goes_by(self, id: str) -> bool:
        """Whether `id` is the key's or session's, or the user's."""
        return id in (self.id, self.user_id)


def parse_writer_id(text: str) -> str:
    """What a writer goes by. Nothing else tells a slip: keys and users that wrote may be gone. Raises InvalidRequest.

    It may be the key itself that somebody gives by mistake: the message does not repeat it.
    """
    if not is_random_id(text):
        raise InvalidRequest(
            "writer", "must be the id of a key, a session or a user, 32 letters and digits"
        )
    return text


UPLOAD_ID_PATTERN = r"[0-9a-f]{28}(?:\.[A-Za-z0-9_-]{1,64}){0,2}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One upload of one artifact. `id` sorts by the time at which the upload was begun.

    That of an upload straight to S3 ends with who was given leave to make it: `<id>.<key or session>.<user>`. The name
    of the object is all that S3 keeps of what Larder says about it (docs/decisions/0020).
    """

    owner: str
    hash: ArtifactHash
    id: str

    @property
    def object_key(self) -> str:
        return f"artifacts/{self.owner}/{self.hash}/{self.id}"

    @property
    def begun_at(self) -> datetime:
        return from_ms(int(self.id[:12], 16))

    @property
    def writer(self) -> Writer | None:
        _, *writer = self.id.split(".")
        return Writer(*writer) if writer else None


_OBJECT_KEY = re.compile(
    rf"artifacts/(?P<owner>[A-Za-z0-9_]+)/(?P<hash>{HASH_PATTERN})/(?P<id>{UPLOAD_ID_PATTERN})"
)


def parse_object_key(key: str) -> Upload | None:
    """The upload that an object belongs to, or None for an object that Larder did not name."""
    match = _OBJECT_KEY.fullmatch(key)
    if match is None:
        return None
    return Upload(owner=match["owner"], hash=ArtifactHash(match["hash"]), id=match["id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A stored artifact: one complete object and what is known of it.

    `last_used_at` is noted once a day, and only where the deployment evicts; None where it is not known. `body` is the
    object's, kept in the index as well where it is small; None where only the bucket has it.
    """

    upload: Upload
    size_bytes: int
    created_at: datetime
    metadata: ArtifactMetadata = field(default_factory=ArtifactMetadata)
    writer: Writer | None = None
    last_used_at: datetime | None = None
    body: bytes | None = field(default=None, repr=False)


def same_upload(one: Artifact | None, other: Artifact | None) -> bool:
    """Whether both are of one upload, or neither is anything."""
    return (one.upload.id if one else None) == (other.upload.id if other else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpload:
    """A direct upload that was offered to a client and of which nothing is known yet."""

    upload: Upload
    created_at: datetime
    writer: Writer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unused:
    """An artifact as the index of last uses knows it, which may lag behind what is stored."""

    upload: Upload
    size_bytes: int
    last_used_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSum:
    """What an owner's artifacts in the index come to. `unlisted` of them are not in the index of last uses."""

    totals: "Totals"
    unlisted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactPage:
    """Some of an owner's artifacts, by hash, and after what the next page begins; None after the last one.

    A page may hold fewer than were asked for, even none, and not be the last.
    """

    artifacts: tuple[Artifact, ...]
    following: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """All that a writer uploaded is to go: what a key, session or user has begun to upload by `asked_at`.

    `by` is who asked; None for the operator at the command line.
    """

    owner: str
    writer: str
    asked_at: datetime
    by: Writer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """What the index holds of one hash: what readers see, and a direct upload that may replace it.

    `artifact` may be past its retention: readers ask `retention.visible`.
    """

    artifact: Artifact | None = None
    pending: PendingUpload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What an owner stores, and what was uploaded on each day that the sweep has not handed to the usage table yet."""

    size_bytes: int = 0
    artifacts: int = 0
    uploads: Mapping[date, Uploads] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object as S3 knows it. It has a writer when it came through a function."""

    size_bytes: int
    stored_at: datetime
    metadata: ArtifactMetadata
    writer: Writer | None


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The answer to one query: an artifact or None for each hash, and the hashes that could not be looked up."""

    found: Mapping[str, Artifact | None]
    failed: frozenset[ArtifactHash] = frozenset()
