"""A stack that `larder install` creates from the output of `make package`, and its resources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from larder.settings import unpacked
from larder_cli.deploy.options import as_toml
from larder_cli.deploy.release import DESCRIPTION
from larder_cli.deploy.stack import failures
from local.lambda_runtime.built import open_build
from tests.emulator.process import ROOT, Emulator
from tools.release.package import BUILT, CODE_LAYER, complete, package

STACK = "larder"
WITHOUT_ALARMS = {"Alarms": "false"}
"""The emulator does not support alarms that combine several metrics."""
TRIAL = {**WITHOUT_ALARMS, "ProtectData": "false"}
"""The parameters of `default` in samconfig.toml."""
_TIMEOUT_S = 900


def packed(folder: Path) -> Path:
    """Write the output of `make package` to `folder`. If this machine is not arm64, the layer has its libraries, too.

    Python chooses a library by its name, so the archive works on both.
    """
    built = folder.with_name(f"{folder.name}-build")
    shutil.copytree(BUILT, built, copy_function=os.link)
    for stand_in in open_build(ROOT / "template.yaml").stand_ins:
        for library in sorted(stand_in.rglob("*.so")):
            copy = built / CODE_LAYER / "python" / library.relative_to(stand_in)
            assert not copy.exists()
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, copy)
    package(built, folder)
    complete(folder)
    return folder


@dataclass(frozen=True)
class Sent:
    """The result of a command."""

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
        """Run `larder install`, which must succeed. `parameters` apply on top of those of the environment."""
        sent = self.try_to_deploy(parameters)
        assert sent.status == 0, f"{sent.text[-2_000:]}\n{self.failures()}"
        return sent.text

    def try_to_deploy(self, parameters: Mapping[str, str] | None = None) -> Sent:
        environments = json.loads((self.folder / DESCRIPTION).read_text())["environments"]
        options = {**environments[self.environment], **(parameters or {})}
        config = self.folder.with_name(f"{self.folder.name}.toml")
        config.write_text(as_toml(self.environment, {"stack": self.name}, options))
        return self.larder("install", "--config", config, "--release", self.folder, "--yes")

    def delete(self) -> Sent:
        return self.larder("uninstall", "--stack", self.name, "--confirm", self.name)

    def larder(self, *arguments: str | Path) -> Sent:
        """Run a command of `larder`."""
        return self._run([Path(sys.executable).with_name("larder"), *arguments], ROOT)

    def _run(self, command: list[str | Path], folder: Path) -> Sent:
        done = subprocess.run(
            command,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.emulator.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
        self.runs.append(Sent(done.returncode, done.stdout + done.stderr))
        return self.runs[-1]

    # ------------------------------------------------------------------------------ resources

    def described(self) -> dict[str, Any]:
        (stack,) = self.emulator.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return dict(stack)

    def failures(self) -> str:
        """CloudFormation's messages about resources that it could not create."""
        return "\n".join(failures(self.emulator.client("cloudformation"), self.name))

    def template(self) -> dict[str, Any]:
        """The template after CloudFormation's transformation, without SAM's own types."""
        body = self.emulator.client("cloudformation").get_template(StackName=self.name, TemplateStage="Processed")[
            "TemplateBody"
        ]
        read: dict[str, Any] = body if isinstance(body, dict) else json.loads(body)
        return read

    def resources(self) -> dict[str, dict[str, Any]]:
        """The resources of the stack, by logical id."""
        pages = (
            self.emulator.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=self.name)
        )
        found = [summary for page in pages for summary in page["StackResourceSummaries"]]
        return {one["LogicalResourceId"]: one for one in found}

    def physical(self, logical_id: str) -> str:
        return str(self.resources()[logical_id]["PhysicalResourceId"])

    def outputs(self) -> dict[str, str]:
        return {output["OutputKey"]: output["OutputValue"] for output in self.described()["Outputs"]}

    def types(self) -> Counter[str]:
        return Counter(resource["ResourceType"] for resource in self.resources().values())

    def variables(self) -> dict[str, str]:
        """The variables of all functions, merged, with one for each option."""
        lambda_ = self.emulator.client("lambda")
        found: dict[str, str] = {}
        for page in lambda_.get_paginator("list_functions").paginate():
            for function in page["Functions"]:
                found |= unpacked(function.get("Environment", {}).get("Variables", {}))
        return found
