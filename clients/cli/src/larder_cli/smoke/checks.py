"""The checks, in order. Each is a function that returns a short note, or raises Failed or NotTried."""

import hashlib
import json
import os
import secrets
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from larder_cli.http import Answer, exchange, is_of_edge
from larder_cli.outcomes import Failed, NotTried
from larder_cli.smoke.advice import about, about_storage, summary

SMALL_BYTES = 100_000
TAGGED_BYTES = 1_000_000
"""Above the size from which untagged artifacts are redirected. A tagged one must still come through the function."""
TOO_LARGE_FOR_A_FUNCTION_BYTES = 6_300_000
TOO_LARGE_FOR_THE_GATEWAY_BYTES = 10_100_000
AT_ONCE = 10
FUNCTIONS_AT_ONCE = 100
"""Of the account. With fewer, one build sees errors. `make deploy` demands as many."""
DURATION_MS = "1234"
TAG = "Tc0BmHvJYMIYJ62/zx87YqO0Flxk+5Ovip25NY825CQ="
LARGE_TIMEOUT_S = 300.0

_BYTES = "application/octet-stream"
_UNKNOWN_LENGTHS = (None, "0")
"""AWS does not say whether an HTTP API passes on the Content-Length of a reply to HEAD."""
_PASSES_NO_HEADERS = (
    "a proxy or CDN in front of the API drops x-artifact-* headers: let it pass them both ways"
)
_EDGE_LOSES_HEADERS = (
    "run `larder edge disable`, then `larder edge enable`, which names the probe that fails"
)


