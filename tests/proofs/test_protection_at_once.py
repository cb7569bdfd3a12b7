"""Attacks 2, 5, 23, 26, 28 and 29 of docs/protection.md#attacks with forty requests at once on the local cloud."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import httpx
import pytest

from larder import clock
from larder.api_keys.keys import create_key
from larder.api_keys.models import TRUST
from larder.api_keys.properties import NewKey
from larder.teams.protection import ProtectionChange, change_protection
from larder.trust.exchange import exchange
from larder.trust.models import ExchangeRequest, NewRule, Rule, RuleChange
from larder.trust.rules import change_rule, create_rule
from tests.e2e.cloud import LocalCloud
from tests.issuer import ORIGIN, Issuer, github_claims
from tests.proofs.stamped import PREFLIGHT, http_client
from tests.proofs.stored import object_keys, wait_for_events
from tests.requests import Cloud

pytestmark = pytest.mark.slow

AT_ONCE = 40
RULE = NewRule(provider="github", pinned={"repository_id": "74", "repository_owner_id": "65"})
HASHES = [f"{number:016x}" for number in range(AT_ONCE)]
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
        self, method: str, hash: str, *, content: bytes | None = None, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        sent = {"authorization": f"Bearer {self.token}", **(headers or {})}
        return self.http.request(method, f"{self.url}/v8/artifacts/{hash}", content=content, headers=sent)


def test_uploads_while_the_team_is_protected(local_cloud: LocalCloud, new_team: Cloud) -> None:
    """Every second upload is direct. None of them shows to main, whenever its request read the team."""
    trusted = NewKey(
        user_id=new_team.user.id, team_id=new_team.team.id, permissions={"artifacts": ("read", "write", TRUST)}
    )
    with http_client(AT_ONCE) as http:
        pr = Job(http, local_cloud.url, new_team.token)
        main = Job(http, local_cloud.url, create_key(trusted, now=clock.now())[1])
        protected = Event()

        def attack(number: int) -> Callable[[], None]:
            def upload() -> None:
                # Some begin before the protection, some while it is written, and the last one after it.
                time.sleep(number * 0.01)
                if number == AT_ONCE - 1:
                    protected.wait(20)
                if number % 2:
                    http.put(pr.offer(HASHES[number]), content=POISON)
                else:
                    pr.put(HASHES[number], POISON)

            return upload

        with ThreadPoolExecutor(AT_ONCE) as pool:
            attacks = [pool.submit(attack(number)) for number in range(AT_ONCE)]
            time.sleep(AT_ONCE * 0.005)
            protection = change_protection(new_team.team.id, ProtectionChange(protected=True), by=None)
            protected.set()
            for done in attacks:
                done.result()
        time.sleep(max(0, (protection.trusted_from - clock.now()).total_seconds()))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            assert set(pool.map(main.read, HASHES)) == {None}
            own = list(pool.map(pr.read, HASHES))
            assert own[-1] == POISON
            list(pool.map(lambda hash: main.put(hash, CLEAN), HASHES))
            # The addresses that were offered, and replayed requests, after main has built.
            list(pool.map(lambda hash: http.put(pr.offer(hash), content=POISON), HASHES))
            list(pool.map(lambda hash: pr.put(hash, POISON), HASHES))
            for job in (main, pr):
                assert set(pool.map(job.read, HASHES)) == {CLEAN}


def test_29_uploads_while_their_rule_is_disabled(local_cloud: LocalCloud, new_team: Cloud) -> None:
    """A trusted job was offered forty uploads. None that arrives after the rule has ended is published."""
    rule, early = trusting(new_team), AT_ONCE // 2
    with http_client(AT_ONCE) as http, ThreadPoolExecutor(AT_ONCE) as pool:
        job = Job(http, local_cloud.url, job_token(new_team))
        laptop = Job(http, local_cloud.url, new_team.token)
        urls = list(pool.map(job.offer, HASHES))
        disabled = Event()

        def upload(number: int) -> None:
            # The first half races with the change, and the other one comes after it.
            if number >= early:
                assert disabled.wait(20)
            assert http.put(urls[number], content=POISON).status_code == 200

        uploads = [pool.submit(upload, number) for number in range(AT_ONCE)]
        change(rule, RuleChange(enabled=False))
        disabled.set()
        for done in uploads:
            done.result()
        assert set(pool.map(laptop.read, HASHES[early:])) == {None}
        wait_for_events(local_cloud.data)
        change(rule, RuleChange(enabled=True))
        shown = list(pool.map(laptop.read, HASHES))
        assert set(shown[early:]) == {None}
        # Of the first half, some were published before the change, and stay.
        again = Job(http, local_cloud.url, job_token(new_team))
        for url in pool.map(again.offer, HASHES):
            assert http.put(url, content=CLEAN).status_code == 200
        assert list(pool.map(laptop.read, HASHES)) == [body or CLEAN for body in shown]


def test_5_jobs_with_code_of_a_pull_request_while_main_builds(local_cloud: LocalCloud, new_team: Cloud) -> None:
    """Their ref is that of main."""
    trusting(new_team)
    events = ("pull_request_target", "workflow_run", "issue_comment")
    with http_client(AT_ONCE) as http, ThreadPoolExecutor(AT_ONCE) as pool:
        main = Job(http, local_cloud.url, job_token(new_team))
        laptop = Job(http, local_cloud.url, new_team.token)
        attackers = [Job(http, local_cloud.url, job_token(new_team, event_name=event)) for event in events]

        def build(number: int) -> None:
            attacker, hash = attackers[number % len(attackers)], HASHES[number // 2]
            if number % 2:
                main.put(hash, CLEAN)
            else:
                http.put(attacker.offer(hash), content=POISON)
                attacker.put(hash, POISON)
            assert main.read(hash) in (CLEAN, None)
            assert laptop.read(hash) in (CLEAN, None)

        list(pool.map(build, range(AT_ONCE)))
        wait_for_events(local_cloud.data)
        for reader in (main, laptop, *attackers):
            assert set(pool.map(reader.read, HASHES[: AT_ONCE // 2])) == {CLEAN}


def test_26_uploads_to_a_leaked_url_after_it_was_published(local_cloud: LocalCloud, new_team: Cloud) -> None:
    """The other bytes have the same size."""
    trusting(new_team)
    clean, poison = b"1" * 10_000, b"2" * 10_000
    with http_client(AT_ONCE) as http, ThreadPoolExecutor(AT_ONCE) as pool:
        main = Job(http, local_cloud.url, job_token(new_team))
        laptop = Job(http, local_cloud.url, new_team.token)
        url = main.offer(HASHES[0])
        http.put(url, content=clean)
        assert main.read(HASHES[0]) == clean

        def attack_or_read(number: int) -> None:
            if number % 2:
                assert http.put(url, content=poison).status_code == 200
            assert laptop.read(HASHES[0]) == clean

        list(pool.map(attack_or_read, range(AT_ONCE)))
        wait_for_events(local_cloud.data)
        assert laptop.read(HASHES[0]) == clean
    assert len(object_keys(new_team.team.id)) == 1


def trusting(team: Cloud) -> Rule:
    """Protect the team, with a rule for acme/web at GitHub."""
    change_protection(team.team.id, ProtectionChange(protected=True, keep_stored=True), by=None)
    return create_rule(team.team.id, RULE, by=None, origin=ORIGIN, now=clock.now())


def change(rule: Rule, to: RuleChange) -> None:
    change_rule(rule.team_id, rule.id, to, by=None, now=clock.now())


def job_token(team: Cloud, **claims: str) -> str:
    """The token of a job at GitHub whose claims differ in these from those of a push to main."""
    issuer = Issuer()
    issuer.publish()
    asked = ExchangeRequest(team=team.team.id, id_token=issuer.mint(github_claims(**claims)))
    return exchange(asked, origin=ORIGIN, client=team.team.id, now=clock.now()).raw
