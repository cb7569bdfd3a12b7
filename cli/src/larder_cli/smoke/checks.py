"""What is asked of a deployment, in order. Each check is a function that returns what it found, or raises Failed."""

import hashlib
import json
import os
import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from larder_cli.smoke.advice import about, about_s3, told
from larder_cli.smoke.http import Answer, exchange

SMALL_BYTES = 100_000
TAGGED_BYTES = 1_000_000
"""Above what an untagged artifact is redirected for: a tagged one must come through the function all the same."""
TOO_LARGE_FOR_A_FUNCTION_BYTES = 6_300_000
TOO_LARGE_FOR_THE_GATEWAY_BYTES = 10_100_000
DURATION_MS = "1234"
TAG = "Tc0BmHvJYMIYJ62/zx87YqO0Flxk+5Ovip25NY825CQ="
LARGE_PATIENCE_S = 300.0

_BYTES = "application/octet-stream"
_PASSES_NO_HEADERS = (
    "a proxy or CDN in front of the API drops x-artifact-* headers: have it pass them both ways"
)


class Failed(Exception):
    """The deployment does not do it. `found` is what it did, `advice` what to do."""

    def __init__(self, found: str, advice: str) -> None:
        super().__init__(found)
        self.found = found
        self.advice = advice


class NotTried(Exception):
    """What the check builds on is not there. The message says what."""


@dataclass(kw_only=True)
class Site:
    """The deployment, and what this run has left there."""

    url: str
    key: str
    team: str | None
    large_bytes: int
    run: str = field(default_factory=lambda: secrets.token_hex(7))
    stored: dict[str, str] = field(default_factory=dict)
    """Hash by what it is: `small`, `tagged`, `chunked`, `large`."""
    large_digest: str = ""
    request_ids: dict[str, str] = field(default_factory=dict)
    """What the gateway calls the requests of which the log is asked later, by the function that answered."""

    def hash_of(self, what: str) -> str:
        """16 hexadecimal digits, as turbo's, that no other run has."""
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
        """One request. By default it carries the key; None sends no Authorization at all."""
        sent = dict(headers or {})
        if authorization is not None:
            sent["Authorization"] = authorization or f"Bearer {self.key}"
        query = {} if self.team is None else {"slug": self.team}
        if self.team is not None and self.team.startswith("team_"):
            query = {"teamId": self.team}
        url = f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")
        return exchange(method, url, headers=sent, **more)

    def put(
        self,
        what: str,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        *,
        chunked: bool = False,
    ) -> Answer:
        hash = self.hash_of(what)
        sent = {"Content-Type": _BYTES, **(headers or {})}
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
        """What a query tells, as JSON."""
        return _expect(200, self.post("/v8/artifacts", {"hashes": hashes})).json


def address_answers(site: Site) -> str:
    answer = site.ask("GET", "/api/auth/ok", authorization=None)
    if answer.status != 200 or answer.json != {"ok": True}:
        raise Failed(told(answer), about(answer))
    return ""


def key_opens_the_cache(site: Site) -> str:
    answer = _expect(200, site.ask("GET", "/v8/artifacts/status"))
    status = answer.json.get("status") if isinstance(answer.json, dict) else None
    if status != "enabled":
        as_refused = Answer(403, {}, f'{{"code": "remote_caching_{status}"}}'.encode())
        raise Failed(f"caching is {status}", about(as_refused))
    site.request_ids["GetStatus"] = answer.headers.get("apigw-requestid", "")
    return ""


def nobody_gets_in_without_a_key(site: Site) -> str:
    for authorization in (None, f"Bearer {'x' * 64}"):
        answer = site.ask("GET", "/v8/artifacts/status", authorization=authorization)
        if answer.status != 401:
            raise Failed(
                f"{told(answer)} in place of 401",
                "a proxy in front of the API adds a key of its own, or answers from a cache: neither may be",
            )
    return ""


def bad_hash_is_refused(site: Site) -> str:
    _expect(400, site.ask("GET", "/v8/artifacts/no%20hash"))
    return ""


