"""One job of each CI: the claims of its tokens, which of its jobs are trusted, and by what own scopes differ.

The names of the claims are those of the documentation of each CI. The values are made up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from larder import clock
from larder.issuers.service import add_issuer
from larder.issuers.urls import is_trusted, parse_issuer
from larder.trust.models import Explanation, Others
from larder.trust.providers import PROVIDERS
from larder.trust.rules import explain
from tests.issuer import ORIGIN, github_claims, gitlab_claims
from tests.requests import Cloud
from tests.trust.conftest import made_rule

Claims = dict[str, Any]
CIRCLE = "oidc.circleci.com/"


@dataclass(frozen=True, kw_only=True)
class Row:
    """`trusted` are the claims of a trusted job, `others` the changes that make it another one."""

    issuer: str
    rule: dict[str, Any]
    trusted: Claims
    others: list[Claims]
    refused: list[Claims] = field(default_factory=list)
    audience: str = ORIGIN
    is_hosted: bool = True


ROWS = {
    "github": Row(
        issuer="https://token.actions.githubusercontent.com",
        rule={"pinned": {"repository_id": "74", "repository_owner_id": "65"}},
        trusted=github_claims(),
        others=[
            {"event_name": "pull_request", "ref": "refs/pull/7/merge"},
            {"ref": "refs/tags/v1"},
        ],
        refused=[{"repository_owner_id": "66"}],
    ),
    "gitlab": Row(
        issuer="https://gitlab.com",
        rule={"pinned": {"project_id": "22", "namespace_id": "72"}},
        trusted=gitlab_claims(),
        others=[{"ref_protected": "false"}, {"ref_path": "refs/tags/main", "ref_type": "tag"}],
        refused=[{"project_id": "23"}],
    ),
    "circleci": Row(
        issuer="https://oidc.circleci.com/org/8be1b2a5-7ee0-4f7d-a3a9-6e3a2c7d2f11",
        rule={
            "pinned": {f"{CIRCLE}project-id": "6f1b"},
            "claims": {f"{CIRCLE}vcs-origin": ("github.com/acme/web",)},
        },
        trusted={
            f"{CIRCLE}project-id": "6f1b",
            f"{CIRCLE}context-ids": [],
            f"{CIRCLE}job-id": "2c1d",
            f"{CIRCLE}pipeline-id": "77aa",
            f"{CIRCLE}ssh-rerun": False,
            f"{CIRCLE}vcs-origin": "github.com/acme/web",
            f"{CIRCLE}vcs-ref": "refs/heads/main",
            f"{CIRCLE}workflow-id": "91f0",
        },
        others=[
            {f"{CIRCLE}vcs-ref": "refs/heads/pull/7"},
            {f"{CIRCLE}vcs-origin": "github.com/e/w"},
        ],
        refused=[{f"{CIRCLE}ssh-rerun": True}, {f"{CIRCLE}project-id": "6f1c"}],
    ),
    "buildkite": Row(
        issuer="https://agent.buildkite.com",
        rule={"pinned": {"pipeline_id": "0184", "organization_id": "0183"}},
        trusted={
            "organization_slug": "acme",
            "organization_id": "0183",
            "pipeline_slug": "web",
            "pipeline_id": "0184",
            "build_number": 41,
            "build_branch": "main",
            "build_commit": "9f3182061f1e2cca4702c368cbc039b7dc9d4485",
            "build_source": "webhook",
            "job_id": "0184-990a",
            "agent_id": "0184-990b",
        },
        others=[{"build_source": "ui"}, {"build_branch": "x"}, {"build_branch": "refs/heads/main"}],
        refused=[{"pipeline_id": None}, {"organization_id": "0182"}],
    ),
    "bitbucket": Row(
        issuer="https://api.bitbucket.org/2.0/workspaces/acme/pipelines-config/identity/oidc",
        rule={
            "pinned": {"repositoryUuid": "{21e7}"},
            "audience": "ari:cloud:bitbucket::workspace/1",
        },
        trusted={
            "branchName": "main",
            "pipelineUuid": "{c1a0}",
            "repositoryUuid": "{21e7}",
            "stepUuid": "{6b0d}",
            "workspaceUuid": "{ba52}",
        },
        others=[{"branchName": "x"}, {"branchName": None}],
        refused=[{"repositoryUuid": "{21e8}"}, {"aud": ORIGIN}],
        audience="ari:cloud:bitbucket::workspace/1",
    ),
    "azure": Row(
        issuer="https://vstoken.dev.azure.com/7c1f",
        rule={"pinned": {"def_id": "12", "prj_id": "5d1e", "org_id": "7c1f"}},
        trusted={
            "org_id": "7c1f",
            "prj_id": "5d1e",
            "def_id": "12",
            "rpo_id": "acme/web",
            "rpo_ref": "refs/heads/main",
            "rpo_ver": "9f31820",
            "run_id": "310",
        },
        others=[{"rpo_ref": "refs/pull/7/merge"}, {"rpo_ref": None, "sub": "sc://acme/web/aws"}],
        refused=[{"def_id": "13"}, {"org_id": "7c20"}],
        audience="api://AzureADTokenExchange",
    ),
    "jenkins": Row(
        issuer="https://ci.acme.example/oidc",
        rule={
            "pinned": {"sub": "https://ci.acme.example/job/web/"},
            "claims": {"branch": ("main",)},
            "scope_claim": "branch",
        },
        trusted={"sub": "https://ci.acme.example/job/web/", "build_number": 7, "branch": "main"},
        others=[{"branch": "PR-7"}, {"branch": None}],
        refused=[{"sub": "https://ci.acme.example/job/evil/"}],
        is_hosted=False,
    ),
    "generic": Row(
        issuer="https://ci.example.com",
        rule={"pinned": {"project": "web"}, "claims": {"trusted": ("true",)}},
        trusted={"project": "web", "trusted": True},
        others=[{"trusted": False}, {"trusted": None}],
        refused=[{"project": "Web"}, {"project": None}],
        is_hosted=False,
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_jobs_of_a_ci(name: str, cloud: Cloud) -> None:
    row = ROWS[name]
    assert is_trusted(row.issuer) is row.is_hosted
    if not row.is_hosted:
        add_issuer(row.issuer, None, origin=ORIGIN)
    rule = made_rule(cloud, provider=name, issuer=row.issuer, **row.rule)

    def said(changed: Claims) -> Explanation:
        claims = {"iss": row.issuer, "aud": row.audience, "sub": "x", **row.trusted, **changed}
        sent = {key: value for key, value in claims.items() if value is not None}
        (found,) = explain(cloud.team.id, sent, origin=ORIGIN, now=clock.now())
        return found

    match = said({}).match
    assert match is not None
    assert (match.distrusted, match.scope, match.actions) == ((), "shared", ("read", "write"))
    scopes = set()
    for changed in row.others:
        other = said(changed)
        assert other.match is not None, other.refused
        assert other.match.distrusted, changed
        # Without the claim by which own scopes differ, the token only reads.
        own = other.match.scope != "shared"
        assert other.match.actions == (("read", "write") if own else ("read",))
        scopes.add(other.match.scope)
    assert len(scopes) == len(row.others) or rule.others is Others.READ
    for changed in row.refused:
        assert said(changed).refused, changed


def test_every_provider_has_a_row() -> None:
    assert ROWS.keys() == PROVIDERS.keys()
    for row in ROWS.values():
        assert parse_issuer(row.issuer, origin=ORIGIN) == row.issuer
