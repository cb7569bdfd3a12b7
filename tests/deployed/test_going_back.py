"""An upgrade from the first release, back to it, and forth again. Each also fails in the middle, and is rolled back.

The first release is this one with the routes, limits and log groups of the first: its code is not in this repository.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import read_template
from tests.deployed.stack import TRIAL, Stack, packed
from tests.emulator.aws_behaviour import FAIL_AT
from tests.emulator.process import ROOT, Emulator, emulator
from tools.data_resources import recording
from tools.release.package import complete

pytestmark = pytest.mark.e2e

LAST = "AfterTheStage"
SHARED_GROUPS = {f"{domain}LogGroup" for domain in ("Accounts", "ApiKeys", "Artifacts", "Pages", "Teams", "Usage")}
RETAINED = "PutArtifactLogGroup"
"""A log group that an operator keeps, as docs/deploy.md says."""
FIRST_RELEASE = json.loads(recording(ROOT, "0.1.0").read_text())["HttpApi"]


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    return tmp_path / "fail-at"


@pytest.fixture
def running(tmp_path: Path, failing: Path) -> Iterator[Emulator]:
    with emulator(tmp_path / "emulator", {FAIL_AT: str(failing)}) as started:
        yield started


def with_a_last_resource(folder: Path, template: dict[str, Any]) -> None:
    """Write the template, with a resource that CloudFormation updates after the stage."""
    template["Resources"][LAST] = {
        "Type": "AWS::SSM::Parameter",
        "DependsOn": "HttpApiApiGatewayDefaultStage",
        "Properties": {"Type": "String", "Value": folder.name},
    }
    (folder / "template.yaml").write_text(json.dumps(template))
    complete(folder)


def first_release(template: dict[str, Any]) -> dict[str, Any]:
    """The template with the routes, limits and log groups of the first release: a group for each function."""
    for logical_id, resource in list(template["Resources"].items()):
        if resource["Type"] == "AWS::Serverless::Function":
            logging = resource["Properties"]["LoggingConfig"]
            group = template["Resources"][logging["LogGroup"]["Ref"]]
            template["Resources"][f"{logical_id}LogGroup"] = copy.deepcopy(group)
            logging["LogGroup"] = {"Ref": f"{logical_id}LogGroup"}
        events = resource.get("Properties", {}).get("Events", {})
        for name in [name for name, event in events.items() if event["Type"] == "HttpApi"]:
            given = events[name]["Properties"]
            if "Path" in given and f"{given['Method']} {given['Path']}" not in FIRST_RELEASE["Routes"]:
                del events[name]
    for name in SHARED_GROUPS:
        del template["Resources"][name]
    template["Resources"][RETAINED]["DeletionPolicy"] = "Retain"
    api = template["Resources"]["HttpApi"]["Properties"]
    assert FIRST_RELEASE["RouteSettings"] == []
    del api["RouteSettings"]
    return template


def log_groups(stack: Stack) -> set[str]:
    """The names of all log groups in the emulator."""
    pages = stack.emulator.client("logs").get_paginator("describe_log_groups").paginate()
    return {log_group["logGroupName"] for page in pages for log_group in page["logGroups"]}


def limits(stack: Stack) -> set[str]:
    gateway = stack.emulator.client("apigatewayv2")
    (one,) = gateway.get_stages(ApiId=stack.physical("HttpApi"))["Items"]
    return set(one["RouteSettings"])


def fails_and_goes_back(stack: Stack, failing: Path, before: Stack) -> None:
    failing.write_text(LAST)
    failed = stack.try_to_deploy(TRIAL)
    assert failed.status == 1, failed.text[-2_000:]
    assert f"{LAST}: this failure was requested by a test" in failed.text
    assert stack.described()["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE", stack.failures()
    assert stack.template() == before.template()


def test_both_ways_work_and_so_do_their_rollbacks(running: Emulator, failing: Path, tmp_path: Path) -> None:
    now = Stack(running, packed(tmp_path / "now"))
    shutil.copytree(now.folder, tmp_path / "first")
    first = Stack(running, tmp_path / "first")
    template = read_template(now.folder / "template.yaml")
    with_a_last_resource(now.folder, template)
    limited = set(template["Resources"]["HttpApi"]["Properties"]["RouteSettings"])
    with_a_last_resource(first.folder, first_release(read_template(now.folder / "template.yaml")))
    go_both_ways(first, now, failing, limited)


def go_both_ways(first: Stack, now: Stack, failing: Path, limited: set[str]) -> None:
    first.deploy(TRIAL)
    assert limits(first) == set()
    before, retained = log_groups(first), first.physical(RETAINED)
    fails_and_goes_back(now, failing, first)
    assert log_groups(first) == before
    now.deploy(TRIAL)
    assert limits(now) == limited
    shared = {now.physical(name) for name in {*SHARED_GROUPS, "AccessLogGroup"}}
    assert log_groups(now) == {*shared, retained}
    assert not before & shared - {now.physical("AccessLogGroup")}
    fails_and_goes_back(first, failing, now)
    first.deploy(TRIAL)
    # An update removes none.
    assert limits(first) == limited
    now.deploy(TRIAL)
    assert limits(now) == limited
