"""What `larder edge enable` checks on the live edge before functions use it (docs/edge.md#probes).

Nobody could run CloudFront with this code before a release, so each assumption about it is a probe. Most failures leave
the edge off. The others change how the edge is used, or only warn.
"""

import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any
from urllib.parse import urlsplit

from larder import aws, clock
from larder.actor import Actor
from larder.artifacts import edge, publish, storage
from larder.artifacts.models import ArtifactHash, PendingUpload, Upload
from larder.artifacts.repository import index
from larder.hashing import time_ordered_id
from larder.signing import EdgeKey
from larder_cli.edge.switch import Switch
from larder_cli.http import Answer, exchange
from larder_cli.outcomes import Failed, NotTried

ONCE = "once"
UNSIGNED = "unsigned"

OWNER = "larderedgeprobe"
"""The owner of the objects that probes store. No user or team has this id."""

TAG = "Tc0BmHvJYMIYJ62/zx87YqO0Flxk+5Ovip25NY825CQ="
SENT = {
    "x-artifact-tag": TAG,
    "x-artifact-duration": "1831",
    "x-artifact-sha": "a" * 40,
    "x-artifact-dirty-hash": "b" * 40,
    "x-artifact-client-ci": "GITHUB_ACTIONS",
    "x-artifact-client-interactive": "1",
}
STORED = {
    "tag": TAG,
    "duration-ms": "1831",
    "sha": "a" * 40,
    "dirty-hash": "b" * 40,
    "ci": "GITHUB_ACTIONS",
    "interactive": "1",
}
SMALL_BYTES = 1024
ADDRESS_LIVES = timedelta(minutes=10)
SLOW_TIMEOUT_S = 600.0
HIGH_UTILIZATION, MOST_UTILIZATION = 50, 80
"""Percent of the compute time that CloudFront allows a function. The probe warns from 50, and fails from 80."""
SAMPLES = 5
"""Of each event. The median counts, because the time of a single run varies with the machine."""

REACHES_EDGE_WITHIN_S = 60.0
"""How fast a change of the store should reach the edge. A slower one only warns."""
GIVE_UP_AFTER_S = 300.0
PUBLISHED_WITHIN_S = 60.0
_PAUSE_S = 0.5

_PIECE = os.urandom(65_536)


TestFunction = Callable[[dict[str, Any]], tuple[dict[str, Any], int]]
"""Runs the request function of the live distribution with an event. Returns its result and its compute utilization."""


class Effect(Enum):
    """What a failed probe changes."""

    REFUSES = "the edge stays off"
    WITHOUT_ONCE = (
        "the edge is used without `once`: an address can store more than one object, as S3's can"
    )
    WARNS = "the edge is used"


@dataclass(kw_only=True)
class Probing:
    """The edge, the key that it is probed with, and what the probes have stored."""

    url: str
    switch: Switch
    key: EdgeKey
    flags: tuple[str, ...]
    large_bytes: int
    slow_s: float
    test_function: TestFunction | None
    """None on a local cloud."""
    uploads: list[PendingUpload] = field(default_factory=list)
    change_took_s: float = 0.0
    """The longest time in which a change of the store reached the edge."""

    def new_upload(self) -> Upload:
        """An announced upload, so that S3's event publishes it like any other."""
        now, writer = clock.now(), Actor("edgeprobe", "edgeprobe")
        id = f"{time_ordered_id(now)}.{writer.credential_id}.{writer.user_id}"
        upload = Upload(owner=OWNER, hash=ArtifactHash(secrets.token_hex(8)), id=id)
        pending = PendingUpload(upload=upload, created_at=now, writer=writer)
        index.put_pending(pending)
        self.uploads.append(pending)
        return upload

    def address(
        self,
        kind: edge.Kind,
        upload: Upload,
        *,
        most: int | None = None,
        key: EdgeKey | None = None,
        lives: timedelta = ADDRESS_LIVES,
    ) -> str:
        expires_at = clock.to_epoch_seconds(clock.now() + lives)
        return edge.signed_address(
            key or self.key,
            kind,
            f"/{upload.object_key}",
            expires_at=expires_at,
            most_bytes=(SMALL_BYTES if most is None else most) if kind == "PUT" else None,
        )

    def put(self, upload: Upload, body: bytes, **more: Any) -> Answer:
        address = self.address("PUT", upload, most=max(len(body), 1))
        return send("PUT", address, body, **more)

    def get(self, upload: Upload, method: str = "GET") -> Answer:
        return send(method, self.address("GET", upload))