def artifact_goes_in_and_comes_back(site: Site) -> str:
    body = os.urandom(SMALL_BYTES)
    answer = _expect(202, site.put("small", body, {"x-artifact-duration": DURATION_MS}))
    if not isinstance(answer.json, dict) or not answer.json.get("urls"):
        raise Failed("the reply to the upload names no address", "a proxy rewrites bodies")
    answer = _comes_back(site, "small", body)
    if answer.headers.get("x-artifact-duration") != DURATION_MS:
        raise Failed("x-artifact-duration is lost on the way", _PASSES_NO_HEADERS)
    return f"{SMALL_BYTES // 1000} kB"


def head_tells_the_size(site: Site) -> str:
    if "small" not in site.stored:
        raise NotTried("the upload before it failed")
    length = _expect(200, site.artifact("HEAD", "small")).headers.get("content-length")
    if length != str(SMALL_BYTES):
        raise Failed(
            f"Content-Length is {length}, not {SMALL_BYTES}",
            "a proxy in front of the API drops it. turbo does not read it, other clients may",
        )
    return ""


def signed_artifact_keeps_its_tag(site: Site) -> str:
    body = os.urandom(TAGGED_BYTES)
    sent = {"x-artifact-duration": DURATION_MS, "x-artifact-tag": TAG}
    _expect(202, site.put("tagged", body, sent))
    answer = _comes_back(site, "tagged", body)
    if answer.status == 200 and answer.headers.get("x-artifact-tag") == TAG:
        return f"{TAGGED_BYTES // 1000} kB"
    hash = site.stored["tagged"]
    is_stored = site.queried(hash)[hash].get("tag") == TAG
    if is_stored and answer.status == 302:
        raise Failed(
            "it is redirected to S3, which loses the tag",
            "InlineLimitBytes of this deployment is below 1 MB: raise it, if anybody signs artifacts",
        )
    raise Failed(
        f"x-artifact-tag is lost on the way {'back' if is_stored else 'in'}",
        f"{_PASSES_NO_HEADERS}. Until then turbo takes no signed artifact from this cache",
    )


def upload_without_a_length(site: Site) -> str:
    body = os.urandom(SMALL_BYTES)
    _expect(202, site.put("chunked", body, chunked=True))
    _comes_back(site, "chunked", body)
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
                "OPTIONS is answered without a Location",
                "something answers OPTIONS before Larder does: switch CORS off at the API, the proxy and the CDN",
            )
        raise Failed(told(answer), about(answer))
    site.request_ids["Preflight"] = answer.headers.get("apigw-requestid", "")
    body = os.urandom(site.large_bytes)
    headers = {"Content-Type": _BYTES, "x-artifact-duration": DURATION_MS}
    stored = exchange("PUT", location, headers=headers, body=body, patience_s=LARGE_PATIENCE_S)
    if stored.status != 200:
        raise Failed(f"{urlsplit(location).hostname} answered {told(stored)}", about_s3(stored))
    site.stored["large"] = site.hash_of("large")
    site.large_digest = hashlib.sha256(body).hexdigest()
    length = _expect(200, site.artifact("HEAD", "large")).headers.get("content-length")
    if length not in (None, str(site.large_bytes)):
        raise Failed(f"{length} bytes are stored, not {site.large_bytes}", "a proxy cuts bodies")
    return f"{site.large_bytes / 1_000_000:.0f} MB"


def large_artifact_comes_back_by_a_redirect(site: Site) -> str:
    if "large" not in site.stored:
        raise NotTried("the upload before it failed")
    answer = site.artifact("GET", "large")
    site.request_ids["FetchArtifact"] = answer.headers.get("apigw-requestid", "")
    location = answer.headers.get("location")
    if answer.status == 200:
        raise Failed(
            "it is answered by what stands in front of the API",
            "a proxy follows redirects: it must hand them on, or every byte passes through it",
        )
    if answer.status != 302 or location is None:
        raise Failed(told(answer), about(answer))
    got = exchange("GET", location, patience_s=LARGE_PATIENCE_S)
    if got.status != 200:
        raise Failed(f"{urlsplit(location).hostname} answered {told(got)}", about_s3(got))
    if hashlib.sha256(got.body).hexdigest() != site.large_digest:
        raise Failed(
            f"{len(got.body)} other bytes come back", "a proxy between here and S3 changes bodies"
        )
    return f"{site.large_bytes / 1_000_000:.0f} MB"


