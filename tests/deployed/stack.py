"""A stack that `sam deploy` creates from the output of `make package`, and its resources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from larder.settings import unpacked
from local.lambda_runtime.built import open_build
from tests.emulator.process import ROOT, Emulator
from tools.deploy.parameters import write_for_sam
from tools.deploy.stack import failures
from tools.package import BUILT, LAYER, package

SAM = ROOT / ".tools" / "sam" / "bin" / "sam"
STACK = "larder"
WITHOUT_ALARMS = {"Alarms": "false"}
"""The emulator does not support alarms that combine several metrics."""
TRIAL = {**WITHOUT_ALARMS, "ProtectData": "false"}
"""The parameters of `default` in samconfig.toml."""
_TIMEOUT_S = 900


def packed(folder: Path) -> Path:
    """Write the output of `make package` to `folder`. If this machine is not arm64, add the layer's libraries for it.

    Python chooses a library by its name, so the archive works on both.
    """
    artifacts = open_build(ROOT / "template.yaml")
    package(BUILT, folder)
    with zipfile.ZipFile(folder / LAYER, "a", zipfile.ZIP_DEFLATED) as layer:
        known = set(layer.namelist())
        for stand_in in artifacts.stand_ins:
            for library in sorted(stand_in.rglob("*.so")):
                name = f"python/{library.relative_to(stand_in)}"
                assert name not in known
                layer.write(library, name)
    return folder


@dataclass(frozen=True)
class Sent:
    """The result of a run of SAM."""

    status: int
    text: str


@dataclass
class Stack:
    """The stack in the emulator. `folder` is the one that `packed` returned."""

    emulator: Emulator
    folder: Path
    environment: str = "prod"
    name: str = STACK
    runs: list[Sent] = field(default_factory=list)

    def deploy(self, parameters: Mapping[str, str] | None = None) -> str:
        """Run `make deploy`'s program, which must succeed. `parameters` apply on top of those in samconfig.toml."""
        sent = self.try_to_deploy(parameters)
        assert sent.status == 0, f"{sent.text[-2_000:]}\n{self.failures()}"
        return sent.text

    def try_to_deploy(self, parameters: Mapping[str, str] | None = None) -> Sent:
        command: list[str | Path] = [sys.executable, "-m", "tools.deploy"]
        command += ["--env", self.environment, "--built", self.folder, "--stack-name", self.name]
        command += ["--no-confirm-changeset", "--no-progressbar"]
        if parameters:
            # On the command line, SAM takes away quotes within a value.
            overrides = self.folder / "overrides.yaml"
            write_for_sam(parameters, overrides)
            command += ["--parameter-overrides", f"file://{overrides}"]
        return self._run(command, ROOT)

    def delete(self) -> Sent:
        return self._run(
            [
                SAM,
                "delete",
                "--config-env",
                self.environment,
                "--no-prompts",
                "--stack-name",
                self.name,
            ],
            self.folder,
        )

    def _run(self, command: list[str | Path], folder: Path) -> Sent:
        done = subprocess.run(
            command,
            cwd=folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "SAM_CLI_TELEMETRY": "0",
                "SAM_CLI_POLL_DELAY": "0.5",
                **self.emulator.variables,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
        self.runs.append(Sent(done.returncode, done.stdout + done.stderr))
        return self.runs[-1]

    # ------------------------------------------------------------------------------ resources

    def described(self) -> dict[str, Any]:
        (stack,) = self.emulator.client("cloudformation").describe_stacks(StackName=self.name)[
            "Stacks"
        ]
        return dict(stack)

    def failures(self) -> str:
        """CloudFormation's messages about resources that it could not create."""
        return "\n".join(failures(self.emulator.client("cloudformation"), self.name))

    def template(self) -> dict[str, Any]:
        """The template after CloudFormation's transformation, without SAM's own types."""
        body = self.emulator.client("cloudformation").get_template(
            StackName=self.name, TemplateStage="Processed"
        )["TemplateBody"]
        read: dict[str, Any] = body if isinstance(body, dict) else json.loads(body)
        return read

    def resources(self) -> dict[str, dict[str, Any]]:
        """The resources of the stack, by logical id."""
        pages = (
            self.emulator.client("cloudformation")
            .get_paginator("list_stack_resources")
            .paginate(StackName=self.name)
        )
        found = [one for page in pages for one in page["StackResourceSummaries"]]
        return {one["LogicalResourceId"]: one for one in found}

    def physical(self, logical_id: str) -> str:
        return str(self.resources()[logical_id]["PhysicalResourceId"])

    def outputs(self) -> dict[str, str]:
        return {one["OutputKey"]: one["OutputValue"] for one in self.described()["Outputs"]}

    def types(self) -> Counter[str]:
        return Counter(one["ResourceType"] for one in self.resources().values())

    def variables(self) -> dict[str, str]:
        """The variables of all functions, merged, with one for each option."""
        lambda_ = self.emulator.client("lambda")
        found: dict[str, str] = {}
        for page in lambda_.get_paginator("list_functions").paginate():
            for function in page["Functions"]:
                found |= unpacked(function.get("Environment", {}).get("Variables", {}))
        return found
