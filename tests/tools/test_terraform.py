"""The Terraform module in deploy/terraform/."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from larder_cli.deploy.release import PLACE, PLAIN
from local.cloudformation import read_template
from tests.workflows import commands, read_workflow

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "terraform"
PARAMETERS: dict[str, Any] = read_template(ROOT / "template.yaml")["Parameters"]
TERRAFORM = shutil.which("terraform")
needs_terraform = pytest.mark.skipif(
    TERRAFORM is None, reason="terraform is not on PATH, and no registry of packages has it"
)


def test_the_release_is_not_committed_and_each_version_has_it_in_an_archive() -> None:
    assert "deploy/terraform/release/" in (ROOT / ".gitignore").read_text().splitlines()
    jobs = read_workflow(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert any("dist/*.tar.gz" in command for command in commands(jobs["github"]))


_MIRROR = {name: os.environ[name] for name in ("TF_CLI_CONFIG_FILE",) if name in os.environ}
"""The configuration of Terraform can name a mirror that has AWS's provider."""


def terraform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert TERRAFORM is not None
    return subprocess.run(
        [TERRAFORM, *arguments, "-no-color"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "CHECKPOINT_DISABLE": "1", **_MIRROR},
        capture_output=True,
        text=True,
        timeout=300,
    )


@needs_terraform
def test_the_files_are_formatted() -> None:
    assert terraform(FOLDER, "fmt", "-check", "-recursive").returncode == 0


@needs_terraform
def test_the_stack_gets_the_release(tmp_path: Path) -> None:
    module = tmp_path / "module"
    shutil.copytree(FOLDER, module, ignore=shutil.ignore_patterns("release", ".terraform*"))
    release = module / "release"
    release.mkdir()
    versions = ("FunctionsVersion", "JwtLayerVersion", "LayerVersion")
    placed = {**PARAMETERS, **{name: {"Type": "String"} for name in (*PLACE, *versions)}}
    (release / PLAIN).write_text(json.dumps({"Parameters": placed}, default=str))
    for name in ("functions", "jwt-layer", "layer"):
        (release / f"{name}-0123456789abcdef.zip").write_text(name)
    initialized = terraform(module, "init", "-backend=false")
    if initialized.returncode != 0:
        pytest.skip(f"AWS's provider cannot be downloaded: {initialized.stderr.strip()[:300]}")
    done = terraform(module, "test")
    assert done.returncode == 0, done.stdout