def query_tells_what_is_stored(site: Site) -> str:
    if "small" not in site.stored:
        raise NotTried("the upload before it failed")
    small, unknown = site.stored["small"], site.hash_of("never stored")
    told = site.queried(small, unknown)
    entry = {"size": SMALL_BYTES, "taskDurationMs": int(DURATION_MS)}
    if told != {small: entry, unknown: None}:
        raise Failed(f"the reply is {json.dumps(told)}", "a proxy rewrites headers or bodies")
    return ""


def usage_events_are_taken(site: Site) -> str:
    miss = {"source": "REMOTE", "event": "MISS", "hash": site.hash_of("never stored")}
    event = {"sessionId": str(uuid.uuid4()), **miss}
    _expect(200, site.post("/v8/artifacts/events", [event]))
    return ""


def other_requests_are_let_through(site: Site) -> str:
    """With preflight turbo announces a download too, and then sends its token only when it is told to."""
    headers = {"Access-Control-Request-Method": "GET"}
    answer = site.artifact("OPTIONS", "small", headers=headers, authorization=None)
    allowed = answer.headers.get("access-control-allow-headers", "")
    if "authorization" not in allowed.lower() or "location" in answer.headers:
        raise Failed(
            f"{answer.status}, Access-Control-Allow-Headers: {allowed or 'none'}",
            "something answers OPTIONS before Larder does: switch CORS off at the API, the proxy and the CDN",
        )
    return ""


def too_large_bodies_are_refused(site: Site) -> str:
    for size in (TOO_LARGE_FOR_A_FUNCTION_BYTES, TOO_LARGE_FOR_THE_GATEWAY_BYTES):
        answer = site.put("too large", bytes(size))
        if answer.status != 413:
            raise Failed(
                f"{size / 1_000_000:.1f} MB: {told(answer)} in place of 413", about(answer)
            )
        if not answer.is_the_gateways:
            raise Failed(
                f"{size / 1_000_000:.1f} MB: 413 is not the API's own: {told(answer)}",
                "a proxy in front of the API limits bodies: let 10 MB pass, or builds lose what Larder would take",
            )
    return ""


def two_slashes_are_one(site: Site) -> str:
    answer = site.ask("GET", "//v8/artifacts/status")
    if answer.status != 200:
        raise Failed(
            told(answer),
            "clients whose TURBO_API ends in a slash will not get through: have them leave it out",
        )
    return ""


CHECKS: tuple[tuple[str, Callable[[Site], str]], ...] = (
    ("the address answers", address_answers),
    ("the key opens the cache", key_opens_the_cache),
    ("nobody gets in without a key", nobody_gets_in_without_a_key),
    ("a bad hash is refused", bad_hash_is_refused),
    ("an artifact goes in and comes back", artifact_goes_in_and_comes_back),
    ("HEAD tells its size", head_tells_the_size),
    ("a signed artifact keeps its tag", signed_artifact_keeps_its_tag),
    ("an upload without a length", upload_without_a_length),
    ("a large artifact goes straight to S3", large_artifact_goes_straight_to_s3),
    ("and comes back by a redirect", large_artifact_comes_back_by_a_redirect),
    ("a query tells what is stored", query_tells_what_is_stored),
    ("usage events are taken", usage_events_are_taken),
    ("requests that are announced are let through", other_requests_are_let_through),
    ("bodies that are too large are refused", too_large_bodies_are_refused),
    ("two slashes count as one", two_slashes_are_one),
)
ESSENTIAL = frozenset({"the address answers", "the key opens the cache"})
"""Without these nothing else can be told."""


def clean_up(site: Site) -> tuple[int, int]:
    """Delete what was stored or, with a key that may not, replace it by a byte, so that the sweep frees the rest.

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
        raise Failed(f"{told(answer)} in place of {status}", about(answer))
    return answer


def _comes_back(site: Site, what: str, body: bytes) -> Answer:
    """The answer to GET, once the bytes were seen to be those sent: in it, or where it redirects to."""
    answer = content = site.artifact("GET", what)
    if answer.status == 302:
        content = exchange("GET", answer.headers.get("location", ""))
    if _expect(200, content).body != body:
        raise Failed(
            f"{len(content.body)} bytes come back that are not the {len(body)} sent",
            "a proxy in front of the API changes bodies: it must pass application/octet-stream as it is",
        )
    return answer
