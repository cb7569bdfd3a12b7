"""Issuers of id tokens, and the claims of their jobs."""

from typing import Any

GITHUB = "https://token.actions.githubusercontent.com"
GITLAB = "https://gitlab.com"
ORIGIN = "https://cache.example.com"
"""The origin of the deployment in the tests of functions."""


def github_claims(**changed: Any) -> dict[str, Any]:
    """The claims of a job of acme/web on a push to main."""
    return {
        "sub": "repo:acme/web:ref:refs/heads/main",
        "repository": "acme/web",
        "repository_id": "74",
        "repository_owner": "acme",
        "repository_owner_id": "65",
        "ref": "refs/heads/main",
        "ref_type": "branch",
        "ref_protected": "true",
        "event_name": "push",
        "sha": "5f5ff0a1c4c0bdd2ab5d6a1d07a9a6a9b1e6f0aa",
        "run_id": "9914400",
        "job_workflow_ref": "acme/web/.github/workflows/ci.yml@refs/heads/main",
        **changed,
    }


def gitlab_claims(**changed: Any) -> dict[str, Any]:
    """The claims of a job of acme/web on a push to the protected branch main."""
    return {
        "sub": "project_path:acme/web:ref_type:branch:ref:main",
        "project_id": "22",
        "project_path": "acme/web",
        "namespace_id": "72",
        "namespace_path": "acme",
        "ref": "main",
        "ref_type": "branch",
        "ref_path": "refs/heads/main",
        "ref_protected": "true",
        "pipeline_source": "push",
        "pipeline_id": "1212",
        "job_id": "3434",
        "sha": "714a629c0b401fdce83e847fc9589983fc6f46bc",
        **changed,
    }
