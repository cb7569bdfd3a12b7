"""The bytes of a published artifact never change, even if others are sent to its upload URL."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import httpx
import pytest

from larder import clock
from larder.api_keys.keys import create_key, revoke_key
from larder.api_keys.properties import NewKey
from larder.artifacts.models import Totals
from larder.artifacts.repository.totals import read_totals
from tests.direct_uploads import PREFLIGHT
from tests.e2e.cloud import LocalCloud
from tests.proofs.stored import stored_versions, wait_for_events
from tests.requests import Cloud

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("PUBLISHED_ROUNDS") or 2)
"""The number of artifacts in each test."""

SIZES = {"from the index": 1_000, "through the function": 100_000, "by redirect": 400_000}


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=60, follow_redirects=True) as client:
        yield client


class Scene:
    """A team on the local cloud. One key uploads, and another one reads."""

    def __init__(self, http: httpx.Client, server: LocalCloud, team: Cloud) -> None:
        self._http = http
        self._server = server
        self._team = team
        self.writer, self._writing = create_key(NewKey(user_id=team.user.id, team_id=team.team.id), now=clock.now())

    def _url(self, hash: str) -> str:
        return f"{self._server.url}/v8/artifacts/{hash}?slug={self._team.team.slug}"

    def offer(self, hash: str) -> str:
        headers = {"authorization": f"Bearer {self._writing}", **PREFLIGHT}
        reply = self._http.options(self._url(hash), headers=headers, follow_redirects=False)
        return reply.headers["location"]

    def upload(self, location: str, body: bytes) -> None:
        # With headers of a page.
        sent = {"content-type": "text/html", "cache-control": "public, max-age=31536000"}
        assert self._http.put(location, content=body, headers=sent).status_code == 200

    def read(self, hash: str) -> bytes:
        headers = {"authorization": f"Bearer {self._team.token}"}
        reply = self._http.get(self._url(hash), headers=headers)
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"] == "application/octet-stream"
        if reply.history:
            assert reply.headers["cache-control"] == "no-store"
            assert reply.headers["content-disposition"] == "attachment"
        return reply.content

    def delivered(self) -> None:
        wait_for_events(self._server.data)


@pytest.fixture
def scene(http: httpx.Client, local_cloud: LocalCloud, new_team: Cloud) -> Scene:
    return Scene(http, local_cloud, new_team)


@pytest.mark.parametrize(
    "more_bytes", [pytest.param(0, id="same size"), pytest.param(1_234, id="another size", marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_later_uploads_to_the_same_url_do_not_change_the_published_bytes(
    scene: Scene, new_team: Cloud, local_cloud: LocalCloud, size: int, more_bytes: int
) -> None:
    """Read each artifact during and after other uploads to its URL, and after the uploader's key is revoked."""
    first = b"1" * size
    others = [digit * (size + more_bytes) for digit in (b"2", b"3", b"4")]
    urls = {f"hash{number}": scene.offer(f"hash{number}") for number in range(ROUNDS)}
    for hash, url in urls.items():
        scene.upload(url, first)
        assert scene.read(hash) == first
        with ThreadPoolExecutor(max_workers=6) as pool:
            uploads = [pool.submit(scene.upload, url, other) for other in others]
            reads = [pool.submit(scene.read, hash) for _ in range(6)]
            assert all(read.result() == first for read in reads)
            for upload in uploads:
                upload.result()
    scene.delivered()
    revoke_key(scene.writer)
    for hash, url in urls.items():
        scene.upload(url, others[0])
        assert scene.read(hash) == first
    scene.delivered()
    local_cloud.stop()
    local_cloud.start()
    assert all(scene.read(hash) == first for hash in urls)
    assert read_totals(new_team.team.id) == Totals(size_bytes=ROUNDS * size, artifacts=ROUNDS)
    assert [found for _, found in stored_versions(new_team.team.id)] == ROUNDS * [size]


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_readers_agree_on_one_of_several_uploads_that_arrive_before_any_is_published(
    scene: Scene, new_team: Cloud, size: int
) -> None:
    sent = [digit * (size + int(digit)) for digit in (b"1", b"2", b"3")]
    seen: dict[str, bytes] = {}
    for number in range(ROUNDS):
        hash = f"hash{number}"
        url = scene.offer(hash)
        with ThreadPoolExecutor(max_workers=3) as pool:
            for upload in [pool.submit(scene.upload, url, body) for body in sent]:
                upload.result()
        found = [scene.read(hash) for _ in range(4)]
        assert found[0] in sent
        assert all(one == other for one, other in pairwise(found))
        seen[hash] = found[0]
    scene.delivered()
    assert {hash: scene.read(hash) for hash in seen} == seen
    stored = sorted(len(body) for body in seen.values())
    assert read_totals(new_team.team.id) == Totals(size_bytes=sum(stored), artifacts=ROUNDS)
    assert sorted(found for _, found in stored_versions(new_team.team.id)) == stored
