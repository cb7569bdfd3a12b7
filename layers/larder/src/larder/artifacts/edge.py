"""Signed addresses of the edge, the CloudFront distribution that an operator may put in front of the bucket.

The edge takes a request only with an address of this module. It carries the headers of an artifact into the object and
back, which presigned URLs of S3 cannot do (docs/edge.md#addresses). Without the edge, or without its key, clients get
presigned URLs.
"""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from larder import clock
from larder.artifacts.models import Artifact, DownloadUrl, Upload
from larder.clock import to_epoch_seconds
from larder.concurrency import in_parallel
from larder.instance import Remembered
from larder.metrics import count_in_total
from larder.settings import edge_key_file, settings

if TYPE_CHECKING:
    from larder.signing import EdgeKey

Kind = Literal["PUT", "GET"]
"""What an address is for. GET is for HEAD, too."""

_KEPT = timedelta(minutes=5)
"""How long an instance keeps the key. The operator's command waits for it before it deletes an old key."""

_TRIED_AGAIN_AFTER = timedelta(minutes=1)
"""How long an instance does without the edge if it could not read the key."""


class _Kept(NamedTuple):
    """The key, None if there is none, and how long that counts."""

    key: "EdgeKey | None"
    read_at: datetime
    counts_for: timedelta


_kept: Remembered[str, _Kept] = Remembered(1)
"""By the ARN of the secret."""


def is_deployed() -> bool:
    """Whether the deployment has an edge. It is used only if there is a key, too."""
    return bool(settings().edge_url)


@contextmanager
def reading_key() -> Generator[None, None, None]:
    """Read the key while the block runs, if that is due, so that it costs no round trip of its own."""
    if not is_deployed() or edge_key_file() or _current() is not None:
        yield
        return
    with in_parallel(_read):
        yield


def upload_address(upload: Upload, most_bytes: int) -> str | None:
    """An address that takes one PUT of the object, of at most so many bytes. None if the edge is not in use."""
    expires_s = settings().upload_url_seconds
    return _address("PUT", upload, expires_s, most_bytes=most_bytes)


def download_address(artifact: Artifact) -> DownloadUrl | None:
    """An address to GET the artifact's version. None if the edge is not in use for it."""
    if settings().edge_downloads == "tagged" and artifact.metadata.tag is None:
        return None
    expires_s = settings().download_url_seconds
    address = _address("GET", artifact.upload, expires_s, version=artifact.version)
    return None if address is None else DownloadUrl(address)


def signed_address(
    key: "EdgeKey",
    kind: Kind,
    path: str,
    *,
    expires_at: int,
    most_bytes: int | None = None,
    version: str | None = None,
) -> str:
    """The address of the object at `path`, signed by `key`. `expires_at` is in seconds since 1970.

    It has no characters that a client or the distribution could encode in another way.
    """
    most = "" if most_bytes is None else str(most_bytes)
    signed = "\n".join(["larder-edge-1", kind, path, str(expires_at), most, version or ""])
    mac = hmac.digest(key.key.encode(), signed.encode(), "sha256")
    parameters = {
        "k": key.id,
        "e": str(expires_at),
        "m": most,
        "v": version or "",
        "s": urlsafe_b64encode(mac).rstrip(b"=").decode(),
    }
    query = "&".join(f"{name}={value}" for name, value in parameters.items() if value)
    return f"{settings().edge_url}{path}?{query}"


def _address(
    kind: Kind,
    upload: Upload,
    expires_s: int,
    *,
    most_bytes: int | None = None,
    version: str | None = None,
) -> str | None:
    key = _key()
    if key is None:
        return None
    expires_at = to_epoch_seconds(clock.now()) + expires_s
    path = f"/{upload.object_key}"
    return signed_address(
        key, kind, path, expires_at=expires_at, most_bytes=most_bytes, version=version
    )


def _key() -> "EdgeKey | None":
    if not is_deployed():
        return None
    # The operator's command may have changed the file since the last request.
    kept = None if edge_key_file() else _current()
    return (kept or _read()).key


def _current() -> _Kept | None:
    kept = _kept.get(settings().signing_secret)
    # Wall-clock time, because the monotonic clock stops while Lambda freezes an instance.
    if kept is None or not timedelta() <= clock.now() - kept.read_at < kept.counts_for:
        return None
    return kept


def _read() -> _Kept:
    # Imported here, because requests start faster without it.
    from larder.deadline import short_deadline
    from larder.signing import EdgeKeyUnreadable, read_edge_key

    read_at = clock.now()
    try:
        with short_deadline():
            kept = _Kept(read_edge_key(), read_at, _KEPT)
    except EdgeKeyUnreadable:
        count_in_total("EdgeKeyUnreadable")
        kept = _Kept(None, read_at, _TRIED_AGAIN_AFTER)
    _kept[settings().signing_secret] = kept
    return kept
