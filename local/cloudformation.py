"""Reads a CloudFormation template: its short tags (`!Ref`), parameters' defaults and intrinsic functions.

It supports only what a template on one machine needs, and raises an error that names any other function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

try:
    # libyaml's loader, which saves each process of the local cloud a tenth of a second at its start.
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

Ref = Callable[[str], Any]
"""The value of `!Ref <name>`; raises KeyError for a name it does not know."""

GetAtt = Callable[[str, str], Any]
"""The value of `!GetAtt <name>.<attribute>`; raises KeyError for a name it does not know."""

NOTHING = {"Ref": "AWS::NoValue"}

_SUB_VARIABLE = re.compile(r"\$\{(!?)([^}]+)\}")


class TemplateError(Exception):
    """The template cannot be read or uses something that has no meaning on one machine."""


def read_template(path: Path) -> dict[str, Any]:
    """The template as plain data, short tags written out (`!Ref X` is `{"Ref": "X"}`).

    Raises TemplateError if the file is missing or not YAML.
    """
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise TemplateError(f"cannot read {path}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise TemplateError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(document, dict):
        raise TemplateError(f"{path} is not a template")
    return document


def by_default(template: dict[str, Any], value: Any) -> Any:
    """`value` with the branch of each Fn::If that holds for the default parameters, without those that are NoValue."""
    if isinstance(value, list):
        listed = [by_default(template, one) for one in value]
        return [one for one in listed if one != NOTHING]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"Fn::If"}:
        condition, one, other = value["Fn::If"]
        return by_default(template, one if holds(template, condition) else other)
    chosen = {name: by_default(template, one) for name, one in value.items()}
    return {name: one for name, one in chosen.items() if one != NOTHING}


def holds(template: dict[str, Any], condition: Any) -> bool:
    """Whether a condition, or the one with this name, holds for the default parameters."""
    if isinstance(condition, str):
        return holds(template, template["Conditions"][condition])
    ((operator, arguments),) = condition.items()
    if operator == "Condition":
        return holds(template, arguments)
    if operator == "Fn::Equals":
        one, other = (_default(template, argument) for argument in arguments)
        return one == other
    results = [holds(template, argument) for argument in arguments]
    return {"Fn::Not": not results[0], "Fn::And": all(results), "Fn::Or": any(results)}[operator]


def _default(template: dict[str, Any], value: Any) -> str:
    """The text that CloudFormation compares."""
    if isinstance(value, dict):
        value = template["Parameters"][value["Ref"]]["Default"]
    return str(value).lower() if isinstance(value, bool) else str(value)


def resolve(value: Any, ref: Ref, get_att: GetAtt) -> Any:
    """`value` with every intrinsic function replaced by its value."""
    if isinstance(value, list):
        return [resolve(item, ref, get_att) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((name, argument),) = value.items()
        if name == "Ref" or name.startswith("Fn::"):
            return _call(name, argument, ref, get_att)
    return {key: resolve(item, ref, get_att) for key, item in value.items()}


def _call(name: str, argument: Any, ref: Ref, get_att: GetAtt) -> Any:
    try:
        if name == "Ref":
            return ref(argument)
        if name == "Fn::GetAtt":
            resource, attribute = (
                argument.split(".", 1) if isinstance(argument, str) else (argument[0], argument[1])
            )
            return get_att(resource, attribute)
        if name == "Fn::Sub":
            return _substitute(argument, ref, get_att)
        if name == "Fn::Join":
            separator, parts = argument
            return str(separator).join(str(part) for part in resolve(parts, ref, get_att))
        if name == "Fn::Select":
            index, choices = argument
            return resolve(choices, ref, get_att)[int(index)]
    except KeyError as error:
        raise TemplateError(
            f"{name} names {error.args[0]!r}, which is not in the template"
        ) from None
    raise TemplateError(f"the local cloud does not support {name}")


def _substitute(argument: Any, ref: Ref, get_att: GetAtt) -> str:
    text, variables = argument if isinstance(argument, list) else (argument, {})
    values: Mapping[str, Any] = resolve(variables, ref, get_att)

    def one(match: re.Match[str]) -> str:
        literal, name = match.groups()
        if literal:
            return "${" + name + "}"
        if name in values:
            return str(values[name])
        if "." in name:
            return str(get_att(*name.split(".", 1)))
        return str(ref(name))

    return _SUB_VARIABLE.sub(one, str(text))


class _Loader(SafeLoader):
    pass


def _short_tag(loader: SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    else:
        raise TemplateError(f"!{suffix} is followed by something that is not a value")
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_tag)
