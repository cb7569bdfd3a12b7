"""Real exchanges with the claims of each CI: which jobs are trusted, which are not, and which get no token."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from larder import clock
from larder.issuers.service import add_issuer
from larder.issuers.urls import is_trusted, parse_issuer
from larder.teams.teams import create_team
from larder.trust.models import NewRule, Others, Rule
from larder.trust.providers import PROVIDERS
from larder.trust.rules import create_rule
from tests.issuer import ORIGIN, Issuer
from tests.requests import Cloud, Reply
from tests.trust.ci_claims import ROWS, Ci, Claims
from tests.trust.exchanging import exchange, refusal

each_ci = pytest.mark.parametrize("name", ROWS)
REFUSED = (400, "invalid_request")


@dataclass(frozen=True)
class Connected:
    """A team with a rule for a repository at one CI."""

    ci: Ci
    rule: Rule

    def job(self, changed: Claims, **fields: str) -> Reply:
        """Exchange the token of a job that differs in these claims from one of the main branch."""
        claims = {"aud": self.ci.audience, **self.ci.trusted, **changed}
        return exchange(Issuer(changed.get("iss", self.ci.issuer)).mint(claims), **fields)


@pytest.fixture
def connected(name: str, cloud: Cloud) -> Connected:
    ci = ROWS[name]
    return Connected(ci, rule_for(name, cloud.team.id, {}))


def rule_for(name: str, team_id: str, changed: Claims) -> Rule:
    """A rule of the team for these jobs. The keys of their issuer are known."""
    ci = ROWS[name]
    issuer = changed.get("iss", ci.issuer)
    if not is_trusted(issuer):
        add_issuer(issuer, None, origin=ORIGIN)
    Issuer(issuer).publish()
    pinned = {pin: changed.get(pin, value) for pin, value in ci.rule["pinned"].items()}
    new = NewRule(provider=name, issuer=issuer, **{**ci.rule, "pinned": pinned})
    return create_rule(team_id, new, by=None, origin=ORIGIN, now=clock.now())


@each_ci
def test_a_job_of_the_main_branch_is_trusted(connected: Connected) -> None:
    reply = connected.job({})
    assert reply.status == 200, reply
    assert reply.json["larder"]["cacheScope"] == "shared"
    assert reply.json["scope"] == "artifacts:read artifacts:write"


@each_ci
def test_pull_requests_write_a_scope_of_their_own(connected: Connected) -> None:
    for changed in connected.ci.pulls:
        reply = connected.job(changed)
        assert reply.status == 200, (changed, reply)
        if connected.rule.others is Others.READ:
            # Nothing says by which claim own scopes differ.
            assert reply.json["scope"] == "artifacts:read"
        else:
            assert reply.json["scope"] == "artifacts:read artifacts:write"
            assert reply.json["larder"]["cacheScope"] != "shared", changed


@each_ci
def test_other_jobs_do_not_write_the_shared_scope(connected: Connected) -> None:
    for changed in connected.ci.others:
        reply = connected.job(changed)
        assert reply.status == 200, (changed, reply)
        writes = "artifacts:write" in reply.json["scope"]
        assert not writes or reply.json["larder"]["cacheScope"] != "shared", changed


@each_ci
def test_jobs_of_other_repositories_get_no_token(connected: Connected) -> None:
    for changed in (*connected.ci.elsewhere, *connected.ci.refused):
        reply = connected.job(changed)
        assert refusal(reply) == REFUSED, changed


@each_ci
def test_jobs_of_other_customers_get_no_token(name: str, connected: Connected, cloud: Cloud) -> None:
    """Their claims name the same repository, and their own team has a rule that accepts them."""
    tenant = connected.ci.tenant
    theirs = create_team("Theirs", "theirs", owner_user_id=cloud.user.id, now=clock.now())
    rule_for(name, theirs.id, tenant)
    assert connected.job(tenant, team_id_or_slug="theirs").status == 200
    assert refusal(connected.job(tenant)) == REFUSED


@pytest.mark.usefixtures("cloud")
def test_every_provider_has_a_row() -> None:
    assert ROWS.keys() == PROVIDERS.keys()
    for row in ROWS.values():
        assert parse_issuer(row.issuer, origin=ORIGIN) == row.issuer
        assert is_trusted(row.issuer) is row.is_hosted