@dataclass(kw_only=True)
class Site:
    """The deployment, and the artifacts that this run has stored there."""

    url: str
    key: str
    team: str | None
    large_bytes: int
    run: str = field(default_factory=lambda: secrets.token_hex(7))
    stored: dict[str, str] = field(default_factory=dict)
    """Hashes by name: `small`, `tagged`, `chunked`, `untyped`, `text`, `large`, `timed`."""
    large_digest: str = ""
    uses_edge: bool = False
    """Whether the large artifact was uploaded to the edge, and not to S3 itself."""
    request_ids: dict[str, str] = field(default_factory=dict)
    """The gateway's ids of the requests to look up in the log, by the name of the function."""

    def hash_of(self, what: str) -> str:
        """16 hexadecimal digits, like turbo's hashes, unique to this run."""
        return f"{self.run}{hashlib.sha256(what.encode()).hexdigest()[:2]}"

    def ask(
        self,
        method: str,
        path: str,
        *,
        authorization: str | None = "",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Answer:
        """Send a request. By default it carries the key; None sends no Authorization header."""
        all_headers = dict(headers or {})
        if authorization is not None:
            all_headers["Authorization"] = authorization or f"Bearer {self.key}"
        return exchange(method, self.address(path), headers=all_headers, **more)

    def address(self, path: str) -> str:
        """The URL of a path, for the team."""
        query = {} if self.team is None else {"slug": self.team}
        if self.team is not None and self.team.startswith("team_"):
            query = {"teamId": self.team}
        return f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")

    def put(
        self,
        what: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        chunked: bool = False,
    ) -> Answer:
        """Upload an artifact. An empty header is not sent."""
        hash = self.hash_of(what)
        all_headers = {"Content-Type": _BYTES, **(headers or {})}
        sent = {name: value for name, value in all_headers.items() if value}
        answer = self.ask("PUT", f"/v8/artifacts/{hash}", headers=sent, body=body, chunked=chunked)
        if answer.status == 202:
            self.stored[what] = hash
        return answer

    def post(self, path: str, value: Any) -> Answer:
        headers = {"Content-Type": "application/json"}
        return self.ask("POST", path, headers=headers, body=json.dumps(value).encode())

    def artifact(self, method: str, what: str, **more: Any) -> Answer:
        return self.ask(method, f"/v8/artifacts/{self.hash_of(what)}", **more)

    def queried(self, *hashes: str) -> Any:
        """The reply to a query for `hashes`, as JSON."""
        return _expect(200, self.post("/v8/artifacts", {"hashes": hashes})).json


def url_responds(site: Site) -> str:
    answer = site.ask("GET", "/api/auth/ok", authorization=None)
    if answer.status != 200 or answer.json != {"ok": True}:
        raise Failed(summary(answer), about(answer))
    return ""


def key_gives_access(site: Site) -> str:
    answer = _expect(200, site.ask("GET", "/v8/artifacts/status"))
    status = answer.json.get("status") if isinstance(answer.json, dict) else None
    if status != "enabled":
        as_refused = Answer(403, {}, f'{{"code": "remote_caching_{status}"}}'.encode())
        raise Failed(f"caching is {status}", about(as_refused))
    site.request_ids["GetStatus"] = answer.headers.get("apigw-requestid", "")
    return ""


def requests_at_once_are_answered(site: Site) -> str:
    """A turbo with --preflight has as many requests open."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        sent = [threads.submit(site.ask, "GET", "/v8/artifacts/status") for _ in range(AT_ONCE)]
        refused = [one.result() for one in sent if one.result().status != 200]
    if refused:
        text = f"{len(refused)} of {AT_ONCE}: {summary(refused[0])}"
        raise Failed(text, about(refused[0]))
    return ""


def account_runs_enough_functions(region: str) -> str:
    """The check with --stack that explains why requests at once fail."""
    from larder import aws

    allowed = aws.lambda_().get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
    if allowed < FUNCTIONS_AT_ONCE:
        raise Failed(
            f"it runs at most {allowed} functions at once",
            "request 1,000, which costs nothing: aws service-quotas request-service-quota-increase --service-code "
            f"lambda --quota-code L-B99A9384 --desired-value 1000 --region {region}",
        )
    return f"{allowed}"


def requests_without_a_valid_key_are_rejected(site: Site) -> str:
    for authorization in (None, f"Bearer {'x' * 64}"):
        answer = site.ask("GET", "/v8/artifacts/status", authorization=authorization)
        if answer.status != 401:
            raise Failed(
                f"{summary(answer)} instead of 401",
                "a proxy in front of the API adds its own key, or responds from a cache: disable both",
            )
    return ""


def invalid_hash_is_rejected(site: Site) -> str:
    _expect(400, site.ask("GET", "/v8/artifacts/no%20hash"))
    return ""


def artifact_is_stored_and_returned(site: Site) -> str:
    body = os.urandom(SMALL_BYTES)
    answer = _expect(202, site.put("small", body, {"x-artifact-duration": DURATION_MS}))
    if not isinstance(answer.json, dict) or not answer.json.get("urls"):
        raise Failed("the reply to the upload has no urls", "a proxy rewrites bodies")
    answer, _ = _comes_back(site, "small", body)
    if answer.headers.get("x-artifact-duration") != DURATION_MS:
        raise Failed("the response has lost x-artifact-duration", _PASSES_NO_HEADERS)
    return f"{SMALL_BYTES // 1000} kB"


def head_returns_the_size(site: Site) -> str:
    if "small" not in site.stored:
        raise NotTried("the earlier upload failed")
    length = _expect(200, site.artifact("HEAD", "small")).headers.get("content-length")
    if length in _UNKNOWN_LENGTHS:
        return f"Content-Length is {length or 'missing'}: the API leaves it out, and turbo does not read it"
    if length != str(SMALL_BYTES):
        raise Failed(
            f"Content-Length is {length}, not {SMALL_BYTES}",
            "a proxy in front of the API changes it. turbo does not read it, but other clients may",
        )
    return ""


def signed_artifact_keeps_its_tag(site: Site) -> str:
    body = os.urandom(TAGGED_BYTES)
    sent = {"x-artifact-duration": DURATION_MS, "x-artifact-tag": TAG}
    _expect(202, site.put("tagged", body, sent))
    answer, got = _comes_back(site, "tagged", body)
    if got.headers.get("x-artifact-tag") == TAG:
        return f"{TAGGED_BYTES // 1000} kB"
    hash = site.stored["tagged"]
    is_stored = site.queried(hash)[hash].get("tag") == TAG
    if is_stored and is_of_edge(answer.headers.get("location", "")):
        raise Failed("the edge has lost x-artifact-tag in the download", _EDGE_LOSES_HEADERS)
    if is_stored and answer.status == 302:
        raise Failed(
            "the download is redirected to S3, which loses the tag",
            "InlineLimitBytes of this deployment is below 1 MB: raise it if you sign artifacts",
        )
    raise Failed(
        f"x-artifact-tag is lost in the {'download' if is_stored else 'upload'}",
        f"{_PASSES_NO_HEADERS}. Until then turbo rejects signed artifacts from this cache",
    )


def upload_without_a_length(site: Site) -> str:
    body = os.urandom(SMALL_BYTES)
    _expect(202, site.put("chunked", body, chunked=True))
    _comes_back(site, "chunked", body)
    return ""


def media_types_change_no_byte(site: Site) -> str:
    """API Gateway hands text to functions as text, which cannot hold every byte. Larder refuses what lost some."""
    body = bytes(range(256))
    for media_type, what in (("", "untyped"), ("text/plain", "text")):
        answer = site.put(what, body, {"Content-Type": media_type})
        if media_type and answer.status == 400:
            return f"the API changes bytes of {media_type}, so Larder refuses such artifacts. turbo sends none"
        _expect(202, answer)
        _comes_back(site, what, body)
    return ""


def large_artifact_goes_straight_to_s3(site: Site) -> str:
    announced = {
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "Authorization, Content-Type, User-Agent, x-artifact-duration",
    }
    answer = site.artifact("OPTIONS", "large", headers=announced)
    location = answer.headers.get("location")
    if location is None:
        if answer.status in (200, 204):
            raise Failed(
                "the reply to OPTIONS has no Location",
                "something in front of Larder answers OPTIONS: disable CORS at the API, the proxy and the CDN",
            )
        raise Failed(summary(answer), about(answer))
    site.request_ids["Preflight"] = answer.headers.get("apigw-requestid", "")
    body = os.urandom(site.large_bytes)
    site.uses_edge = is_of_edge(location)
    headers = {"Content-Type": _BYTES, "x-artifact-duration": DURATION_MS, "x-artifact-tag": TAG}
    stored = exchange("PUT", location, headers=headers, body=body, timeout_s=LARGE_TIMEOUT_S)
    _check_storage(stored, location)
    site.stored["large"] = site.hash_of("large")
    site.large_digest = hashlib.sha256(body).hexdigest()
    length = _expect(200, site.artifact("HEAD", "large")).headers.get("content-length")
    if length not in (*_UNKNOWN_LENGTHS, str(site.large_bytes)):
        raise Failed(
            f"{length} bytes are stored, not {site.large_bytes}", "a proxy truncates bodies"
        )
    return f"{site.large_bytes / 1_000_000:.0f} MB{', by the edge' if site.uses_edge else ''}"


def large_artifact_is_returned_by_redirect(site: Site) -> str:
    if "large" not in site.stored:
        raise NotTried("the earlier upload failed")
    answer = site.artifact("GET", "large")
    site.request_ids["FetchArtifact"] = answer.headers.get("apigw-requestid", "")
    location = answer.headers.get("location")
    if answer.status == 200:
        raise Failed(
            "something in front of the API returned the artifact",
            "a proxy follows redirects: configure it to pass them on, or every byte passes through it",
        )
    if answer.status != 302 or location is None:
        raise Failed(summary(answer), about(answer))
    got = exchange("GET", location, timeout_s=LARGE_TIMEOUT_S)
    _check_storage(got, location)
    if hashlib.sha256(got.body).hexdigest() != site.large_digest:
        raise Failed(
            f"{len(got.body)} different bytes were returned",
            "a proxy between here and S3 changes bodies",
        )
    return f"{site.large_bytes / 1_000_000:.0f} MB"


def edge_keeps_tag_and_duration(site: Site) -> str:
    """S3 itself drops both."""
    if "large" not in site.stored:
        raise NotTried("the earlier upload failed")
    if not site.uses_edge:
        return "no edge in use: S3 drops them"
    hash = site.stored["large"]
    entry = site.queried(hash)[hash]
    if (entry.get("tag"), entry.get("taskDurationMs")) != (TAG, int(DURATION_MS)):
        raise Failed("they are lost in the upload", _EDGE_LOSES_HEADERS)
    location = site.artifact("GET", "large").headers.get("location", "")
    got = exchange("HEAD", location)
    _check_storage(got, location)
    returned = [got.headers.get(name) for name in ("x-artifact-tag", "x-artifact-duration")]
    if returned != [TAG, DURATION_MS]:
        raise Failed("they are lost in the download", _EDGE_LOSES_HEADERS)
    return ""


def query_lists_stored_artifacts(site: Site) -> str:
    if "small" not in site.stored:
        raise NotTried("the earlier upload failed")
    small, unknown = site.stored["small"], site.hash_of("never stored")
    reply = site.queried(small, unknown)
    entry = {"size": SMALL_BYTES, "taskDurationMs": int(DURATION_MS)}
    if reply != {small: entry, unknown: None}:
        raise Failed(f"the reply is {json.dumps(reply)}", "a proxy rewrites headers or bodies")
    return ""


def usage_events_are_accepted(site: Site) -> str:
    miss = {"source": "REMOTE", "event": "MISS", "hash": site.hash_of("never stored")}
    event = {"sessionId": str(uuid.uuid4()), **miss}
    _expect(200, site.post("/v8/artifacts/events", [event]))
    return ""


def preflight_of_downloads_allows_the_token(site: Site) -> str:
    """With --preflight turbo sends OPTIONS before downloads too, and sends its token only if the reply allows it."""
    headers = {"Access-Control-Request-Method": "GET"}
    answer = site.artifact("OPTIONS", "small", headers=headers, authorization=None)
    allowed = answer.headers.get("access-control-allow-headers", "")
    if "authorization" not in allowed.lower() or "location" in answer.headers:
        raise Failed(
            f"{answer.status}, Access-Control-Allow-Headers: {allowed or 'none'}",
            "something in front of Larder answers OPTIONS: disable CORS at the API, the proxy and the CDN",
        )
    return ""


def too_large_bodies_are_rejected(site: Site) -> str:
    for size in (TOO_LARGE_FOR_A_FUNCTION_BYTES, TOO_LARGE_FOR_THE_GATEWAY_BYTES):
        answer = site.put("too large", bytes(size))
        if answer.status != 413:
            raise Failed(
                f"{size / 1_000_000:.1f} MB: {summary(answer)} instead of 413", about(answer)
            )
        if not answer.is_the_gateways:
            raise Failed(
                f"{size / 1_000_000:.1f} MB: 413 does not come from the API: {summary(answer)}",
                "a proxy in front of the API limits bodies: let 10 MB pass, or uploads that Larder accepts fail",
            )
    return ""


def duplicate_slashes_are_ignored(site: Site) -> str:
    answer = site.ask("GET", "//v8/artifacts/status")
    if answer.status != 200:
        raise Failed(
            summary(answer),
            "clients whose TURBO_API ends in a slash will fail: remove the slash",
        )
    return ""


CHECKS: tuple[tuple[str, Callable[[Site], str]], ...] = (
    ("the URL responds", url_responds),
    ("the key gives access to the cache", key_gives_access),
    ("ten requests at once are answered", requests_at_once_are_answered),
    (
        "requests without a valid key are rejected",
        requests_without_a_valid_key_are_rejected,
    ),
    ("an invalid hash is rejected", invalid_hash_is_rejected),
    ("an artifact can be uploaded and downloaded", artifact_is_stored_and_returned),
    ("HEAD returns its size", head_returns_the_size),
    ("a signed artifact keeps its tag", signed_artifact_keeps_its_tag),
    ("an upload without Content-Length is stored", upload_without_a_length),
    ("no media type changes an artifact", media_types_change_no_byte),
    ("a large artifact is uploaded straight to S3", large_artifact_goes_straight_to_s3),
    ("a large artifact is downloaded by redirect", large_artifact_is_returned_by_redirect),
    ("the edge keeps the tag and the duration", edge_keeps_tag_and_duration),
    ("a query lists stored artifacts", query_lists_stored_artifacts),
    ("usage events are accepted", usage_events_are_accepted),
    ("preflight of downloads allows the token", preflight_of_downloads_allows_the_token),
    ("bodies that are too large are rejected", too_large_bodies_are_rejected),
    ("duplicate slashes are ignored", duplicate_slashes_are_ignored),
)
ESSENTIAL = frozenset({"the URL responds", "the key gives access to the cache"})
"""If one of these fails, the other checks would say nothing."""


def clean_up(site: Site) -> tuple[int, int]:
    """Delete the stored artifacts, or replace each with one byte if the key cannot delete.

    Returns how many were deleted, and how many could neither be deleted nor replaced.
    """
    deleted = left = 0
    for what, hash in tuple(site.stored.items()):
        if site.ask("DELETE", f"/v1/artifacts/{hash}").status == 200:
            deleted += 1
        elif site.put(what, b".").status != 202:
            left += 1
    return deleted, left


def _expect(status: int, answer: Answer) -> Answer:
    if answer.status != status:
        raise Failed(f"{summary(answer)} instead of {status}", about(answer))
    return answer


def _check_storage(answer: Answer, location: str) -> None:
    """Raises Failed unless S3, or the edge in front of it, has done what the address is for."""
    if answer.status != 200:
        raise Failed(
            f"{urlsplit(location).hostname} answered {summary(answer)}",
            about_storage(answer, by_edge=is_of_edge(location)),
        )


def _comes_back(site: Site, what: str, body: bytes) -> tuple[Answer, Answer]:
    """The response to GET and, if it is a redirect, that of its target, which must have the uploaded bytes."""
    answer = content = site.artifact("GET", what)
    if answer.status == 302:
        content = exchange("GET", answer.headers.get("location", ""))
    if _expect(200, content).body != body:
        raise Failed(
            f"the {len(content.body)} bytes returned differ from the {len(body)} uploaded",
            "a proxy in front of the API changes bodies: configure it to pass application/octet-stream unchanged",
        )
    return answer, content
