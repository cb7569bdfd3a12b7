"""The build tools: their paths, the names of their entries in Larder, and the answers that they can bear."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = r"[A-Za-z0-9_-]{1,128}"
"""A hash that Larder accepts."""


class Client:
    """A build tool. `stored` is the status of an accepted upload, and `dropped` of one that nothing will keep.

    An answer streams from `streams_from` bytes on. A tool that a cut answer would break gets each body whole.
    `seconds` is how long the tool waits for an answer. `times_tasks` is whether the time from a miss to the upload of
    the same entry is that of the task. It is not if the tool looks all tasks up first, or has several entries for one.
    With `checks_gzip`, a damaged entry of gzip is a miss, because it would end the build. `variables` are those that
    `larder run` sets: `{url}`, `{host}`, `{port}`, `{token}` and `{free_port}` are replaced. People call it `tool`.
    """

    def __init__(
        self,
        name: str,
        paths: tuple[str, ...] = (),
        *,
        stored: int = 200,
        dropped: int = 200,
        streams_from: int | None = 16_000_000,
        seconds: float = 45,
        times_tasks: bool = False,
        is_content_addressed: bool = False,
        checks_gzip: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.tool, self.paths = name, name.partition("-")[0], paths
        self.stored, self.dropped = stored, dropped
        self.streams_from, self.seconds, self.times_tasks = streams_from, seconds, times_tasks
        self.is_content_addressed, self.checks_gzip = is_content_addressed, checks_gzip
        self.variables = variables or {}


CLIENTS: list[Client] = [
    Client(
        "nx",
        (r"/v1/cache/([^/]+)",),
        # Nx ends the build for every other status.
        dropped=403,
        streams_from=None,
        checks_gzip=True,
        variables={
            "NX_SELF_HOSTED_REMOTE_CACHE_SERVER": "{url}",
            "NX_SELF_HOSTED_REMOTE_CACHE_ACCESS_TOKEN": "{token}",
        },
    ),
    Client("gradle", (r"/gradle/([^/]+)",), times_tasks=True),
    Client(
        "sccache",
        (r"/sccache/(?:[^/]/[^/]/[^/]/)?([^/]+)",),
        stored=201,
        times_tasks=True,
        variables={
            "SCCACHE_WEBDAV_ENDPOINT": "{url}",
            "SCCACHE_WEBDAV_TOKEN": "{token}",
            "SCCACHE_WEBDAV_KEY_PREFIX": "sccache",
            # A server of an earlier run would have its token and address.
            "SCCACHE_SERVER_PORT": "{free_port}",
        },
    ),
    Client(
        "ccache",
        (r"/ccache/([^/]{2})/([^/]+)", r"/ccache/([^/]+)"),
        # ccache gives up after ten.
        seconds=8,
        variables={"CCACHE_REMOTE_STORAGE": "http://larder:{token}@{host}:{port}/ccache"},
    ),
    Client(
        "moon-ac",
        (r"/moon/(?:[^/]+/)?ac/([^/]+)",),
        times_tasks=True,
        variables={
            "MOON_REMOTE_API": "http",
            "MOON_REMOTE_HOST": "{url}/moon",
            "MOON_REMOTE_AUTH_TOKEN": "LARDER_PROXY_TOKEN",
        },
    ),
    Client("moon-cas", (r"/moon/(?:[^/]+/)?cas/([0-9a-f]{64})",), is_content_addressed=True),
    Client(
        "rush",
        (r"/rush/([^/]+)",),
        variables={
            "RUSH_BUILD_CACHE_CREDENTIAL": "Bearer {token}",
            "RUSH_BUILD_CACHE_WRITE_ALLOWED": "1",
        },
    ),
    Client("bazel-ac", (r"/bazel/(?:[^/]+/)?ac/([^/]+)",)),
    Client("bazel-cas", (r"/bazel/(?:[^/]+/)?cas/([0-9a-f]{64})",), is_content_addressed=True),
]

TOOLS = sorted({client.tool for client in CLIENTS})

_PLAIN = r"/plain/([a-z][a-z0-9-]{0,30})/([^/]+)"


class Entry:
    """An entry of a tool's cache. `hash` is its name in Larder, and `digest` the SHA-256 that its bytes must have.

    `query` names the team, `""` for that of the sidecar.
    """

    def __init__(
        self, client: Client, hash: str, digest: str | None = None, query: str = ""
    ) -> None:
        self.client, self.hash, self.digest, self.query = client, hash, digest, query
        self.key = hash, query
        self.is_lookup = not client.is_content_addressed
        """Whether the tool counts it as a hit or a miss. Files that a result names belong to the result."""


def find_entry(path: str) -> Entry | None:
    """The entry at a path without its query. None if no tool uses the path."""
    # `re` keeps what it has compiled. All of them would take as long as ten modules, and turbo uses none.
    for client in CLIENTS:
        for pattern in client.paths:
            match = re.fullmatch(pattern, path)
            if match:
                key = "".join(match.groups())
                digest = key if client.is_content_addressed else None
                return Entry(client, hash_of(client.name, key), digest)
    match = re.fullmatch(_PLAIN, path)
    if match:
        return Entry(Client(match[1]), hash_of(match[1], match[2]))
    return None


def dropped_at(path: str) -> int | None:
    """What a tool bears as the answer to an upload at an unknown path below its own. None if no tool uses the path."""
    for client in CLIENTS:
        if path.startswith(client.paths[0].partition("(")[0]):
            return client.dropped
    return None


def hash_of(client: str, key: str) -> str:
    """`<client>-<key>`, with the key's SHA-256 if Larder would not accept it."""
    name = f"{client}-{key}"
    if re.fullmatch(_NAME, name):
        return name
    # Loads OpenSSL, for which the start of a build would wait.
    import hashlib

    return f"{client}-x{hashlib.sha256(key.encode()).hexdigest()}"