def send(
    method: str,
    url: str,
    body: bytes | Iterator[bytes] = b"",
    headers: dict[str, str] | None = None,
    **more: Any,
) -> Answer:
    sent = {"User-Agent": "larder-edge", **SENT} if method == "PUT" else {}
    answer = exchange(method, url, body=body, headers={**sent, **(headers or {})}, **more)
    if answer.status == 307:
        raise Failed(
            "307: S3 redirects to another host",
            "the bucket is younger than a day: wait 24 hours and try again (U14)",
        )
    return answer


def wait_until(condition: Callable[[], bool], timeout_s: float) -> float | None:
    """The seconds until the condition holds, or None if it does not within `timeout_s`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > timeout_s:
            return None
        time.sleep(_PAUSE_S)
    return time.monotonic() - began


def is_accepted(probing: Probing, key: EdgeKey) -> bool:
    """Whether the edge knows the key: then a GET of an object that does not exist gets S3's own error."""
    now = clock.now()
    upload = Upload(owner=OWNER, hash=ArtifactHash("0" * 16), id=time_ordered_id(now))
    return not _is_refusal(send("GET", probing.address("GET", upload, key=key)))


def accepted_within(probing: Probing, key: EdgeKey) -> float:
    """Wait until the edge knows the key. Raises Failed."""
    took = wait_until(lambda: is_accepted(probing, key), GIVE_UP_AFTER_S)
    if took is None:
        raise Failed(
            f"the edge does not know the new key after {GIVE_UP_AFTER_S:.0f} s",
            "check that the distribution is deployed and uses the key-value store of this stack",
        )
    probing.change_took_s = max(probing.change_took_s, took)
    return took


def _is_refusal(answer: Answer) -> bool:
    """Whether the edge itself refuses the address."""
    error = answer.json.get("error") if isinstance(answer.json, dict) else None
    return (
        answer.status == 404
        and isinstance(error, dict)
        and error.get("code") in ("no_such_address", "address_expired")
    )


def _expect(status: int, answer: Answer, advice: str) -> Answer:
    if answer.status != status:
        text = " ".join(answer.body[:120].decode(errors="replace").split())
        raise Failed(f"{answer.status} instead of {status}: {text}", advice)
    return answer


def _stored(upload: Upload) -> dict[str, Any] | None:
    """The object as S3 has it, or None."""
    from larder.settings import settings

    try:
        return dict(aws.s3().head_object(Bucket=settings().artifacts_bucket, Key=upload.object_key))
    except aws.ClientError as error:
        if aws.error_code(error) in ("404", "NoSuchKey", "NotFound"):
            return None
        raise


_REPORT = "this release cannot use the edge here: keep it off, and report the result of the probe"


