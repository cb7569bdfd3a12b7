"""`make sam-local`: run events of events/ with `sam local invoke`, on the build and the data of a running `make serve`.

SAM passes on only the variables that a template declares, and leaves those with intrinsic functions empty. So this
writes a template that has just the functions and layers of the build, and env.json with the values.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from larder_cli.files import write_private
from local.environment import RUNTIME
from local.template import Template, load_template

ROOT = Path(__file__).resolve().parent.parent
SAM = ROOT / ".tools" / "sam" / "bin" / "sam"
BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
EVENTS = ROOT / "events"
HOST = "host.docker.internal"
"""This machine, for a container."""
ENDPOINTS = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_LAMBDA", "AWS_ENDPOINT_URL_S3")


def main(data: Path, names: list[str]) -> int:
    try:
        cloud = json.loads((data / "cloud.json").read_text())["environment"]
        template = load_template(BUILT)
    except FileNotFoundError as error:
        print(
            f"larder: {error}: run `make build`, and `make serve HOST=0.0.0.0`",
            file=sys.stderr,
        )
        return 2
    folder = write_files(data / "sam-local", template, cloud)
    functions = {
        function.handler.split(".")[1]: function.logical_id for function in template.functions
    }
    failed = 0
    for name in names or sorted(functions):
        command: list[str | Path] = [
            SAM,
            "local",
            "invoke",
            functions[name],
            "--add-host",
            f"{HOST}:host-gateway",
        ]
        command += ["--template", folder / "template.json", "--env-vars", folder / "env.json"]
        environ = {**os.environ, **{key: cloud[key] for key in cloud if key.startswith("AWS_")}}
        print(f"\n=== {name}", flush=True)
        command += ["--event", EVENTS / f"{name}.json"]
        failed += subprocess.run(command, env=environ, check=False).returncode != 0
    return int(failed > 0)


def write_files(folder: Path, template: Template, cloud: Mapping[str, str]) -> Path:
    """Write template.json and env.json, which only the owner can read: they have secrets of the local cloud."""
    folder.mkdir(mode=0o700, exist_ok=True)
    endpoints = {name: f"http://{HOST}:{urlsplit(cloud[name]).port}" for name in ENDPOINTS}
    variables = {
        function.logical_id: {name: cloud[name] for name in sorted(function.variables)} | endpoints
        for function in template.functions
    }
    write_private(folder / "env.json", json.dumps(variables, indent=2) + "\n")
    write_private(folder / "template.json", json.dumps(sam_template(template), indent=2) + "\n")
    return folder


def sam_template(template: Template) -> dict[str, Any]:
    """The functions and layers, with every variable declared and empty."""
    resources: dict[str, Any] = {}
    for function in template.functions:
        # A build names the folder of a layer like it, and the source tree with its first word.
        layers = {
            f"{place.name.removesuffix('Layer').capitalize()}Layer": str(place)
            for place in function.layers
        }
        for name, place in layers.items():
            resources[name] = {
                "Type": "AWS::Serverless::LayerVersion",
                "Properties": {"ContentUri": place},
            }
        resources[function.logical_id] = {
            "Type": "AWS::Serverless::Function",
            "Properties": {
                "FunctionName": function.name,
                "Handler": function.handler,
                "Runtime": RUNTIME,
                "Architectures": ["arm64"],
                "CodeUri": str(function.code_folder),
                "Layers": [{"Ref": name} for name in layers],
                "MemorySize": function.memory_mb,
                "Timeout": function.timeout_s,
                "Environment": {
                    "Variables": dict.fromkeys([*sorted(function.variables), *ENDPOINTS], "")
                },
            },
        }
    return {"Transform": "AWS::Serverless-2016-10-31", "Resources": resources}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
