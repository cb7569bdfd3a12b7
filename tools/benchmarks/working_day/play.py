"""Play the day with the real turbo against a local cloud, and count the hits in turbo's summaries.

Steps run one after another, so the same seed gives the same hits. Each hit and miss is compared with a model of the
policy: what has been stored before in a scope that the build reads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.e2e import turbo
from tests.e2e.cloud import LocalCloud
from tests.issuer import Issuer, github_claims
from tools.benchmarks.working_day import repository
from tools.benchmarks.working_day.model import (
    MAIN,
    Cache,
    Figures,
    Policy,
    Site,
    laptop,
    pull_request,
)
from tools.benchmarks.working_day.plan import Action, Day, Step
from tools.benchmarks.working_day.repository import Checkout

_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105  # the name of a type
_MAIN = {"event_name": "push", "ref": "refs/heads/main"}
_PASSWORD = "correct horse battery"  # noqa: S105  # of users in a local cloud


@dataclass(frozen=True)
class Played:
    """The figures by policy, and the steps of the day that were played."""

    figures: Mapping[Policy, Figures]
    steps: Sequence[Step]


@dataclass(frozen=True)
class Builder:
    """A machine with its credential."""

    site: Site
    checkout: Checkout
    client: turbo.Client


class Team:
    """A team with one policy, and the checkouts of its day."""

    def __init__(
        self,
        policy: Policy,
        day: Day,
        *,
        cloud: LocalCloud,
        issuer: Issuer,
        command: Path,
        folder: Path,
    ) -> None:
        self.policy = policy
        self._day = day
        self._cloud = cloud
        self._issuer = issuer
        self._command = command
        self._folder = folder
        self._home = folder / "home"
        self._home.mkdir(parents=True)
        self._path = f"{repository.fake_npm(folder / 'bin')}:{os.environ['PATH']}"
        self._origin = repository.create(folder, day.monorepo(), self._home)
        self.slug = f"day-{policy.value}"
        self.figures = Figures()
        self._cache = Cache(policy)
        self._tokens = self._laptop_keys(day.engineers)
        protection = () if policy is Policy.PROTECTED else ("--no-protect",)
        cloud.larder(
            *("trust", "add", self.slug, "--github", "acme/web", "--issuer", issuer.url),
            *protection,
        )
        clone = Checkout.clone
        self._ci = clone(self._origin, folder / "ci", self._home)
        self._laptops = [
            clone(self._origin, folder / f"laptop-{number}", self._home)
            for number in range(day.engineers)
        ]

    def begin(self) -> None:
        """Build main, as on the evening before. That does not count."""
        self._build_main()
        self.figures = Figures()

    def play(self, step: Step) -> None:
        checkout = self._laptops[step.engineer]
        branch = f"change-{step.change}"
        match step.action:
            case Action.PULL:
                checkout.pull()
            case Action.BRANCH:
                checkout.branch(branch)
            case Action.EDIT:
                checkout.edit(step.package, step.change, f"{branch}, edit {step.edit}")
            case Action.UPDATE:
                checkout.merge("main")
            case Action.PUSH:
                checkout.push(branch)
                self._ci.restart_at_main()
                self._ci.merge(branch)
                self.build(self._pull_request(step.change))
                return
            case Action.MERGE:
                self._ci.restart_at_main()
                self._ci.merge(branch)
                self._ci.git("push", "--quiet", "origin", "HEAD:main")
                self._build_main()
                return
        self.build(self._laptop(step.engineer))

    def _build_main(self) -> None:
        self._ci.restart_at_main()
        self.build(Builder(MAIN, self._ci, self._client(self._job_token(**_MAIN))))

    def _pull_request(self, change: int) -> Builder:
        site = pull_request(change)
        client = self._client(self._job_token(event_name="pull_request", ref=site.scope))
        return Builder(site, self._ci, client)

    def _laptop(self, number: int) -> Builder:
        only_reads = {"TURBO_CACHE": "local:rw,remote:r"} if self.policy is Policy.CI_ONLY else {}
        client = self._client(self._tokens[number], **only_reads)
        return Builder(laptop(number), self._laptops[number], client)

    def build(self, builder: Builder) -> None:
        """Run turbo, and count its hits."""
        run = turbo.build(builder.client, builder.checkout.root)
        hits = [task.local or task.remote for task in run.tasks]
        expected = [self._cache.has(builder.site, task.hash) for task in run.tasks]
        self.figures.count(builder.site, hits)
        self.figures.unexpected += sum(
            one != other for one, other in zip(hits, expected, strict=True)
        )
        self._cache.note(builder.site, [task.hash for task in run.tasks])

    def _client(self, token: str, **variables: str) -> turbo.Client:
        return turbo.Client(
            command=self._command,
            version=turbo.NEWEST,
            remote_cache={
                "TURBO_API": self._cloud.url,
                "TURBO_TOKEN": token,
                "TURBO_TEAM": self.slug,
            },
            home=self._home,
            ci={"PATH": self._path, **variables},
        )

    def _job_token(self, **claims: Any) -> str:
        minted = self._issuer.mint({**github_claims(**claims), "aud": self._cloud.url})
        form = {
            "grant_type": _GRANT,
            "subject_token_type": _ID_TOKEN,
            "subject_token": minted,
            "team_id_or_slug": self.slug,
        }
        return str(self._post("/login/oauth/token", data=form)["access_token"])

    def _laptop_keys(self, laptops: int) -> list[str]:
        """A key for each laptop. In a protected team, each key has a scope of its own, as each user has."""
        email = f"owner@{self.slug}.example"
        body = {"name": "Owner", "email": email, "password": _PASSWORD}
        session = self._post("/api/auth/sign-up/email", json=body)["token"]
        made = self._cloud.larder(
            *("teams", "create", "--name", self.slug, "--slug", self.slug, "--owner", email),
            "--unverified",
        )
        key = {"name": "laptop", "teamId": made["id"]}
        headers = {"Authorization": f"Bearer {session}"}
        return [
            str(self._post("/api/auth/api-key/create", json=key, headers=headers)["key"])
            for _ in range(laptops)
        ]

    def _post(self, path: str, **body: Any) -> Mapping[str, Any]:
        reply = httpx.post(f"{self._cloud.url}{path}", **body, timeout=30, trust_env=False)
        reply.raise_for_status()
        found: Mapping[str, Any] = reply.json()
        return found
