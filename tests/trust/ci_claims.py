"""The claims of a job of each CI, in the form that its documentation shows. The values are made up.

Times and, unless a row says otherwise, `jti` are added when a token is minted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.issuer import GITHUB, GITLAB, ORIGIN

Claims = dict[str, Any]
CIRCLECI = "oidc.circleci.com/"
SHA = "9f3182061f1e2cca4702c368cbc039b7dc9d4485"


@dataclass(frozen=True, kw_only=True)
class Ci:
    """One CI, with a rule for the repository acme/web.

    `source` is where the form of the claims is published. `trusted` are the claims of a job of the main branch. The
    others are changes to them: a job of a pull request (`pulls`), any other job that is not trusted (`others`), one of
    another repository (`elsewhere`), and one that is refused for another reason (`refused`). A job of `tenant` has the
    same claims by another customer's issuer or, where all customers share one, another customer's ids.
    """

    source: str
    issuer: str
    rule: dict[str, Any]
    trusted: Claims
    pulls: list[Claims]
    others: list[Claims]
    elsewhere: list[Claims]
    tenant: Claims
    refused: list[Claims] = field(default_factory=list)
    audience: str = ORIGIN
    is_hosted: bool = True


ROWS = {
    "github": Ci(
        source="https://docs.github.com/en/actions/concepts/security/openid-connect",
        issuer=GITHUB,
        rule={"pinned": {"repository_id": "74", "repository_owner_id": "65"}},
        trusted={
            "sub": "repo:acme/web:ref:refs/heads/main",
            "ref": "refs/heads/main",
            "ref_type": "branch",
            "ref_protected": "true",
            "sha": SHA,
            "repository": "acme/web",
            "repository_owner": "acme",
            "repository_visibility": "private",
            "repository_id": "74",
            "repository_owner_id": "65",
            "actor": "ada",
            "actor_id": "12",
            "run_id": "9914400",
            "run_number": "10",
            "run_attempt": "2",
            "runner_environment": "github-hosted",
            "workflow": "ci",
            "workflow_ref": "acme/web/.github/workflows/ci.yml@refs/heads/main",
            "workflow_sha": SHA,
            "job_workflow_ref": "acme/web/.github/workflows/ci.yml@refs/heads/main",
            "job_workflow_sha": SHA,
            "head_ref": "",
            "base_ref": "",
            "event_name": "push",
        },
        pulls=[
            {
                "sub": "repo:acme/web:pull_request",
                "event_name": "pull_request",
                "ref": "refs/pull/7/merge",
                "head_ref": "feature",
                "base_ref": "main",
                "ref_protected": "false",
            },
            # A job of an environment has a subject without a ref.
            {
                "sub": "repo:acme/web:environment:production",
                "environment": "production",
                "event_name": "pull_request_target",
                "head_ref": "feature",
                "base_ref": "main",
            },
        ],
        others=[{"ref": "refs/tags/main", "ref_type": "tag"}, {"ref": "refs/heads/x"}],
        elsewhere=[
            {"repository": "acme/docs", "repository_id": "75"},
            # Someone else took the name.
            {"repository_id": "99", "repository_owner_id": "98"},
        ],
        tenant={"iss": f"{GITHUB}/evil"},
    ),
    "gitlab": Ci(
        # Claims of merge requests from forks: gitlab.com/gitlab-org/gitlab/-/issues/561735
        source="https://docs.gitlab.com/ci/secrets/id_token_authentication/",
        issuer=GITLAB,
        rule={"pinned": {"project_id": "22", "namespace_id": "72"}},
        trusted={
            "sub": "project_path:acme/web:ref_type:branch:ref:main",
            "namespace_id": "72",
            "namespace_path": "acme",
            "project_id": "22",
            "project_path": "acme/web",
            "project_visibility": "private",
            "job_project_id": "22",
            "job_project_path": "acme/web",
            "job_namespace_id": "72",
            "job_namespace_path": "acme",
            "user_id": "42",
            "user_login": "ada",
            "user_email": "ada@acme.example",
            "user_access_level": "developer",
            "pipeline_id": "1212",
            "pipeline_source": "push",
            "job_id": "3434",
            "ref": "main",
            "ref_type": "branch",
            "ref_path": "refs/heads/main",
            "ref_protected": "true",
            "runner_id": 1,
            "runner_environment": "gitlab-hosted",
            "sha": SHA,
            "ci_config_ref_uri": "gitlab.com/acme/web//.gitlab-ci.yml@refs/heads/main",
            "ci_config_sha": SHA,
        },
        pulls=[
            # Before 18.2.2, a merge request from a fork that ran in the parent had the parent's ids.
            {
                "pipeline_source": "merge_request_event",
                "ref": "feature",
                "ref_path": "refs/merge-requests/7/head",
                "ref_protected": "false",
            },
            # A merge train, and a source branch with the name of the target.
            {
                "pipeline_source": "merge_request_event",
                "pipeline_source_event": "merge_train",
                "target_ref": "main",
                "target_ref_protected": "true",
                "ref_path": "refs/merge-requests/7/train",
            },
            {"pipeline_source": "merge_request_event", "ref_protected": "true"},
        ],
        others=[
            {"ref_type": "tag", "ref_path": "refs/tags/main"},
            {"ref_protected": "false"},
            {"pipeline_source": "parent_pipeline"},
        ],
        elsewhere=[
            {"project_id": "23", "project_path": "acme/docs"},
            # From 18.2.2 on, a merge request from a fork has the ids of the fork.
            {
                "project_id": "1002",
                "project_path": "mallory/web",
                "namespace_id": "901",
                "namespace_path": "mallory",
                "pipeline_source": "merge_request_event",
                "ref_path": "refs/merge-requests/7/head",
            },
        ],
        tenant={"iss": "https://gitlab.mallory.example"},
    ),
    "circleci": Ci(
        source="https://circleci.com/docs/guides/permissions-authentication/openid-connect-tokens/",
        issuer="https://oidc.circleci.com/org/8be1b2a5-7ee0-4f7d-a3a9-6e3a2c7d2f11",
        rule={
            "pinned": {f"{CIRCLECI}project-id": "3a2f5b1c-7d4e-4f6a-9b8c-0d1e2f3a4b5c"},
            "claims": {f"{CIRCLECI}vcs-origin": ("github.com/acme/web",)},
        },
        trusted={
            "sub": "org/8be1b2a5-7ee0-4f7d-a3a9-6e3a2c7d2f11/project/3a2f5b1c-7d4e-4f6a-9b8c-0d1e2f3a4b5c/user/5e6f",
            # Its tokens have no `jti`.
            "jti": None,
            f"{CIRCLECI}context-ids": ["7b6a5c4d-3e2f-4a1b-8c9d-0e1f2a3b4c5d"],
            f"{CIRCLECI}job-id": "1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f9",
            f"{CIRCLECI}org-id": "8be1b2a5-7ee0-4f7d-a3a9-6e3a2c7d2f11",
            f"{CIRCLECI}pipeline-definition-id": "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
            f"{CIRCLECI}pipeline-id": "9f8e7d6c-5b4a-4c3d-8e2f-1a0b9c8d7e6f",
            f"{CIRCLECI}project-id": "3a2f5b1c-7d4e-4f6a-9b8c-0d1e2f3a4b5c",
            f"{CIRCLECI}ssh-rerun": False,
            f"{CIRCLECI}vcs-origin": "github.com/acme/web",
            f"{CIRCLECI}vcs-ref": "refs/heads/main",
            f"{CIRCLECI}workflow-id": "2b3c4d5e-6f7a-4b8c-9d0e-1f2a3b4c5d6e",
        },
        pulls=[
            {f"{CIRCLECI}vcs-ref": "refs/heads/feature"},
            # A fork, if the project passes its secrets to those.
            {f"{CIRCLECI}vcs-origin": "github.com/mallory/web", f"{CIRCLECI}vcs-ref": "refs/heads/pull/7"},
            {f"{CIRCLECI}vcs-origin": "github.com/mallory/web"},
        ],
        others=[
            {f"{CIRCLECI}vcs-ref": "refs/tags/main"},
            # A pipeline that a custom webhook started.
            {f"{CIRCLECI}vcs-origin": None, f"{CIRCLECI}vcs-ref": None},
        ],
        elsewhere=[{f"{CIRCLECI}project-id": "4a2f5b1c-7d4e-4f6a-9b8c-0d1e2f3a4b5c"}],
        refused=[{f"{CIRCLECI}ssh-rerun": True}],
        tenant={"iss": "https://oidc.circleci.com/org/00000000-7ee0-4f7d-a3a9-6e3a2c7d2f11"},
    ),
    "buildkite": Ci(
        # What build_branch is for tags: buildkite.com/docs/pipelines/source-control/github
        source="https://buildkite.com/docs/agent/cli/reference/oidc",
        issuer="https://agent.buildkite.com",
        rule={
            "pinned": {
                "pipeline_id": "0184990a-4782-42b5-afc1-16715b10b110",
                "organization_id": "0184990a-477b-4fa8-9968-496074483c77",
            }
        },
        trusted={
            "sub": f"organization:acme:pipeline:web:ref:refs/heads/main:commit:{SHA}:step:build",
            "jti": None,
            "organization_slug": "acme",
            "organization_id": "0184990a-477b-4fa8-9968-496074483c77",
            "pipeline_slug": "web",
            "pipeline_id": "0184990a-4782-42b5-afc1-16715b10b110",
            "build_number": 41,
            "build_branch": "main",
            "build_commit": SHA,
            "build_source": "webhook",
            "step_key": "build",
            "job_id": "0184990a-477b-4fa8-9968-496074483cee",
            "agent_id": "0184990a-4782-42b5-afc1-16715b10b8ff",
            "runner_environment": "buildkite-hosted",
        },
        pulls=[
            {"build_branch": "feature"},
            # A fork, if the pipeline prefixes the branches of forks.
            {"build_branch": "mallory:main"},
        ],
        others=[
            {"build_source": "ui"},
            {"build_branch": "refs/heads/main"},
            # The branch of a tag is the name of the tag.
            {"build_tag": "main", "sub": f"organization:acme:pipeline:web:ref:refs/tags/main:commit:{SHA}:step:build"},
        ],
        elsewhere=[{"pipeline_slug": "docs", "pipeline_id": "0184990a-0000-42b5-afc1-16715b10b110"}],
        # Both ids are optional claims.
        refused=[{"pipeline_id": None}, {"organization_id": None}],
        tenant={"organization_id": "0184990a-0000-4fa8-9968-496074483c77"},
    ),
    "bitbucket": Ci(
        source="https://support.atlassian.com/bitbucket-cloud/docs/integrate-pipelines-with-resource-servers-using-oidc/",
        issuer="https://api.bitbucket.org/2.0/workspaces/acme/pipelines-config/identity/oidc",
        rule={
            "pinned": {"repositoryUuid": "{21e7a3cc-3b9d-4bd0-8a0e-8f3c2a0e1b11}"},
            "audience": "ari:cloud:bitbucket::workspace/ba52e1c1-5c1a-4f5b-9d3a-6d3c2b1a0f99",
        },
        trusted={
            "sub": "{21e7a3cc-3b9d-4bd0-8a0e-8f3c2a0e1b11}:{6b0d}",
            "branchName": "main",
            "pipelineUuid": "{c1a04d5e-6f7a-4b8c-9d0e-1f2a3b4c5d6e}",
            "repositoryUuid": "{21e7a3cc-3b9d-4bd0-8a0e-8f3c2a0e1b11}",
            "stepUuid": "{6b0d3d4c-5b6a-4978-8695-a4b3c2d1e0f9}",
            "workspaceUuid": "{ba52e1c1-5c1a-4f5b-9d3a-6d3c2b1a0f99}",
            "deploymentEnvironmentUuid": "{bd715740-c970-486b-b68a-b421ec2a1f8b}",
        },
        pulls=[{"branchName": "feature"}],
        # Pipelines of tags have no branch.
        others=[{"branchName": None}],
        elsewhere=[{"repositoryUuid": "{00e7a3cc-3b9d-4bd0-8a0e-8f3c2a0e1b11}"}],
        refused=[{"aud": ORIGIN}],
        audience="ari:cloud:bitbucket::workspace/ba52e1c1-5c1a-4f5b-9d3a-6d3c2b1a0f99",
        tenant={"iss": "https://api.bitbucket.org/2.0/workspaces/mallory/pipelines-config/identity/oidc"},
    ),
    "azure": Ci(
        # Microsoft publishes no list. This one is of a token that a pipeline got, as is that of Teleport's RFD 211.
        source="https://github.com/sigstore/fulcio/issues/1803",
        issuer="https://vstoken.dev.azure.com/0ca3ddd9-f0b0-4635-a98c-5866526961b6",
        rule={
            "pinned": {
                "def_id": "12",
                "prj_id": "271ef6f7-5998-4b0f-86fb-4b54d9129990",
                "org_id": "0ca3ddd9-f0b0-4635-a98c-5866526961b6",
            }
        },
        trusted={
            "sub": "p://acme/web/ci",
            "org_id": "0ca3ddd9-f0b0-4635-a98c-5866526961b6",
            "prj_id": "271ef6f7-5998-4b0f-86fb-4b54d9129990",
            "def_id": "12",
            "rpo_id": "acme/web",
            "rpo_uri": "https://github.com/acme/web.git",
            "rpo_ref": "refs/heads/main",
            "rpo_ver": SHA,
            "run_id": "310",
        },
        pulls=[{"rpo_ref": "refs/pull/7/merge"}],
        others=[{"rpo_ref": "refs/tags/main"}, {"rpo_ref": "refs/heads/feature"}],
        elsewhere=[
            {"def_id": "13", "sub": "p://acme/web/other"},
            # A token of a service connection names no pipeline.
            {
                "sub": "sc://acme/web/aws",
                **dict.fromkeys(("org_id", "prj_id", "def_id", "rpo_id", "rpo_uri", "rpo_ref")),
            },
        ],
        audience="api://AzureADTokenExchange",
        # All organizations share the keys.
        tenant={"iss": "https://vstoken.dev.azure.com/00000000-f0b0-4635-a98c-5866526961b6"},
    ),
    "jenkins": Ci(
        # By default, a token has only `sub`, the URL of the job, and `build_number`. The administrator adds claims.
        source="https://plugins.jenkins.io/oidc-provider/",
        issuer="https://ci.acme.example/oidc",
        rule={"pinned": {"project": "web"}, "claims": {"branch": ("main",)}, "scope_claim": "branch"},
        trusted={
            "sub": "https://ci.acme.example/job/web/job/main/",
            "jti": None,
            "build_number": 7,
            "project": "web",
            "branch": "main",
        },
        # `${BRANCH_NAME}` of a pull request in a multibranch project.
        pulls=[{"sub": "https://ci.acme.example/job/web/view/change-requests/job/PR-7/", "branch": "PR-7"}],
        # The claim is missing where its variable is: in a project that is not multibranch.
        others=[{"branch": None}],
        elsewhere=[{"project": "docs"}, {"project": None}],
        is_hosted=False,
        tenant={"iss": "https://ci.mallory.example/oidc"},
    ),
    "generic": Ci(
        source="https://openid.net/specs/openid-connect-core-1_0.html#IDToken",
        issuer="https://ci.example.com",
        rule={"pinned": {"project": "web"}, "claims": {"trusted": ("true",)}},
        trusted={"sub": "job-7", "project": "web", "trusted": True},
        pulls=[{"trusted": False}],
        others=[{"trusted": None}, {"trusted": "yes"}],
        elsewhere=[{"project": "Web"}, {"project": None}],
        is_hosted=False,
        tenant={"iss": "https://ci.mallory.example"},
    ),
}
