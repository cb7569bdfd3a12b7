"""The workflow that runs CI: .github/workflows/ci.yml."""

from pathlib import Path

from tests.workflows import commands, read_workflow, unpinned

WORKFLOW = Path(__file__).resolve().parents[2] / ".github" / "workflows" / "ci.yml"


def test_pushes_and_pull_requests_run_ci_without_permissions_and_secrets() -> None:
    workflow = read_workflow(WORKFLOW)
    assert {"push", "pull_request"} <= workflow["on"].keys()
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"] == {"contents": "read"}
    assert commands(workflow["jobs"]["ci"]) == ["bash .ci/run"]
    assert "secrets." not in WORKFLOW.read_text()
    assert unpinned(WORKFLOW) == []


def test_only_the_job_with_the_next_clients_may_fail() -> None:
    jobs = read_workflow(WORKFLOW)["jobs"]
    assert [name for name, job in jobs.items() if job.get("continue-on-error")] == ["next"]
