"""Types of the cache: artifacts, uploads, totals."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple, NewType

from larder.actor import Actor
from larder.clock import EPOCH, from_ms
from larder.errors import InvalidValue
from larder.hashing import is_random_id
from larder.teams.models import (
    RULE_ID,
    SHARED_SCOPE,
    Membership,
    Overwrites,
    OwnerState,
    Unsigned,
)
from larder.usage.uploads import Stored, Uploads

ArtifactHash = NewType("ArtifactHash", str)
"""The hash of an artifact, chosen by the client. turbo sends 16 hexadecimal digits."""

DownloadUrl = NewType("DownloadUrl", str)
"""A presigned URL to download an artifact. It expires."""

MAX_HASH_LENGTH = 128
HASH_PATTERN = rf"[A-Za-z0-9_-]{{1,{MAX_HASH_LENGTH}}}"

NULL_VERSION = "null"
"""S3's id of the version of an object that was stored while the bucket kept no versions."""

INDEXED_BODY_BYTES = 2000
"""Bodies up to this size are also stored in the index, so that a download needs no call to S3. The whole item stays
below 4 KB, so reading it costs the same as without the body."""

HELD_BODY_BYTES = 32_768
"""Larger bodies up to this size are also in an item next to the index, which only downloads read."""

MAX_TAG_LENGTH = 600
MAX_CI_LENGTH = 50
MAX_DURATION_MS = 10**10
"""Four months: no build takes longer."""

REVISION = re.compile(r"[A-Za-z0-9]{1,128}")
PRINTABLE = re.compile(r"[\x20-\x7e]+")

_HASH = re.compile(HASH_PATTERN)
_RESERVED_PATHS = frozenset({"events", "removals", "status"})


def is_hash(text: str) -> bool:
    return text not in _RESERVED_PATHS and _HASH.fullmatch(text) is not None


def parse_hash(text: str, field_name: str = "hash") -> ArtifactHash:
    """Letters, digits, `_` and `-`, up to 128 of them. Raises InvalidValue.

    Other clients than turbo may use more than hexadecimal digits. Every hash is one safe segment of an object key and
    of a path.
    """
    if text in _RESERVED_PATHS:
        raise InvalidValue(field_name, f"must not be {text!r}: that path is reserved")
    if not _HASH.fullmatch(text):
        raise InvalidValue(
            field_name, f"must be 1 to {MAX_HASH_LENGTH} letters, digits, underscores or hyphens"
        )
    return ArtifactHash(text)


def is_tag(text: str) -> bool:
    return len(text) <= MAX_TAG_LENGTH and PRINTABLE.fullmatch(text) is not None


def is_revision(text: str) -> bool:
    return REVISION.fullmatch(text) is not None


def is_ci(text: str) -> bool:
    return len(text) <= MAX_CI_LENGTH and PRINTABLE.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactMetadata:
    """What a client sends with an upload. Empty for uploads to presigned URLs: S3 drops the client's headers."""

    duration_ms: int | None = None
    tag: str | None = None
    sha: str | None = None
    dirty_hash: str | None = None
    ci: str | None = None
    interactive: bool | None = None


def parse_writer_id(text: str) -> str:
    """The id of a writer. Raises InvalidValue.

    Existence is not checked, because the writer may have been deleted. The message does not repeat the text: the user
    may have entered the secret key itself by mistake.
    """
    if not is_random_id(text) and not RULE_ID.fullmatch(text):
        raise InvalidValue("writer", "must be the id of a key, a session, a user or a rule")
    return text


def is_own_scope(text: str) -> bool:
    return _SCOPE.fullmatch(text) is not None


def parse_scope(text: str) -> str | None:
    """The id of an own scope, None for the shared one. Raises InvalidValue."""
    if text == SHARED_SCOPE:
        return None
    if not is_own_scope(text):
        raise InvalidValue("scope", f"must be {SHARED_SCOPE} or the id of an own scope")
    return text


