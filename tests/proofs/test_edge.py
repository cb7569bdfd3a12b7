"""The edge of a running local cloud: no request and no interruption changes an artifact."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from larder.artifacts.models import Totals
from larder.artifacts.repository.totals import read_totals
from larder_cli.http import is_of_edge
from tests.direct_uploads import PREFLIGHT
from tests.e2e import cloud as local_clouds
from tests.e2e.cloud import LocalCloud
from tests.edge.requests import TAG
from tests.local.stub_service import eventually
from tests.proofs.stored import stored_versions, wait_for_events
from tests.proofs.test_memory import check_memory
from tests.requests import Cloud

pytestmark = pytest.mark.slow

SIZE = 400_000
WRITERS = 64


@pytest.fixture(scope="module")
def local_cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """In place of the shared one, which has no edge."""
    folder = tmp_path_factory.mktemp("cloud")
    with local_clouds.running(request.config.rootpath, folder / "data", EDGE="1") as server:
        yield server


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=120) as client:
        yield client


class Scene:
    """A team on the local cloud, and a key of it."""

    def __init__(self, http: httpx.Client, server: LocalCloud, team: Cloud) -> None:
        self._http = http
        self._server = server
        self.team = team

    def _ask(self, method: str, hash: str, headers: dict[str, str]) -> httpx.Response:
        url = f"{self._server.url}/v8/artifacts/{hash}?slug={self.team.team.slug}"
        token = {"authorization": f"Bearer {self.team.token}"}
        return self._http.request(method, url, headers={**token, **headers})

    def offer(self, hash: str) -> str:
        return self._ask("OPTIONS", hash, dict(PREFLIGHT)).headers["location"]

    def read(self, hash: str) -> httpx.Response:
        reply = self._ask("GET", hash, {})
        return self._http.get(reply.headers["location"]) if reply.is_redirect else reply

    def put(self, url: str, body: bytes, **headers: str) -> int:
        return self._http.put(url, content=body, headers=headers).status_code

    def stored(self) -> list[int]:
        """The size of every version in the bucket."""
        wait_for_events(self._server.data)
        return sorted(size for _, size in stored_versions(self.team.team.id))


@pytest.fixture
def scene(http: httpx.Client, local_cloud: LocalCloud, new_team: Cloud) -> Scene:
    return Scene(http, local_cloud, new_team)


def test_no_other_request_to_an_address_changes_the_artifact(scene: Scene, http: httpx.Client) -> None:
    url, body = scene.offer("abc"), b"1" * SIZE
    assert scene.put(url, body, **{"x-artifact-tag": TAG, "x-artifact-duration": "17"}) == 200
    other = b"2" * SIZE
    path = urlsplit(url).path
    attempts = {
        "replay": scene.put(url, other),
        "another size": scene.put(url, other + b"2"),
        "a larger size than it says": scene.put(re.sub(r"&m=\d+", "&m=1", url), other),
        "another path": scene.put(url.replace(path, path[:-1] + "_"), other),
        "later": scene.put(re.sub(r"&e=\d+", "&e=4102444800", url), other),
        "expired": scene.put(re.sub(r"&e=\d+", "&e=1000000000", url), other),
        "appended parameters": scene.put(f"{url}&teamId=team_x&slug=x&versionId=1", other),
        "chunked": http.put(url, content=iter([other])).status_code,
        "headers of S3": scene.put(
            url, other, **{"x-amz-copy-source": "/b/k", "x-amz-meta-writer": "x", "x-amz-acl": "x"}
        ),
    }
    for method in ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS"):
        attempts[method] = http.request(method, url).status_code
    assert {name: status for name, status in attempts.items() if status < 400} == {}
    found = scene.read("abc")
    assert (found.content, found.headers["x-artifact-tag"]) == (body, TAG)
    assert found.headers["x-artifact-duration"] == "17"
    assert scene.stored() == [SIZE]
    assert read_totals(scene.team.team.id) == Totals(size_bytes=SIZE, artifacts=1)


def test_of_many_writers_of_one_hash_one_wins_and_all_readers_get_it(scene: Scene) -> None:
    bodies = [b"%04d" % number * (SIZE // 4) for number in range(WRITERS)]

    def write(body: bytes) -> int:
        return scene.put(scene.offer("abc"), body, **{"x-artifact-tag": TAG})

    with ThreadPoolExecutor(max_workers=16) as pool:
        writes = list(pool.map(write, bodies))
    assert set(writes) == {200}
    wait_for_events(scene._server.data)
    found = {scene.read("abc").content for _ in range(4)}
    assert len(found) == 1
    assert found <= set(bodies)
    assert scene.read("abc").headers["x-artifact-tag"] == TAG
    assert read_totals(scene.team.team.id) == Totals(size_bytes=SIZE, artifacts=1)


def test_a_kill_in_an_upload_leaves_no_artifact_and_the_next_upload_works(
    scene: Scene, local_cloud: LocalCloud
) -> None:
    url, body = scene.offer("abc"), os.urandom(SIZE)
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), 30) as connection:
        head = f"PUT {address.path}?{address.query} HTTP/1.1\r\nHost: edge\r\nContent-Length: {SIZE}\r\n\r\n"
        connection.sendall(head.encode() + body[: SIZE // 2])
        assert eventually(lambda: unfinished(local_cloud.data), 60)
        os.kill(edge_process(local_cloud), signal.SIGKILL)
    assert eventually(lambda: reaches(scene, url), 60)
    assert scene.read("abc").status_code == 404
    assert scene.stored() == []
    assert scene.put(url, body) == 200
    assert scene.read("abc").content == body
    assert scene.stored() == [SIZE]


def unfinished(data: Path) -> bool:
    """Whether the bucket is receiving an upload."""
    return any((data / "s3" / ".nanio" / "unfinished").iterdir())


def reaches(scene: Scene, url: str) -> bool:
    try:
        return scene._http.get(url).status_code == 404
    except httpx.TransportError:
        return False


def edge_process(cloud: LocalCloud) -> int:
    assert cloud.process is not None
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    (found,) = (
        int(line.split()[0])
        for line in listed.splitlines()
        if "local.object_storage" in line and int(line.split()[1]) == cloud.process.pid
    )
    return found


@pytest.mark.skipif("PASSING_MB" not in os.environ, reason="sends gigabytes: `make proofs` runs it")
def test_memory_does_not_grow_with_large_artifacts(
    local_cloud: LocalCloud, scene: Scene, tmp_path: Path, report_lines: list[str]
) -> None:
    assert is_of_edge(scene.offer("abc"))
    passing_mb = int(os.environ["PASSING_MB"])
    check_memory(local_cloud, tmp_path, passing_mb, report_lines, "memory of the edge")
