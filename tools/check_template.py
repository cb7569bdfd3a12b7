"""Check template.yaml, and SAM's output for it, with SAM, cfn-lint and checkov, and count its resources. Also check the
deployer's template with cfn-lint.

Run by `make check`. cfn-lint checks both branches of every condition by itself. checkov does not, so it gets the
template twice: as if every condition holds, and as if none does. Accepted findings of checkov are listed in
template_exceptions.yaml with a reason. Any other finding, and an exception without a finding, fails the check.
"""

import copy
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn

import yaml

ROOT = Path(__file__).resolve().parent.parent
SAM = ROOT / ".tools" / "sam" / "bin"
CHECKOV = ROOT / ".tools" / "checkov" / "bin" / "checkov"
CHECKOV_OPTIONS = (
    *("--framework", "cloudformation", "--output", "json", "--skip-download"),
    *("--soft-fail", "--compact", "--quiet"),
)
NOTHING = {"Ref": "AWS::NoValue"}
EXCEPTIONS = ROOT / "tools" / "template_exceptions.yaml"

RESOURCE_LIMIT = 500
RESOURCE_WARNING = 439
"""Above this number of resources, the check fails: more endpoints need a decision first."""
RESOURCE_DECISION = "docs/decisions/resources.md"


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that a resource breaks. `resource` is type and logical id: `AWS::SQS::Queue.DeadLetters`."""

    check: str
    rule: str
    resource: str


@dataclass(frozen=True, slots=True)
class Exemption:
    """The resources that are exempt from a rule, as patterns with `*`, and the reason."""

    check: str
    resources: tuple[str, ...]
    reason: str


def read_exemptions(text: str) -> list[Exemption]:
    return [
        Exemption(one["check"], tuple(one["resources"]), one["reason"].strip())
        for one in yaml.safe_load(text)
    ]


def unexplained(findings: Iterable[Finding], exemptions: Sequence[Exemption]) -> list[Finding]:
    """The findings that no exemption covers."""
    return [
        finding
        for finding in findings
        if not any(
            one.check == finding.check and fnmatchcase(finding.resource, pattern)
            for one in exemptions
            for pattern in one.resources
        )
    ]


def stale(findings: Sequence[Finding], exemptions: Iterable[Exemption]) -> list[str]:
    """`check pattern` of every pattern that covers no finding."""
    return [
        f"{one.check} {pattern}"
        for one in exemptions
        for pattern in one.resources
        if not any(
            finding.check == one.check and fnmatchcase(finding.resource, pattern)
            for finding in findings
        )
    ]


def findings_of(report: dict[str, Any]) -> list[Finding]:
    """The failed checks of checkov's report. A file that it could not read is an error, not a finding."""
    if report["summary"]["parsing_errors"] or not report["summary"]["passed"]:
        _fail("checkov could not read the template")
    return [
        Finding(one["check_id"], one["check_name"], one["resource"])
        for one in report["results"]["failed_checks"]
    ]


def where_conditions(value: Any, holds: bool) -> Any:
    """`value` with one branch of each Fn::If: the first if the conditions hold, otherwise the second."""
    if isinstance(value, list):
        return [one for one in (where_conditions(one, holds) for one in value) if one != NOTHING]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"Fn::If"}:
        _, one, other = value["Fn::If"]
        return where_conditions(one if holds else other, holds)
    chosen = {name: where_conditions(one, holds) for name, one in value.items()}
    return {name: one for name, one in chosen.items() if one != NOTHING}


def with_every_resource(template: dict[str, Any]) -> dict[str, Any]:
    """The template without the conditions of its resources. checkov skips those whose condition is false by default."""
    resources = {
        name: {key: value for key, value in one.items() if key != "Condition"}
        for name, one in template["Resources"].items()
    }
    return {**template, "Resources": resources}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        validated = pool.submit(_run, [SAM / "sam", "validate", "--lint"])
        template = json.loads(
            _run([SAM / "python", ROOT / "tools" / "release" / "plain_template.py"])
        )
        shorter = _without_repetition(with_every_resource(template))
        whole = Path(folder) / "template.json"
        whole.write_text(json.dumps(template))
        linted = pool.submit(_run, [SAM / "cfn-lint", whole])
        reports = []
        for holds in (True, False):
            short = Path(folder) / f"{holds}.json"
            short.write_text(json.dumps(where_conditions(shorter, holds)))
            reports.append(json.loads(_run([CHECKOV, "--file", short, *CHECKOV_OPTIONS])))
        deployer = pool.submit(
            _run, [SAM / "cfn-lint", ROOT / "deploy" / "deployer" / "template.yaml"]
        )
        for other in (validated, linted, deployer):
            other.result()
    resources = len(template["Resources"])
    findings = list(dict.fromkeys(one for report in reports for one in findings_of(report)))
    exemptions = read_exemptions(EXCEPTIONS.read_text())
    problems = [
        f"{one.resource}: {one.rule} ({one.check}). Fix it, or add an exception with a reason to {EXCEPTIONS.name}"
        for one in unexplained(findings, exemptions)
    ]
    problems += [
        f"{EXCEPTIONS.name}: {one} matches no finding; delete it"
        for one in stale(findings, exemptions)
    ]
    if resources > RESOURCE_WARNING:
        problems.append(f"{resources} resources of {RESOURCE_LIMIT}: see {RESOURCE_DECISION}")
    if problems:
        _fail("\n".join(problems))
    passed = min(report["summary"]["passed"] for report in reports)
    print(
        f"template: {resources} resources of {RESOURCE_LIMIT}; SAM and cfn-lint report no problem;"
        f" checkov: {passed} checks passed, {len(findings)} exceptions with a reason"
    )


def _without_repetition(template: dict[str, Any]) -> dict[str, Any]:
    """The template with the environment variables on the first function only.

    checkov finds in all of them what it finds in one, and takes longer with them.
    """
    shorter = copy.deepcopy(template)
    functions = (
        one for one in shorter["Resources"].values() if one["Type"] == "AWS::Lambda::Function"
    )
    for function in list(functions)[1:]:
        del function["Properties"]["Environment"]
    return shorter


def _run(command: Sequence[str | Path]) -> str:
    """The command's output. If the command fails, prints it and ends the check."""
    # SAM needs a region although it calls no service.
    environment = {"AWS_DEFAULT_REGION": "us-east-1", "SAM_CLI_TELEMETRY": "0"} | os.environ
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        _fail(done.stdout + done.stderr)
    return done.stdout


def _fail(text: str) -> NoReturn:
    print(text, file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
