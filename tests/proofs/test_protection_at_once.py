"""Attacks 2, 23 and 28 of docs/protection.md#attacks with forty uploads at once on the local cloud."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import httpx
import pytest

from larder import clock
from larder.api_keys.models import TRUST, NewKey
from larder.api_keys.service import create_key
from larder.teams.protection import ProtectionChange, change_protection
from tests.e2e.cloud import LocalCloud
from tests.proofs.stamped import PREFLIGHT, http_client
from tests.requests import Cloud

pytestmark = pytest.mark.slow

AT_ONCE = 40
CLEAN, POISON = b"clean" * 100, b"poison" * 100


@dataclass(frozen=True)
class Job:
    http: httpx.Client
    url: str
    token: str

    def put(self, hash: str, body: bytes) -> None:
        assert self._send("PUT", hash, content=body).status_code == 202

    def offer(self, hash: str) -> str:
        return self._send("OPTIONS", hash, headers=PREFLIGHT).headers["location"]

    def read(self, hash: str) -> bytes | None:
        reply = self._send("GET", hash)
        return None if reply.status_code == 404 else reply.content

    def _send(
        self,
        method: str,
        hash: str,
        *,
        content: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        sent = {"authorization": f"Bearer {self.token}", **(headers or {})}
        return self.http.request(
            method, f"{self.url}/v8/artifacts/{hash}", content=content, headers=sent
        )


def test_uploads_while_the_team_is_protected(local_cloud: LocalCloud, new_team: Cloud) -> None:
    """Every second upload is direct. None of them shows to main, whenever its request read the team."""
    trusted = NewKey(
        user_id=new_team.user.id,
        team_id=new_team.team.id,
        permissions={"artifacts": ("read", "write", TRUST)},
    )
    with http_client(AT_ONCE) as http:
        pr = Job(http, local_cloud.url, new_team.token)
        main = Job(http, local_cloud.url, create_key(trusted, now=clock.now())[1])
        hashes = [f"{number:016x}" for number in range(AT_ONCE)]
        protected = Event()

        def attack(number: int) -> Callable[[], None]:
            def upload() -> None:
                # Some begin before the protection, some while it is written, and the last one after it.
                time.sleep(number * 0.01)
                if number == AT_ONCE - 1:
                    protected.wait(20)
                if number % 2:
                    http.put(pr.offer(hashes[number]), content=POISON)
                else:
                    pr.put(hashes[number], POISON)

            return upload

        with ThreadPoolExecutor(AT_ONCE) as pool:
            attacks = [pool.submit(attack(number)) for number in range(AT_ONCE)]
            time.sleep(AT_ONCE * 0.005)
            protection = change_protection(
                new_team.team.id, ProtectionChange(protected=True), by=None
            )
            protected.set()
            for done in attacks:
                done.result()
        time.sleep(max(0, (protection.trusted_from - clock.now()).total_seconds()))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            assert set(pool.map(main.read, hashes)) == {None}
            own = list(pool.map(pr.read, hashes))
            assert own[-1] == POISON
            list(pool.map(lambda hash: main.put(hash, CLEAN), hashes))
            # The addresses that were offered, and replayed requests, after main has built.
            list(pool.map(lambda hash: http.put(pr.offer(hash), content=POISON), hashes))
            list(pool.map(lambda hash: pr.put(hash, POISON), hashes))
            for job in (main, pr):
                assert set(pool.map(job.read, hashes)) == {CLEAN}
