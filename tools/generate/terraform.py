"""The variables of the Terraform module in terraform/, from the parameters of template.yaml.

Terraform's regular expressions are those of RE2, which has no look-ahead and writes characters in another way. So the
patterns of some parameters become two rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from local.cloudformation import read_template
from tools.generate.text import snake_case

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "terraform"
_HEADER = "# Generated from template.yaml by `make generate`. Do not edit.\n"
_BOOLEAN = {"true", "false"}

Parameter = Mapping[str, Any]
Rule = tuple[str, str]
"""A condition, and what the value must be."""


class NotTranslated(Exception):
    """The message names a pattern that has no known form in RE2."""


def contents() -> dict[str, str]:
    """The generated files of the module, by name."""
    parameters = read_template(ROOT / "template.yaml")["Parameters"]
    variables = "\n".join(_variable(name, one) for name, one in parameters.items())
    width = max(map(len, parameters))
    values = "\n".join(
        f"    {name:{width}} = tostring(var.{snake_case(name)})" for name in parameters
    )
    return {
        "variables.tf": f"{_HEADER}\n{variables}",
        "parameters.tf": f"{_HEADER}\nlocals {{\n  parameters = {{\n{values}\n  }}\n}}\n",
    }


def write(folder: Path = FOLDER) -> None:
    for name, text in contents().items():
        (folder / name).write_text(text)


def stale(folder: Path = FOLDER) -> list[str]:
    """The names of generated files that are absent or not up to date."""
    return [
        name
        for name, text in contents().items()
        if not (folder / name).is_file() or (folder / name).read_text() != text
    ]


def without_look_ahead(pattern: str) -> tuple[list[str], list[str]]:
    """Patterns of RE2 that a value must match, and those that it must not match. Raises NotTranslated."""
    forbidden = re.fullmatch(r"\^\(\(\?!(?P<word>[\w]+)\)(?P<rest>.*)\)\?\$", pattern)
    if forbidden:
        return [f"^({forbidden['rest']})?$"], [f"^{forbidden['word']}"]
    ahead = re.fullmatch(r"\^\(\?=(?P<ahead>[^()]*)\)(?P<rest>.*)", pattern)
    accepted = [f"^({ahead['ahead']})", f"^{ahead['rest']}"] if ahead else [pattern]
    accepted = [re.sub(r"\\u([0-9A-F]{4})", r"\\x{\1}", one) for one in accepted]
    if any("(?" in one for one in accepted):
        raise NotTranslated(
            f"tools/generate/terraform.py has no form without look-ahead for {pattern}"
        )
    return accepted, []


def _variable(name: str, parameter: Parameter) -> str:
    kind, default = _type_and_default(parameter)
    lines = [
        f'variable "{snake_case(name)}" {{',
        f"  description = {_text(parameter['Description'])}",
        f"  type        = {kind}",
        f"  default     = {default}",
        "  nullable    = false",
    ]
    for condition, rule in _rules(f"var.{snake_case(name)}", kind, parameter):
        lines += [
            "",
            "  validation {",
            f"    condition     = {condition}",
            f"    error_message = {_text(f'{snake_case(name)} {rule}.')}",
            "  }",
        ]
    return "\n".join([*lines, "}", ""])


def _type_and_default(parameter: Parameter) -> tuple[str, str]:
    default = parameter["Default"]
    if parameter["Type"] == "Number":
        return "number", str(default)
    if set(parameter.get("AllowedValues", ())) == _BOOLEAN:
        return "bool", default
    return "string", _text(default)


def _rules(value: str, kind: str, parameter: Parameter) -> Iterator[Rule]:
    if kind == "bool":
        return
    said = parameter.get("ConstraintDescription")
    if allowed := parameter.get("AllowedValues"):
        listed = ", ".join(_text(one) if kind == "string" else str(one) for one in allowed)
        yield f"contains([{listed}], {value})", f"must be one of {', '.join(map(str, allowed))}"
        return
    if kind == "number":
        least, most = parameter.get("MinValue"), parameter.get("MaxValue")
        bounds = [f"floor({value}) == {value}"]
        bounds += [f"{value} >= {least}"] if least is not None else []
        bounds += [f"{value} <= {most}"] if most is not None else []
        rule = "must be a whole number"
        rule += f", at least {least}" if least is not None else ""
        rule += f" and at most {most}" if most is not None else ""
        yield " && ".join(bounds), rule
        return
    if longest := parameter.get("MaxLength"):
        yield f"length({value}) <= {longest}", f"must have at most {longest} characters"
    if pattern := parameter.get("AllowedPattern"):
        accepted, refused = without_look_ahead(pattern)
        tests = [f"can(regex({_text(one)}, {value}))" for one in accepted]
        tests += [f"!can(regex({_text(one)}, {value}))" for one in refused]
        yield " && ".join(tests), said or f"must match {pattern}"


def _text(value: str) -> str:
    """A quoted string of HCL."""
    quoted = json.dumps(value, ensure_ascii=False)
    return quoted.replace("${", "$${").replace("%{", "%%{")
