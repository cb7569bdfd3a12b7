"""turbo on loopback: the paths of the remote cache API, and what turbo gets if Larder does not answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache

from larder_proxy.clients import Client, Entry
from larder_proxy.listener import TEAM_OF_THE_TOKEN
from larder_proxy.transfers import Answer

TURBO = Client(
    "turbo",
    (r"/v8/artifacts/(?!(?:events|status)\Z)([A-Za-z0-9_-]{1,128})",),
    stored=202,
    dropped=202,
    # turbo has a time limit of its own, which its users change.
    seconds=3_600,
)
STATUS, QUERY = "/v8/artifacts/status", "/v8/artifacts"
ALLOWED_HEADERS = (
    "Authorization, Content-Type, User-Agent, x-artifact-client-ci, x-artifact-client-interactive, "
    "x-artifact-dirty-hash, x-artifact-duration, x-artifact-sha, x-artifact-tag"
)
"""The answer to an OPTIONS of turbo. Without an address, turbo comes back here, whatever the size is."""

_ARTIFACT = re.compile(TURBO.paths[0])
_PASSED = re.compile(r"/v1/(causes|runs(/[A-Za-z0-9_-]+)?|tasks/history)")


def find_entry(path: str, query: str, team: str) -> Entry | None:
    """The artifact at a path. `team` is the query that the sidecar sends; turbo can name another team."""
    match = _ARTIFACT.fullmatch(path)
    return Entry(TURBO, match[1], query=other_team(query, team)) if match else None


@lru_cache
def other_team(query: str, team: str) -> str:
    """The query of turbo if it names another team than the sidecar, else `""`."""
    if query in ("", team, f"slug={TEAM_OF_THE_TOKEN}"):
        return ""
    from urllib.parse import parse_qsl

    return "" if sorted(parse_qsl(query)) == sorted(parse_qsl(team)) else query


def is_passed(method: str, path: str) -> bool:
    """Whether the sidecar sends the request on: turbo's own, and those of `larder why` within a build."""
    if method == "GET":
        return path == STATUS or _PASSED.fullmatch(path) is not None
    return path == QUERY or _PASSED.fullmatch(path) is not None


def sent_with(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers that describe an artifact or its client: its duration and signature, the commit, the CI."""
    found = ((name.lower(), value) for name, value in headers)
    return {name: value for name, value in found if name.startswith("x-artifact-")}


def without_larder(path: str, content: bytes) -> Answer:
    """What turbo gets if Larder does not answer: an empty cache, which does not turn turbo's cache off."""
    if path == STATUS:
        return Answer(200, b'{"status":"enabled"}')
    if path != QUERY:
        return Answer(404, b"")
    try:
        hashes = json.loads(content)["hashes"]
        return Answer(200, json.dumps({str(hash): None for hash in hashes}).encode())
    except (ValueError, KeyError, TypeError):
        return Answer(400, b"")
