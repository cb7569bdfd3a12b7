"""A team with a rule for acme/web at GitHub, whose keys are known, and a protected team."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from larder import clock
from larder.settings import settings
from larder.trust.models import NewRule, Rule
from larder.trust.rules import create_rule
from tests.conftest import BeginWith
from tests.issuer import ORIGIN, Issuer, github_claims
from tests.requests import Cloud, Reply, Sender
from tests.trust.exchanging import exchange
from tests.trust.scene import Scene, make_scene, protected

GITHUB_IDS = {"repository_id": "74", "repository_owner_id": "65"}


@dataclass
class Trusting:
    """The team, its rule, and the issuer of the rule."""

    cloud: Cloud
    rule: Rule
    issuer: Issuer

    def exchange(self, token: str | None = None, **fields: str) -> Reply:
        """Exchange a token of a push to main, or another one."""
        if token is None:
            token = self.issuer.mint(github_claims())
        return exchange(token, **fields)

    def job(self, **claims: Any) -> Reply:
        """Exchange a token of a job at GitHub whose claims differ in these."""
        return self.exchange(self.issuer.mint(github_claims(**claims)))

    def token(self, **claims: Any) -> Sender:
        """The token of such a job."""
        reply = self.job(**claims)
        assert reply.status == 200, reply
        return Sender(reply.json["access_token"], slug=self.cloud.team.slug)


@pytest.fixture
def trusting(begin_with: BeginWith, cloud: Cloud) -> Trusting:
    return begin_with(_make_trusting, cloud)


def _make_trusting(cloud: Cloud) -> Trusting:
    issuer = Issuer()
    issuer.publish()
    return Trusting(cloud, made_rule(cloud, provider="github", pinned=GITHUB_IDS), issuer)


def made_rule(cloud: Cloud, **new: Any) -> Rule:
    origin = settings().base_url or ORIGIN
    return create_rule(cloud.team.id, NewRule(**new), by=None, origin=origin, now=clock.now())


@pytest.fixture
def unprotected(begin_with: BeginWith, cloud: Cloud) -> Scene:
    return begin_with(make_scene, cloud)


@pytest.fixture
def scene(unprotected: Scene) -> Iterator[Scene]:
    """The same, protected."""
    with protected(unprotected.cloud):
        yield unprotected
