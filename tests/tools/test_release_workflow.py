"""The workflow that publishes a tag: .github/workflows/release.yml."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.workflows import actions, commands, read_workflow, steps, unpinned
from tools.release.assets import MODULE, NOTES
from tools.release.wheel import NAME

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
RUNNERS = ["ubuntu-24.04", "ubuntu-24.04-arm"]
PUBLISHING = {"attest", "pypi", "github"}


@pytest.fixture
def jobs() -> dict[str, Any]:
    found: dict[str, Any] = read_workflow(WORKFLOW)["jobs"]
    return found


def test_only_a_tag_of_a_version_runs_it() -> None:
    workflow = read_workflow(WORKFLOW)
    assert workflow["on"] == {"push": {"tags": ["v*"]}}
    assert workflow["concurrency"]["cancel-in-progress"] == "false"


def test_each_job_has_only_the_permissions_that_it_needs(jobs: dict[str, Any]) -> None:
    assert read_workflow(WORKFLOW)["permissions"] == {}
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "build": {"contents": "read"},
        "compare": {},
        "attest": {"id-token": "write", "attestations": "write"},
        "pypi": {"id-token": "write"},
        "github": {"contents": "write"},
        "verify": {},
    }


def test_a_job_that_can_publish_runs_no_code_of_the_repository(jobs: dict[str, Any]) -> None:
    for name in PUBLISHING:
        assert not steps(jobs[name], "actions/checkout"), name
        for command in commands(jobs[name]):
            assert not re.search(r"\b(make|python3?|uvx?|pip|sh|bash)\b", command), name
    (checkout,) = steps(jobs["build"], "actions/checkout")
    assert checkout["with"]["persist-credentials"] == "false"


def test_no_secret_is_stored() -> None:
    assert "secrets." not in WORKFLOW.read_text()


def test_nothing_is_published_before_both_builds_are_equal(jobs: dict[str, Any]) -> None:
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "build": None,
        "compare": "build",
        "attest": "compare",
        "pypi": "attest",
        "github": "pypi",
        "verify": "github",
    }
    assert jobs["build"]["strategy"]["matrix"] == {"runner": RUNNERS}
    (sent,) = steps(jobs["build"], "actions/upload-artifact")
    assert sent["with"]["name"] == "${{ matrix.runner }}"
    for name in PUBLISHING | {"verify"}:
        (got,) = steps(jobs[name], "actions/download-artifact")
        assert got["with"]["name"] in RUNNERS


def test_the_upload_to_pypi_is_the_wheel_alone_and_waits_for_a_person(jobs: dict[str, Any]) -> None:
    assert jobs["pypi"]["environment"] == "release"
    (kept,) = commands(jobs["pypi"])
    (published,) = steps(jobs["pypi"], "pypa/gh-action-pypi-publish")
    assert kept == "mkdir wheel && cp dist/larder_cache-*.whl wheel"
    assert published["with"] == {"packages-dir": "wheel"}


def test_every_action_is_pinned_by_commit_with_its_version() -> None:
    assert unpinned(WORKFLOW) == []
    assert len(set(actions(read_workflow(WORKFLOW)))) == 6


def test_the_same_action_is_the_same_commit_in_every_workflow_and_page() -> None:
    pages = [WORKFLOW, ROOT / "deploy" / "deployer" / "github-actions.yml", ROOT / "docs" / "trust.md"]
    found: dict[str, set[str]] = {}
    for page in pages:
        for name, commit in re.findall(r"uses: ([\w/-]+)@([0-9a-f]{40})", page.read_text()):
            found.setdefault(name, set()).add(commit)
    assert [name for name, commits in found.items() if len(commits) > 1] == []


def test_the_commands_of_the_build_are_targets_of_the_makefile_and_files(jobs: dict[str, Any]) -> None:
    makefile = "".join((ROOT / file).read_text() for file in ("Makefile", "tools/more.mk"))
    for command in commands(jobs["build"]):
        program, target, *_ = command.split()
        assert program == "make"
        assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE), command
        for path in re.findall(r"[\w/]+\.py", command):
            assert (ROOT / path).is_file(), path


@pytest.fixture
def downloaded(tmp_path: Path) -> Path:
    """What both runners have built, as the jobs download it."""
    name = "larder-1.2.3"
    for runner in RUNNERS:
        dist = tmp_path / runner
        (dist / name).mkdir(parents=True)
        (dist / name / "release.json").write_text("{}")
        wheel = f"{NAME.replace('-', '_')}-1.2.3-py3-none-any.whl"
        for one in (f"{name}.tar.gz", f"larder-{MODULE}-1.2.3.tar.gz", wheel, NOTES):
            (dist / one).write_text(one)
        sums = subprocess.run(["sha256sum", "release.json"], cwd=dist / name, capture_output=True, check=True)
        (dist / name / "SHA256SUMS").write_bytes(sums.stdout)
    return tmp_path


def run(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """As GitHub runs a command."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_equal_builds_pass_and_any_difference_stops_the_release(jobs: dict[str, Any], downloaded: Path) -> None:
    (command,) = commands(jobs["compare"])
    assert run(command, downloaded).returncode == 0
    (downloaded / RUNNERS[1] / NOTES).write_text("other")
    assert run(command, downloaded).returncode != 0
    shutil.copytree(downloaded / RUNNERS[0], downloaded / RUNNERS[1], dirs_exist_ok=True)
    for runner in RUNNERS:
        (downloaded / runner / "larder-1.2.3" / "release.json").write_text("damaged")
    assert run(command, downloaded).returncode != 0


def test_the_release_of_github_has_the_archives_the_wheel_and_each_file(jobs: dict[str, Any], downloaded: Path) -> None:
    (downloaded / RUNNERS[0]).rename(downloaded / "dist")
    gh = downloaded / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    gh.chmod(0o755)
    (command,) = commands(jobs["github"])
    done = run(command, downloaded, GITHUB_REF_NAME="v1.2.3", GITHUB_REPOSITORY="acme/larder")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[:3] == ["release", "create", "v1.2.3"]
    assert "--verify-tag" in said
    assert said[said.index("--notes-file") + 1] == "dist/notes.markdown"
    assert [one for one in said if one.startswith("dist/") and one != "dist/notes.markdown"] == [
        "dist/larder-1.2.3.tar.gz",
        f"dist/larder-{MODULE}-1.2.3.tar.gz",
        "dist/larder_cache-1.2.3-py3-none-any.whl",
        "dist/larder-1.2.3/SHA256SUMS",
        "dist/larder-1.2.3/release.json",
    ]


def test_contributing_names_what_the_owner_sets_up() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Release\n")[2]
    assert f"project `{NAME}`" in text
    for name in ("`release.yml`", "environment `release`", "trusted publisher", "v1.2.3"):
        assert name in text