UPLOAD_ID_PATTERN = r"[0-9a-f]{28}(?:\.[A-Za-z0-9_-]{1,64}){0,2}"
SCOPE_PATTERN = r"[cku][A-Za-z0-9]{1,64}"
"""The id of an own scope: `c` of a CI job, `k` of a key, `u` of a user (docs/protection.md)."""
_SCOPE = re.compile(SCOPE_PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One upload of one artifact. `id` sorts by the time at which the upload began.

    `scope` is the own scope that it goes to, None for the shared one.

    The id of a direct upload also names its writer: `<id>.<key or session>.<user>`. The name of the object is the only
    information that S3 keeps for one (docs/decisions/objects.md). That of a CI
    job in a protected team ends with `-` and the version of its rule.
    """

    owner: str
    hash: ArtifactHash
    id: str
    scope: str | None = None

    @property
    def index_key(self) -> str:
        """The sort key of the artifact in the index, which is also part of the object's key."""
        return index_key(self.hash, self.scope)

    @property
    def scope_name(self) -> str:
        return self.scope or SHARED_SCOPE

    @property
    def object_key(self) -> str:
        return f"artifacts/{self.owner}/{self.index_key}/{self.id}"

    @property
    def begun_at(self) -> datetime:
        return from_ms(int(self.id[:12], 16))

    @property
    def writer(self) -> Actor | None:
        _, *writer = self.id.split(".")
        if not writer:
            return None
        credential_id, *holder = writer
        return Actor.of(credential_id, holder[0].partition("-")[0] if holder else None)

    @property
    def rule_version(self) -> int | None:
        """The version of the writer's rule when the upload was offered. None if the id does not say one."""
        _, _, version = self.id.rpartition(".")[2].partition("-")
        return int(version) if version.isdecimal() else None


def index_key(hash: ArtifactHash, scope: str | None) -> str:
    """`<hash>` in the shared scope, else `<hash>.<scope>`. No hash of a client has a dot."""
    return hash if scope is None else f"{hash}.{scope}"


def parse_index_key(key: str) -> tuple[ArtifactHash, str | None]:
    """The hash and the scope, without checks: the key is one that `index_key` made."""
    hash, _, scope = key.partition(".")
    return ArtifactHash(hash), scope or None


_OBJECT_KEY = re.compile(
    rf"artifacts/(?P<owner>[A-Za-z0-9_]+)/(?P<hash>{HASH_PATTERN})(?:\.(?P<scope>{SCOPE_PATTERN}))?"
    rf"/(?P<id>{UPLOAD_ID_PATTERN})"
)


def parse_object_key(key: str) -> Upload | None:
    """The upload that an object belongs to, or None if the key does not have Larder's format."""
    match = _OBJECT_KEY.fullmatch(key)
    if match is None:
        return None
    return Upload(
        owner=match["owner"], hash=ArtifactHash(match["hash"]), id=match["id"], scope=match["scope"]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A stored artifact: one complete object and its metadata.

    Readers get `version` of the object, whatever is uploaded to the same key later. `last_used_at` is recorded once a
    day if the deployment evicts, else only for the retention; None if no use is recorded. `body` is the body of a small
    object, which is also in the index or next to it; None if only the bucket has it, or if it was not read. `sha256` is
    the digest of the body, for an upload to the shared scope of a protected team through a function.

    `renewed_at` is when the sweep last copied the object, so that the bucket's lifecycle counts from then. Downloads
    that began before can still read `former_version`. `offered` is the id of a direct upload that was offered since,
    and may replace it.
    """

    upload: Upload
    size_bytes: int
    created_at: datetime
    version: str = NULL_VERSION
    metadata: ArtifactMetadata = field(default_factory=ArtifactMetadata)
    writer: Actor | None = None
    last_used_at: datetime | None = None
    body: bytes | None = field(default=None, repr=False)
    sha256: str | None = None
    contested: "Contested | None" = None
    renewed_at: datetime | None = None
    former_version: str | None = None
    offered: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether its body belongs next to the index."""
        return INDEXED_BODY_BYTES < self.size_bytes <= HELD_BODY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Contested:
    """Another upload that was not stored, because a protected team keeps the artifact. One a day is recorded.

    `sha256` is None for a direct upload.
    """

    at: datetime
    writer: Actor | None
    sha256: str | None


def same_upload(one: Artifact | None, other: Artifact | None) -> bool:
    """Whether both come from the same upload, or both are None."""
    return (one.upload.id if one else None) == (other.upload.id if other else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingUpload:
    """A direct upload that was offered to a client and may not have arrived yet.

    `replaces` says that it replaces an artifact even if the team keeps the first.
    """

    upload: Upload
    created_at: datetime
    writer: Actor | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """The index items of one hash: the artifact, and an offered direct upload that may replace it.

    `artifact` can be past its retention: check it with `retention.visible`. If the offered upload is not read yet,
    `unread` is the key of its item.
    """

    artifact: Artifact | None = None
    pending: PendingUpload | None = None
    unread: tuple[str, str] | None = None

    @property
    def may_be_replaced(self) -> bool:
        """Whether an offered direct upload may have arrived that replaces the artifact."""
        if self.unread is None or self.artifact is None:
            return self.pending is not None
        return self.artifact.offered is not None


class Refusal(StrEnum):
    """Why an upload was refused. The values are stored."""

    READ_ONLY = "read_only"
    SIGNATURE_REQUIRED = "signature_required"
    QUOTA_FULL = "quota_full"
    SCOPES_FULL = "scopes_full"
    STORAGE_FULL = "storage_full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What an owner stores, and the uploads of each day that the sweep has not moved to the usage table yet.

    `scoped_bytes` is the part of `size_bytes` that is in own scopes.
    """

    size_bytes: int = 0
    artifacts: int = 0
    scoped_bytes: int = 0
    uploads: Mapping[date, Uploads] = field(default_factory=dict, compare=False)

    @property
    def stored(self) -> Stored:
        return Stored(
            size_bytes=self.size_bytes, artifacts=self.artifacts, scoped_bytes=self.scoped_bytes
        )


MANIFESTS = ("ccache-", "moon-ac-", "bazel-ac-")
"""The hashes of build tools that store another manifest under the same hash when its headers or blobs have changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a credential sees of its owner's artifacts, and where its uploads go.

    With a `scope` of its own, it writes there, and reads the shared scope first. `scope_name` is the name of its key or
    job. Without one, it reads and writes the shared scope alone. Of the shared scope, it sees only uploads that began
    at `trusted_from` or later. With `keeps_first`, an upload to the shared scope does not replace an artifact that
    readers see, unless the uploader `may_replace` or it is one of MANIFESTS. With `requires_tag`, it stores and sees
    only signed artifacts. `rule_version` is that of the rule of a CI job. `quota_bytes` is how much the owner can
    store, None for no limit. With `most_bytes`, it sees only artifacts of at most this size, and gets each from a
    function: a URL of S3 can be used again and again.
    """

    scope: str | None = None
    scope_name: str | None = None
    trusted_from: datetime = EPOCH
    is_protected: bool = False
    keeps_first: bool = False
    may_replace: bool = False
    requires_tag: bool = False
    rule_version: int | None = None
    quota_bytes: int | None = None
    most_bytes: int | None = None

    def shows(self, artifact: Artifact) -> bool:
        if self.most_bytes is not None and artifact.size_bytes > self.most_bytes:
            return False
        if self.requires_tag and artifact.metadata.tag is None:
            return False
        upload = artifact.upload
        return upload.scope is not None or upload.begun_at >= self.trusted_from

    def keeps_first_of(self, hash: str, scope: str | None) -> bool:
        """Whether the first upload of this hash stays in this scope."""
        return self.keeps_first and scope is None and not hash.startswith(MANIFESTS)

    def begins(self, now: datetime) -> datetime:
        """When an upload of this view begins. For readers, a trusted one counts as soon as the team is protected.

        `trusted_from` is ahead by seconds, because of requests that have read the team before it was protected.
        """
        return max(now, self.trusted_from) if self.is_protected and self.scope is None else now


UNPROTECTED = View()
"""The view of every credential of an owner without protection and quota: there is one scope."""


def view_of(
    state: OwnerState,
    scope: str | None,
    *,
    scope_name: str | None = None,
    may_replace: bool = False,
    rule_version: int | None = None,
) -> View:
    """The view of a credential. `scope` is its own scope in a protected team, None if it is trusted."""
    protection, quota_bytes = state.protection, state.quota_bytes
    requires_tag = protection.unsigned is Unsigned.REFUSE
    if not protection.on:
        return View(requires_tag=requires_tag, quota_bytes=quota_bytes)
    return View(
        scope=scope,
        scope_name=scope_name,
        trusted_from=protection.trusted_from,
        is_protected=True,
        keeps_first=protection.overwrites is Overwrites.KEEP,
        may_replace=may_replace,
        requires_tag=requires_tag,
        rule_version=rule_version,
        quota_bytes=quota_bytes,
    )


class Wanted(NamedTuple):
    """What a request reads in addition to its key or session: the entry of a hash, also with its body or with the
    offered upload, and the totals.
    """

    hash: ArtifactHash | None = None
    body: bool = False
    totals: bool = False
    pending: bool = False


class RequestItems(NamedTuple):
    """What a request reads in addition to its key or session. `own` is the entry in the credential's own scope."""

    membership: Membership
    entry: IndexEntry
    totals: Totals
    own: IndexEntry = IndexEntry()


class CacheRequest(NamedTuple):
    """What `writer` asks of the artifact with this hash, and what is stored there.

    `entry` is that of the shared scope, and `own` that of the scope of `view`. `now` is a moment before the request
    read them, because the id of an upload decides whether readers trust it.
    """

    owner: str
    hash: ArtifactHash
    writer: Actor
    view: View
    now: datetime
    entry: IndexEntry = IndexEntry()
    own: IndexEntry = IndexEntry()
    totals: Totals = Totals()

    @property
    def replaces(self) -> Artifact | None:
        """The artifact where the view writes."""
        return (self.entry if self.view.scope is None else self.own).artifact


class QueryResult(NamedTuple):
    """The result of one query: an artifact or None for each hash, and the hashes whose look-up failed."""

    found: Mapping[str, Artifact | None]
    failed: frozenset[ArtifactHash] = frozenset()