def function_passes_its_vectors(probing: Probing) -> str:
    if probing.test_function is None:
        raise NotTried("only CloudFront has TestFunction; tests run the same code locally")
    upload, most = probing.new_upload(), 0
    for event, expected in _vectors(probing, upload):
        utilizations: list[int] = []
        for _ in range(SAMPLES):
            result, utilization = probing.test_function(event)
            utilizations.append(utilization)
            status = result.get("response", {}).get("statusCode", 200)
            if status != expected:
                raise Failed(f"a test event gets {status} instead of {expected}", _REPORT)
        most = max(most, sorted(utilizations)[SAMPLES // 2])
    if most >= MOST_UTILIZATION:
        raise Failed(f"the function uses {most} % of its compute time", _REPORT)
    warning = "" if most < HIGH_UTILIZATION else ", which is much: please report it"
    return f"{most} % of the compute time{warning}"


def _vectors(probing: Probing, upload: Upload) -> Iterator[tuple[dict[str, Any], int]]:
    length = {"content-length": "100"}
    put = probing.address("PUT", upload, most=100)
    get = probing.address("GET", upload)
    expired = probing.address("GET", upload, lives=timedelta(seconds=-5))
    yield _event("PUT", put, {**length, **SENT}), 200
    yield _event("PUT", put, {"content-length": "101"}), 413
    yield _event("PUT", put, {"transfer-encoding": "chunked"}), 411
    yield _event("PUT", put, {**length, "x-artifact-tag": "x" * 601}), 400
    yield _event("PUT", get, length), 404
    yield _event("GET", get, {}), 200
    yield _event("GET", expired, {}), 404
    yield _event("DELETE", get, {}), 404


def _event(method: str, address: str, headers: dict[str, str]) -> dict[str, Any]:
    url = urlsplit(address)
    query = dict(pair.split("=", 1) for pair in url.query.split("&"))
    return {
        "version": "1.0",
        "context": {"eventType": "viewer-request"},
        "viewer": {"ip": "192.0.2.1"},
        "request": {
            "method": method,
            "uri": url.path,
            "querystring": {name: {"value": value} for name, value in query.items()},
            "headers": {name: {"value": value} for name, value in headers.items()},
            "cookies": {},
        },
    }


def upload_is_stored(probing: Probing) -> str:
    """An upload without a hash of its content. If S3 refuses it, the function names none (`unsigned`)."""
    answer = probing.put(probing.new_upload(), os.urandom(SMALL_BYTES))
    if answer.status == 403 and UNSIGNED not in probing.flags:
        probing.flags = (*probing.flags, UNSIGNED)
        probing.switch.set_flags(probing.key, probing.flags)

        def is_stored() -> bool:
            return probing.put(probing.new_upload(), os.urandom(SMALL_BYTES)).status == 200

        if wait_until(is_stored, max(2 * probing.change_took_s, 5.0)) is not None:
            return "with the flag `unsigned`"
    _expect(200, answer, "S3 does not accept uploads of the distribution: check the bucket policy")
    return ""


def metadata_are_stored(probing: Probing) -> str:
    upload = probing.new_upload()
    _expect(200, probing.put(upload, os.urandom(SMALL_BYTES)), _REPORT)
    stored = _stored(upload)
    metadata = (stored or {}).get("Metadata", {})
    if metadata != STORED:
        missing = sorted(STORED.keys() - metadata.keys()) or sorted(metadata)
        raise Failed(f"S3 has not the metadata {', '.join(missing)}", _REPORT)
    return f"{len(STORED)} values"


def headers_come_back(probing: Probing) -> str:
    upload, body = probing.new_upload(), os.urandom(SMALL_BYTES)
    _expect(200, probing.put(upload, body), _REPORT)
    for method in ("GET", "HEAD"):
        answer = _expect(200, probing.get(upload, method), _REPORT)
        if answer.headers.get("x-artifact-tag") != TAG:
            raise Failed(f"{method} does not return the tag", _REPORT)
        if answer.headers.get("x-artifact-duration") != SENT["x-artifact-duration"]:
            raise Failed(f"{method} does not return the duration", _REPORT)
        if leaked := [name for name in answer.headers if name.startswith("x-amz-")]:
            raise Failed(f"{method} returns {', '.join(leaked)}", _REPORT)
        if method == "GET" and answer.body != body:
            raise Failed("GET returns other bytes", _REPORT)
    return ""


def size_is_limited(probing: Probing) -> str:
    upload, body = probing.new_upload(), os.urandom(SMALL_BYTES)
    address = probing.address("PUT", upload, most=SMALL_BYTES - 1)
    _expect(413, send("PUT", address, body), _REPORT)
    address = probing.address("PUT", upload, most=SMALL_BYTES)
    _expect(411, send("PUT", address, body, chunked=True), _REPORT)
    if _stored(upload) is not None:
        raise Failed("the object is stored", _REPORT)
    return ""


def address_stores_once(probing: Probing) -> str:
    upload, body = probing.new_upload(), os.urandom(SMALL_BYTES)
    _expect(200, probing.put(upload, body), _REPORT)
    answer = probing.put(upload, os.urandom(SMALL_BYTES))
    if answer.status != 412:
        raise Failed(
            f"{answer.status} instead of 412",
            "nothing: an artifact names a version of its object, so a second upload changes none",
        )
    if probing.get(upload).body != body:
        raise Failed("the second upload replaced the object", "nothing, as above")
    return ""


def other_headers_are_dropped(probing: Probing) -> str:
    upload = probing.new_upload()
    hostile = {
        "x-amz-storage-class": "DEEP_ARCHIVE",
        "x-amz-acl": "public-read",
        "x-amz-copy-source": "/another/key",
        "x-amz-meta-writer": "forged",
        "x-amz-tagging": "a=b",
        "cache-control": "max-age=9",
    }
    _expect(200, probing.put(upload, os.urandom(SMALL_BYTES), headers=hostile), _REPORT)
    stored = _stored(upload) or {}
    wrong = [name for name in ("writer", "user-id") if name in stored.get("Metadata", {})]
    wrong += [name for name in ("CacheControl", "StorageClass", "TagCount") if stored.get(name)]
    # S3 names no storage class for STANDARD.
    if stored.get("StorageClass") == "STANDARD":
        wrong.remove("StorageClass")
    if stored.get("ContentLength") != SMALL_BYTES:
        wrong.append("the content")
    if wrong:
        raise Failed(f"S3 has kept {', '.join(wrong)}", _REPORT)
    return ""


def large_and_slow_uploads_pass(probing: Probing) -> str:
    upload = probing.new_upload()
    address = probing.address("PUT", upload, most=probing.large_bytes)
    digest, pieces = _pieces(probing.large_bytes)
    length = {"Content-Length": str(probing.large_bytes)}
    smaller = "set MaxUploadBytes to a size that passes: try --large with less"
    answer = send("PUT", address, pieces, length, timeout_s=SLOW_TIMEOUT_S)
    _expect(200, answer, smaller)
    got = exchange("GET", probing.address("GET", upload), timeout_s=SLOW_TIMEOUT_S, as_digest=True)
    _expect(200, got, smaller)
    if got.body != digest():
        raise Failed("the large artifact came back changed", smaller)
    slow = probing.new_upload()
    address = probing.address("PUT", slow, most=SMALL_BYTES)
    body = _slowly(os.urandom(SMALL_BYTES), probing.slow_s)
    length = {"Content-Length": str(SMALL_BYTES)}
    answer = send("PUT", address, body, length, timeout_s=SLOW_TIMEOUT_S)
    _expect(200, answer, "uploads that take so long fail: set remoteCache.uploadTimeout below it")
    return f"{probing.large_bytes / 1_000_000:.0f} MB, and an upload of {probing.slow_s:.0f} s"


def _pieces(size: int) -> tuple[Callable[[], bytes], Iterator[bytes]]:
    """Bytes of this size in pieces, and their SHA-256 once they are sent."""
    digest = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        left = size
        while left:
            piece = _PIECE[:left]
            digest.update(piece)
            left -= len(piece)
            yield piece

    return digest.digest, pieces()


def _slowly(body: bytes, seconds: float) -> Iterator[bytes]:
    steps = 16
    for number in range(steps):
        if number:
            time.sleep(seconds / (steps - 1))
        yield body[number * len(body) // steps : (number + 1) * len(body) // steps]


def foreign_addresses_are_refused(probing: Probing) -> str:
    upload, body = probing.new_upload(), os.urandom(SMALL_BYTES)
    _expect(200, probing.put(upload, body), _REPORT)
    before, missing = _stored(upload), probing.new_upload()
    foreign = EdgeKey(probing.key.id, secrets.token_hex(32))
    other = probing.address("PUT", upload).replace(upload.hash, missing.hash)
    expired = timedelta(seconds=-5)
    for method, address in (
        ("GET", probing.address("GET", upload, key=foreign)),
        ("PUT", probing.address("PUT", upload, key=foreign)),
        ("GET", probing.address("GET", upload, lives=expired)),
        ("PUT", probing.address("PUT", missing, lives=expired)),
        ("PUT", other),
        ("PUT", probing.address("GET", missing)),
        ("DELETE", probing.address("GET", upload)),
        ("DELETE", probing.address("PUT", upload)),
        ("GET", f"{probing.url}/"),
    ):
        answer = send(method, address, b"." if method == "PUT" else b"")
        if answer.status != 404 or not _is_refusal(answer):
            raise Failed(
                f"{method} with a foreign address: {answer.status} instead of 404", _REPORT
            )
    after = _stored(upload)
    if before is None or after is None or before["ETag"] != after["ETag"]:
        raise Failed("a refused request has changed the object", _REPORT)
    if _stored(missing) is not None:
        raise Failed("a refused request has stored an object", _REPORT)
    return "9 addresses"


def bucket_is_private(probing: Probing) -> str:
    upload = probing.new_upload()
    _expect(200, probing.put(upload, os.urandom(SMALL_BYTES)), _REPORT)
    address, _, _signature = storage.upload_url(upload).partition("?")
    _expect(403, send("GET", address), "the bucket is public: block public access to it")
    return ""


def errors_are_not_cached(probing: Probing) -> str:
    upload, body = probing.new_upload(), os.urandom(SMALL_BYTES)
    missing = probing.get(upload)
    if missing.status not in (403, 404):
        raise Failed(f"a missing object gets {missing.status} instead of 403", _REPORT)
    _expect(200, probing.put(upload, body), _REPORT)
    advice = "the distribution caches errors: set ErrorCachingMinTTL to 0 for each"
    _expect(200, probing.get(upload), advice)
    return ""


def new_keys_reach_the_edge(probing: Probing) -> str:
    """A second key is accepted, and refused once it is deleted, each within a minute."""
    key = probing.switch.add(probing.flags)
    try:
        accepted_s = accepted_within(probing, key)
    finally:
        probing.switch.delete(key.id)
    refused_s = wait_until(lambda: not is_accepted(probing, key), GIVE_UP_AFTER_S)
    if refused_s is None:
        raise Failed(
            f"a deleted key is still accepted after {GIVE_UP_AFTER_S:.0f} s",
            "after a leak, `larder edge disable` does not end addresses before they expire",
        )
    probing.change_took_s = max(probing.change_took_s, refused_s)
    slowest = max(accepted_s, refused_s, probing.change_took_s)
    if slowest > REACHES_EDGE_WITHIN_S:
        raise Failed(
            f"a change of the key-value store takes {slowest:.0f} s",
            "nothing: this command waits that long once more before it switches",
        )
    return f"{accepted_s:.0f} s, deleted {refused_s:.0f} s"


def upload_is_published(probing: Probing) -> str:
    """S3's event makes the upload visible, with its tag and duration."""
    upload = probing.new_upload()
    _expect(200, probing.put(upload, os.urandom(SMALL_BYTES)), _REPORT)

    def artifact() -> Any:
        return index.read_entry(OWNER, upload.hash).artifact

    if wait_until(lambda: artifact() is not None, PUBLISHED_WITHIN_S) is None:
        raise Failed(
            f"not published after {PUBLISHED_WITHIN_S:.0f} s",
            "S3's events are late or lost: read the log of CommitUpload. The first request publishes it instead",
        )
    metadata = artifact().metadata
    if (metadata.tag, metadata.duration_ms) != (TAG, int(SENT["x-artifact-duration"])):
        raise Failed("the index lacks the tag or the duration", _REPORT)
    return ""


def more_parameters_do_no_harm(probing: Probing) -> str:
    """turbo 2.2.3 to 2.10.12 appends the team to the address."""
    upload, body = probing.new_upload(), os.urandom(SMALL_BYTES)
    team = "&teamId=team_1&slug=acme"
    answer = send("PUT", f"{probing.address('PUT', upload)}{team}", body)
    _expect(200, answer, _REPORT)
    answer = send("GET", f"{probing.address('GET', upload)}{team}")
    _expect(200, answer, _REPORT)
    return ""


def new_key_works(probing: Probing) -> None:
    """An upload and a download with the new key, before functions sign with it. Raises Failed."""
    upload, body = probing.new_upload(), os.urandom(SMALL_BYTES)
    _expect(200, probing.put(upload, body), _REPORT)
    if _expect(200, probing.get(upload), _REPORT).body != body:
        raise Failed("GET returns other bytes", _REPORT)


def bucket_is_not_redirected(probing: Probing) -> str:
    """S3 redirects requests for a new bucket for up to a day. `send` raises Failed at any 307."""
    probing.get(probing.new_upload())
    return ""


@dataclass(frozen=True, slots=True)
class Probe:
    id: str
    name: str
    check: Callable[[Probing], str]
    effect: Effect = Effect.REFUSES

    @property
    def title(self) -> str:
        return f"{self.id} {self.name}"


PROBES = (
    Probe("U0", "CloudFront runs the function as tested", function_passes_its_vectors),
    Probe("U14", "S3 does not redirect to another host", bucket_is_not_redirected),
    Probe("U1", "an upload is stored", upload_is_stored),
    Probe("U2", "an upload is stored with its headers", metadata_are_stored),
    Probe("U3", "a download has the headers of the upload, and none of S3's", headers_come_back),
    Probe("U4", "an upload over its size, or without one, is refused", size_is_limited),
    Probe("U5", "an address stores one object", address_stores_once, Effect.WITHOUT_ONCE),
    Probe("U6", "headers of S3 do not pass", other_headers_are_dropped),
    Probe(
        "U8", "foreign, changed and expired addresses are refused", foreign_addresses_are_refused
    ),
    Probe("U9", "the bucket itself is private", bucket_is_private),
    Probe("U10", "an error is not cached", errors_are_not_cached),
    Probe("U13", "parameters that old clients append do no harm", more_parameters_do_no_harm),
    Probe("U12", "an upload is published with its tag", upload_is_published, Effect.WARNS),
    Probe("U7", "large and slow uploads pass", large_and_slow_uploads_pass, Effect.WARNS),
    Probe("U11", "keys reach the edge within a minute", new_keys_reach_the_edge, Effect.WARNS),
)


def clean_up(probing: Probing) -> None:
    """Delete what the probes have stored. Of what an interrupted run leaves, the sweep deletes the rest."""
    now = clock.now()
    for announced in probing.uploads:
        pending = index.read_entry(OWNER, announced.upload.hash).pending
        # So that an event of S3 that is still on its way publishes nothing.
        if pending is not None:
            index.discard_pending(pending, now=now)
        artifact = index.read_entry(OWNER, announced.upload.hash).artifact
        if artifact is not None:
            publish.delete_from_index(artifact, now=now)
        storage.delete(announced.upload)


def cloudfront_test(client: Any, name: str) -> TestFunction:
    """TestFunction of CloudFront for the function with this name."""
    etag = client.describe_function(Name=name, Stage="LIVE")["ETag"]

    def test(event: dict[str, Any]) -> tuple[dict[str, Any], int]:
        result = client.test_function(
            Name=name, IfMatch=etag, Stage="LIVE", EventObject=json.dumps(event).encode()
        )["TestResult"]
        if message := result.get("FunctionErrorMessage"):
            raise Failed(f"the function fails: {message}", _REPORT)
        return json.loads(result["FunctionOutput"]), int(result["ComputeUtilization"])

    return test
