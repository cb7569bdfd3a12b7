"""Check SAM's output for template.yaml, and the deployer's template, with cfn-lint and checkov. The template that a
region gets must have all types that the region knows, and no others.

Run by `make check`. cfn-lint checks both branches of every condition by itself. checkov does not, so it gets the
template twice: as if every condition holds, and as if none does. checkov.yaml has the rules that do not apply.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import UnknownRegionError

from larder_cli.deploy.release import GOVERNMENT, NO_BUDGETS, PLAIN, template_name
from tools.release.regional import BUDGETS, CLOUDFRONT, without_types

ROOT = Path(__file__).resolve().parent.parent
SAM = ROOT / ".tools" / "sam" / "bin"
CHECKOV = ROOT / ".tools" / "checkov" / "bin" / "python"
NOTHING = {"Ref": "AWS::NoValue"}


def where_conditions(value: Any, holds: bool) -> Any:
    """`value` with one branch of each Fn::If: the first if the conditions hold, otherwise the second."""
    if isinstance(value, list):
        return [
            part for part in (where_conditions(item, holds) for item in value) if part != NOTHING
        ]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"Fn::If"}:
        _, first, second = value["Fn::If"]
        return where_conditions(first if holds else second, holds)
    chosen = {name: where_conditions(part, holds) for name, part in value.items()}
    return {name: part for name, part in chosen.items() if part != NOTHING}


def for_checkov(template: dict[str, Any], holds: bool) -> dict[str, Any]:
    """The template with one branch of every condition, with every resource, and with the variables of one function and
    one path of the API.

    checkov skips resources whose condition is false by default. It finds in the variables of all functions what it
    finds in those of one. It has no rule for paths, but copies them at each reference to the API.
    """
    chosen: dict[str, Any] = where_conditions(template, holds)
    for resource in chosen["Resources"].values():
        resource.pop("Condition", None)
    functions = [
        resource["Properties"]
        for resource in chosen["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function"
    ]
    for function in functions[1:]:
        del function["Environment"]
    for resource in chosen["Resources"].values():
        paths = resource["Properties"].get("Body", {}).get("paths", {})
        for path in list(paths)[1:]:
            del paths[path]
    return chosen


def wrong_templates(plain: dict[str, Any], lacked: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The regions whose template has a type that they lack, or leaves one out that they have.

    `lacked` has the types of the plain template that each region lacks.
    """
    of_name = {
        PLAIN: plain,
        NO_BUDGETS: without_types(plain, BUDGETS),
        GOVERNMENT: without_types(plain, BUDGETS, CLOUDFRONT),
    }
    types = {
        name: {one["Type"] for one in template["Resources"].values()}
        for name, template in of_name.items()
    }
    partitions = boto3.Session()
    for region, missing in lacked.items():
        try:
            partition = partitions.get_partition_for_region(region)
        except UnknownRegionError:
            continue
        name = template_name(region, partition)
        for absent in sorted(types[name].intersection(missing)):
            yield f"{region} has no {absent}, which {name} needs: choose another template for it"
        if partition == "aws":
            for unused in sorted(types[PLAIN].difference(types[name], missing)):
                yield f"{region} has {unused} now: choose a template with it (larder_cli.deploy.release)"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        checks = [pool.submit(_run, [SAM / "cfn-lint", "deploy/deployer/template.yaml"])]
        plain = _run([SAM / "python", "tools/release/plain_template.py"])
        whole = Path(folder) / "template.json"
        whole.write_text(plain)
        checks.append(pool.submit(_run, [SAM / "cfn-lint", whole]))
        command: list[str | Path] = [CHECKOV, "tools/fast_checkov.py"]
        command += ["--config-file", "tools/checkov.yaml", "--file"]
        for holds in (True, False):
            branch = Path(folder) / f"conditions-{holds}.json"
            branch.write_text(json.dumps(for_checkov(json.loads(plain), holds)))
            command.append(branch)
        checks.append(pool.submit(_run, command))
        lacked = json.loads(_run([SAM / "python", "tools/release/region_types.py", whole]))
        if wrong := list(wrong_templates(json.loads(plain), lacked)):
            sys.exit("\n".join(wrong))
        for check in checks:
            check.result()
    print(f"template: {len(json.loads(plain)['Resources'])} resources; cfn-lint and checkov pass")


def _run(command: Sequence[str | Path]) -> str:
    """The command's output. If the command fails, print it and end the check."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        sys.exit(1)
    return done.stdout


if __name__ == "__main__":
    main()
