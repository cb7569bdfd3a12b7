"""The ways to deploy one release: the wheel without a checkout, and SAM. Each takes over the stack of the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from larder_cli.deploy.changes import KEPT
from tests.deployed.first_hit import check_first_hit
from tests.deployed.front import serving
from tests.deployed.stack import STACK, TRIAL, Stack, packed
from tests.e2e.cloud import free_port, run_larder
from tests.emulator.aws_behaviour import FAIL_AT
from tests.emulator.process import ROOT, Emulator, emulator
from tools.release.wheel import build_wheel

pytestmark = pytest.mark.e2e

SAM = ROOT / ".tools" / "sam" / "bin" / "sam"
UV = ROOT / ".tools" / "uv" / "bin" / "uv"
PLACES = int(os.environ.get("FAILED_CREATIONS", "4"))
"""Each takes about twenty seconds. `FAILED_CREATIONS=20` tries more."""
NO_PROXY = "127.0.0.1,localhost"
DEAD_PROXY = "http://127.0.0.1:9"
"""Every address but the emulator's is refused."""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("packed") / "release")


@dataclass(frozen=True)
class Machine:
    """A machine with the wheel, Python and credentials, and nothing else on its PATH."""

    folder: Path
    emulator: Emulator

    def larder(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.folder / "venv" / "bin" / "larder", *arguments],
            cwd=self.folder,
            env={
                **self.emulator.variables,
                "PATH": str(self.folder / "bin"),
                "HOME": str(self.folder),
                "HTTPS_PROXY": DEAD_PROXY,
                "HTTP_PROXY": DEAD_PROXY,
                "NO_PROXY": NO_PROXY,
                "no_proxy": NO_PROXY,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


@pytest.fixture(scope="module")
def wheel(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(release, tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Emulator]:
    with emulator(tmp_path / "emulator", {FAIL_AT: str(tmp_path / "fail-at")}) as started:
        yield started


@pytest.fixture
def machine(wheel: Path, running: Emulator, tmp_path: Path) -> Machine:
    folder = tmp_path / "machine"
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, wheel], check=True)
    return Machine(folder, running)


def sam_deploy(release: Path, running: Emulator, home: Path) -> None:
    """As from a checkout or a release's folder, with the settings of samconfig.toml."""
    done = subprocess.run(
        [
            *(SAM, "deploy", "--config-env", "default", "--stack-name", STACK),
            *("--no-confirm-changeset", "--no-progressbar", "--region", "us-east-1"),
        ],
        cwd=release,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "SAM_CLI_TELEMETRY": "0",
            "SAM_CLI_POLL_DELAY": "0.5",
            **running.variables,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-2_000:]


def data(stack: Stack) -> dict[str, str]:
    """The physical ids of all resources that must stay."""
    return {
        name: one["PhysicalResourceId"]
        for name, one in stack.resources().items()
        if one["ResourceType"] in {*KEPT, "AWS::SQS::Queue"}
    }


def test_the_wheel_installs_upgrades_and_uninstalls_without_a_checkout(machine: Machine) -> None:
    installed = machine.larder("install", "--yes", "--set", "Alarms=false")
    assert f"larder --stack {STACK} users create" in installed
    machine.larder(*("--stack", STACK, "users", "create", "--email", "ada@acme.example", "--name", "Ada"))
    assert "Nothing changes" in machine.larder("upgrade", "--yes", "--stack", STACK)
    planned = json.loads(
        subprocess.run(
            [machine.folder / "venv" / "bin" / "larder", "plan", "--json", "--set", "Tracing=Active"],
            cwd=machine.folder,
            env={**machine.emulator.variables, "PATH": "", "HOME": str(machine.folder)},
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout
    )
    assert [option["option"] for option in planned["options"]] == ["Tracing"]
    machine.larder("uninstall", "--stack", STACK, "--confirm", STACK)
    assert machine.emulator.client("dynamodb").list_tables()["TableNames"] == []


def test_from_the_wheel_to_the_first_hit_of_turbo(machine: Machine, release: Path, tmp_path: Path) -> None:
    """The six lines that docs/install.md names, and two of turbo."""
    machine.larder("install", "--yes", "--set", "Alarms=false")
    operate = ("--stack", STACK)
    ada = "ada@acme.example"
    machine.larder(*operate, "users", "create", "--email", ada, "--name", "Ada")
    machine.larder(*operate, *("teams", "create", "--name", "Acme", "--slug", "acme", "--owner", ada))
    made = machine.larder(*(*operate, "keys", "create", "--user", ada, "--team", "acme", "--name", "ci", "--json"))
    key, port = json.loads(made)["key"], free_port()
    stack = Stack(machine.emulator, release)
    # The bucket refuses requests without TLS, which the emulator does not have.
    bucket = stack.outputs()["ArtifactsBucket"]
    machine.emulator.client("s3").delete_bucket_policy(Bucket=bucket)
    url = f"http://127.0.0.1:{port}"
    with serving(stack, port, tmp_path / "log"):
        checked = machine.larder("smoke", "--url", url, "--key", key, "--large", "6MB")
        assert "failed" not in checked.lower()
        check_first_hit(url, key, tmp_path)


def test_the_command_takes_over_a_stack_of_sam_and_sam_one_of_the_command(
    release: Path, running: Emulator, tmp_path: Path
) -> None:
    sam_deploy(release, running, tmp_path)
    stack = Stack(running, release)
    before = data(stack)
    environment = {"PATH": os.environ["PATH"], **running.variables}
    operate = ("--stack", STACK, "users")
    run_larder(
        *(*operate, "create", "--email", "ada@acme.example", "--name", "Ada"), environment=environment, timeout_s=120
    )
    stack.deploy(TRIAL)
    assert data(stack) == before
    (user,) = run_larder(*operate, "list", environment=environment, timeout_s=120)
    assert user["email"] == "ada@acme.example"
    assert stack.outputs()["Version"]
    sam_deploy(release, running, tmp_path)
    assert data(stack) == before


@pytest.mark.parametrize("place", range(1, 330, 330 // PLACES))
def test_after_a_creation_that_failed_anywhere_the_next_run_succeeds(
    release: Path, running: Emulator, tmp_path: Path, place: int
) -> None:
    stack = Stack(running, release)
    (tmp_path / "fail-at").write_text(str(place))
    failed = stack.try_to_deploy(TRIAL)
    assert failed.status == 1
    assert "this failure was requested by a test" in failed.text
    stack.deploy(TRIAL)
    assert stack.described()["StackStatus"] == "CREATE_COMPLETE"
