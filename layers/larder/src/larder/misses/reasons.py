"""Why a task was built although a run before had its hash."""

from enum import StrEnum


class Reason(StrEnum):
    """In the order in which they are looked for. The first that has its evidence is the reason."""

    NOT_CACHED = "not_cached"
    """`cache` is false."""
    TOO_LARGE = "too_large"
    """The artifact has more bytes than a function accepts, and turbo sent it without preflight."""
    NOT_ASKED = "not_asked"
    """turbo did not ask: `--force`, the remote cache is off, or there is no token."""
    UNUSABLE = "unusable"
    """Larder had the artifact, and turbo could not use the answer: signature, error or connection."""
    AT_ONCE = "at_once"
    """Another run built it at the same time."""
    OTHER_SCOPE = "other_scope"
    """It is only in a scope that the credential does not read."""
    HIDDEN = "hidden"
    """Artifacts from before a date are hidden."""
    CACHING_OFF = "caching_off"
    """Caching was paused or disabled."""
    DELETED = "deleted"
    EXPIRED = "expired"
    EVICTED = "evicted"
    REFUSED = "refused"
    """The upload was refused: the credential only reads, the quota is full, or the team requires signatures."""
    UNKNOWN = "unknown"


class Evidence(StrEnum):
    """What a reason follows from."""

    NOT_CACHED = "not_cached"
    BYTES = "bytes"
    NO_EVENT = "no_event"
    LOCAL_MISS = "local_miss"
    REMOTE_MISS = "remote_miss"
    REMOTE_HIT = "remote_hit"
    STORED = "stored"
    NOT_STORED = "not_stored"
    UPLOADED = "uploaded"
    OVERLAP = "overlap"
    TRUSTED_FROM = "trusted_from"
    AUDIT = "audit"
    RETENTION = "retention"
    EVICTED_BEFORE = "evicted_before"
    READ_ONLY = "read_only"
    QUOTA_FULL = "quota_full"
    SIGNATURE_REQUIRED = "signature_required"
