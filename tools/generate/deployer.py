"""The statements of the policies in deploy/deployer/template.yaml, from the resource types of template.yaml and the
actions of deployer.toml.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from local.cloudformation import read_template
from tools.generate.text import quoted

TABLE = Path(__file__).with_name("deployer.toml")
PROGRAMS = frozenset({"larder install"})
EXPANDED = {
    "AWS::Serverless::Function": (
        "AWS::Events::Rule",
        "AWS::IAM::Role",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::Lambda::Function",
        "AWS::Lambda::Permission",
    ),
    "AWS::Serverless::HttpApi": ("AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage"),
    "AWS::Serverless::LayerVersion": ("AWS::Lambda::LayerVersion",),
}
"""The types that SAM makes of its own in this template."""

Statement = Mapping[str, Any]

_ROOT = Path(__file__).resolve().parents[2]
_WIDTH = 108


class NotCovered(Exception):
    """The message names a resource type that no statement of deployer.toml has."""


def resource_types(template: Mapping[str, Any]) -> set[str]:
    """The types that CloudFormation deploys."""
    written = {resource["Type"] for resource in template["Resources"].values()}
    return {one for name in written for one in EXPANDED.get(name, (name,))}


def needed_statements(types: Iterable[str]) -> list[Statement]:
    """The statements for these types and for the programs. Raises NotCovered for a type without one."""
    table: list[Statement] = tomllib.loads(TABLE.read_text())["statement"]
    covered = {name for statement in table for name in statement["types"]}
    if missing := sorted(set(types) - covered):
        raise NotCovered(f"{TABLE.name} has no statement for {', '.join(missing)}")
    return [one for one in table if not PROGRAMS.union(types).isdisjoint(one["types"])]


def statements(policy: str, *sids: str) -> None:
    """The statements of one policy: those with these ids, or all."""
    types = resource_types(read_template(_ROOT / "template.yaml"))
    for statement in needed_statements(types):
        if statement["policy"] == policy and (not sids or statement["sid"] in sids):
            for line in _lines(statement):
                print(f"          {line}")


def _lines(statement: Statement) -> Iterator[str]:
    if reason := statement.get("reason"):
        for line in wrap(reason, _WIDTH):
            yield f"# {line}"
    if "when" not in statement:
        yield from _item(_body(statement))
        return
    yield "- !If"
    yield f"  - {statement['when']}"
    yield from (f"  {line}" for line in _item(_body(statement)))
    yield "  - !Ref AWS::NoValue"


def _body(statement: Statement) -> Iterator[str]:
    yield f"Sid: {statement['sid']}"
    yield f"Effect: {statement.get('effect', 'Allow')}"
    yield from _listed("Action", statement["actions"])
    yield from _listed("Resource", map(_value, statement["resources"]))
    for operator, tests in statement.get("condition", {}).items():
        yield "Condition:"
        yield f"  {operator}:"
        for key, wanted in tests.items():
            yield f"    {key}: {_value(wanted)}"


def _listed(name: str, values: Iterable[str]) -> Iterator[str]:
    yield f"{name}:"
    for value in values:
        yield f"  - {value}"


def _item(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{'  ' if number else '- '}{line}"


def _value(text: str) -> str:
    return f"!Sub {quoted(text)}" if "${" in text else quoted(text)
