"""The options of a deployment: larder.toml, `--set`, and what is deployed."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from ipaddress import ip_interface, ip_network
from pathlib import Path
from typing import Any

import click

from larder.settings import listed

PROTECT = "ProtectData"
EDGE = "Edge"
BUCKET = "ExistingBucket"
NAME_PREFIX = "NamePrefix"
BUDGET = "MonthlyBudgetDollars"
KEY = "KmsKeyArn"
NETWORKS = "AllowedNetworks"

_SETTINGS = {"stack", "account", "region", "code-bucket", "role", "profile", "tags", "options"}

RATE = "ThrottlingRate"
READS, WRITES = "TableReadUnits", "TableWriteUnits"
TABLE_QUOTA = 40_000
"""The most units a second of a table that AWS allows without a request."""

_UNITS = {READS: (4, 12_000), WRITES: (2, 4_000)}
"""The units of the busiest table for each request of `ThrottlingRate`, and the least limit.

A lookup reads three. A tenth of the lookups upload an artifact, which takes twelve writes until it has expired. The
rest is for reports and other requests.
"""

Declared = Mapping[str, Mapping[str, Any]]
"""The parameters of a template."""


@dataclass(frozen=True, slots=True)
class Change:
    """A parameter whose value will differ. None stands for a parameter that the template does not have."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Environment:
    """A section of larder.toml. `options` is None without a file: then what is deployed stays."""

    stack: str | None = None
    account: str | None = None
    region: str | None = None
    code_bucket: str | None = None
    role: str | None = None
    profile: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] | None = None


def read_environment(path: Path, name: str | None) -> Environment:
    """The section `name`, or the only one. Without the file, an empty one. Raises UsageError."""
    try:
        sections = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Environment()
    except ValueError as error:
        raise click.UsageError(f"{path} is not valid TOML: {error}") from error
    if name is None and len(sections) == 1:
        (name,) = sections
    if name is None or not isinstance(section := sections.get(name), dict):
        known = ", ".join(sections) or "none"
        raise click.UsageError(f"{path}: choose an environment with --env. It has: {known}")
    for key in section:
        if key not in _SETTINGS:
            raise click.UsageError(f"{path}: [{name}] has no setting {key}.{_hint(key, _SETTINGS)}")
    tables = {
        one: {key: _text(value) for key, value in section.get(one, {}).items()}
        for one in ("tags", "options")
    }
    texts = {
        key.replace("-", "_"): _text(value) for key, value in section.items() if key not in tables
    }
    return Environment(**texts, **tables)  # type: ignore[arg-type]


def read_settings(lines: Iterable[str]) -> dict[str, str]:
    """The options of `--set NAME=VALUE`. Raises UsageError."""
    values: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals:
            raise click.UsageError(f"--set {line}: write NAME=VALUE")
        values[name] = value
    return values


def all_values(declared: Declared, given: Mapping[str, str]) -> dict[str, str]:
    """A value for every parameter of the template: the given one, or the default.

    CloudFormation keeps the deployed value of a parameter that it is not given. So an option that you take out would
    stay, and a new default would never arrive. Raises ClickException for an unknown name and a value out of bounds.
    """
    for name, value in given.items():
        if name not in declared:
            raise click.ClickException(f"Larder has no option {name}.{_hint(name, declared)}")
        check_value(name, value, declared[name])
    chosen = {**(units_of(int(given[RATE])) if RATE in given else {}), **given}
    return {name: chosen.get(name, default_of(one)) for name, one in declared.items()}


def units_of(rate: int) -> dict[str, str]:
    """The limits of the tables that follow `ThrottlingRate`, which CloudFormation cannot compute."""
    return {
        name: str(min(max(units * rate, least), TABLE_QUOTA))
        for name, (units, least) in _UNITS.items()
    }


def kept_values(declared: Declared, deployed: Mapping[str, str]) -> dict[str, str]:
    """The deployed values of options that the template still has."""
    return {name: value for name, value in deployed.items() if name in declared}


def default_of(parameter: Mapping[str, Any]) -> str:
    return _text(parameter.get("Default", ""))


def check_value(name: str, value: str, parameter: Mapping[str, Any]) -> None:
    """Raise ClickException unless CloudFormation accepts the value."""
    if broken := _broken_rule(value, parameter):
        raise click.ClickException(
            f"{name}={value}: {parameter.get('ConstraintDescription', broken)}"
        )


def check_together(rules: Mapping[str, Any], values: Mapping[str, str]) -> None:
    """Raise ClickException for the first broken rule of a template, as CloudFormation does after the upload.

    Also for a network with bits after its prefix, which no pattern can find.
    """
    for rule in rules.values():
        if not _holds(rule.get("RuleCondition"), values):
            continue
        for assertion in rule["Assertions"]:
            if not _holds(assertion["Assert"], values):
                raise click.ClickException(assertion["AssertDescription"])
    for text in listed(values.get(NETWORKS, "")):
        network = ip_network(text, strict=False)
        if ip_interface(text).ip != network.network_address:
            raise click.ClickException(f"{NETWORKS}={text}: must begin a network. Write {network}")


def _holds(condition: Any, values: Mapping[str, str]) -> bool:
    """Whether a condition of a rule holds. None always does."""
    if condition is None:
        return True
    ((function, arguments),) = condition.items()
    if function == "Fn::Equals":
        one, other = (
            values[argument["Ref"]] if isinstance(argument, dict) else _text(argument)
            for argument in arguments
        )
        return one == other
    results = [_holds(argument, values) for argument in arguments]
    return {"Fn::Not": not results[0], "Fn::And": all(results), "Fn::Or": any(results)}[function]


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    """What differs between the deployed values and the new ones, in the order of the template."""
    names = [*after, *(name for name in before if name not in after)]
    return [
        Change(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def as_toml(environment: str, settings: Mapping[str, str], options: Mapping[str, str]) -> str:
    """A larder.toml with one environment."""
    lines = [f"[{environment}]", *(f"{name} = {_quoted(one)}" for name, one in settings.items())]
    lines += ["", f"[{environment}.options]"]
    lines += [f"{name} = {_quoted(one)}" for name, one in options.items()]
    return "\n".join(lines) + "\n"


def _broken_rule(value: str, parameter: Mapping[str, Any]) -> str | None:
    if "AllowedValues" in parameter:
        allowed = [_text(allowed_value) for allowed_value in parameter["AllowedValues"]]
        return None if value in allowed else f"must be one of {', '.join(allowed)}"
    if parameter.get("Type") == "Number":
        return _broken_number(value, parameter)
    longest, shortest = parameter.get("MaxLength"), parameter.get("MinLength")
    if longest is not None and len(value) > int(longest):
        return f"must have at most {longest} characters"
    if shortest is not None and len(value) < int(shortest):
        return f"must have at least {shortest} characters"
    pattern = parameter.get("AllowedPattern")
    if pattern is not None and not re.fullmatch(pattern, value):
        return f"must match {pattern}"
    return None


def _broken_number(value: str, parameter: Mapping[str, Any]) -> str | None:
    if not re.fullmatch(r"-?\d+(\.\d+)?", value):
        return "must be a number"
    least, most = parameter.get("MinValue"), parameter.get("MaxValue")
    if least is not None and float(value) < float(least):
        return f"must be at least {least}"
    if most is not None and float(value) > float(most):
        return f"must be at most {most}"
    return None


def _hint(name: str, known: Iterable[str]) -> str:
    similar = get_close_matches(name, list(known), n=1)
    return f" Did you mean {similar[0]}?" if similar else ""


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(value: str) -> str:
    """A basic string of TOML, without characters that a terminal obeys."""
    escaped = "".join(
        one if one.isprintable() else f"\\U{ord(one):08x}"
        for one in value.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped}"'
