"""Parameters and outputs of the template, and tables of options, from `larder.settings.Settings`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import Field, fields
from itertools import groupby
from typing import Any

from larder.settings import Settings
from tools.generate.text import camel_case, quoted, table_row

GROUPS = {
    "cache": "Storage and retention of artifacts.",
    "keys": "Defaults and rules for API keys.",
    "extensions": "Your own functions, in place of what Larder does.",
    "accounts": "Sign-up and sign-in.",
    "teams": "Teams and invitations.",
    "mail": "The sender of mail.",
    "requests": "Trusted origins and rate limits.",
    "functions": "How functions call AWS.",
}
"""The groups that an option of `Settings` may name. Each has a table in docs/configuration.md."""

INVOKED = {
    "email_function": "send_account_email",
    "removal_function": "remove_artifacts",
    "commit_function": "commit_upload",
}
"""The function that an option names. A `!Ref` would be circular if that function had the variable too."""

_EDGE_URL = (
    '!If [HasEdgeDomain, !Sub "https://${EdgeDomainName}", '
    '!Sub "https://${EdgeDistribution.DomainName}"]'
)
CONDITIONAL_OUTPUTS = {
    "artifacts_bucket": ("", "!If [OwnsBucket, !Ref ArtifactsBucket, !Ref ExistingBucket]"),
    "edge_url": ("HasEdge", _EDGE_URL),
}
"""Options whose value depends on a condition. Only stacks that meet the first one, if any, have the output."""

Option = Field[Any]


def parameters() -> None:
    """The template parameters of all options."""
    for group, options in groupby(_options(), key=lambda option: option.metadata["group"]):
        print(f"  # {GROUPS[group]}")
        for option in options:
            print(f"  {camel_case(option.name)}:")
            for name, value in _properties(option):
                print(f"    {name}: {value}")


def outputs() -> None:
    """The names of resources that the operator's command reads from a stack."""
    for option in fields(Settings):
        if option.metadata["group"] is None:
            resource = f"!Ref {camel_case(INVOKED.get(option.name, option.name))}"
            condition, value = CONDITIONAL_OUTPUTS.get(option.name, ("", resource))
            print(f"  {camel_case(option.name)}:")
            if condition:
                print(f"    Condition: {condition}")
            print(f"    Value: {value}")


def table(group: str) -> None:
    """The options of one group as a table of docs/configuration.md."""
    print(table_row("Parameter", "Default (bounds)", "Meaning"))
    print("|---|---|---|")
    for option in _options():
        if option.metadata["group"] == group:
            print(
                table_row(
                    f"`{camel_case(option.name)}`",
                    " ".join(filter(None, [_default(option), _bounds(option)])),
                    option.metadata["help"],
                )
            )


def prefixed(rest: str) -> str:
    """A name that begins with the name of the stack, or with NamePrefix."""
    names = (f'!Sub "${{{prefix}}}-{rest}"' for prefix in ("NamePrefix", "AWS::StackName"))
    return f"!If [HasNamePrefix, {', '.join(names)}]"


def _options() -> list[Option]:
    """The options that are template parameters."""
    return [option for option in fields(Settings) if option.metadata["group"] is not None]


def _properties(option: Option) -> Iterator[tuple[str, str]]:
    default, metadata = option.default, option.metadata
    is_number = isinstance(default, int) and not isinstance(default, bool)
    yield "Type", "Number" if is_number else "String"
    if isinstance(default, bool):
        yield "Default", quoted(str(default).lower())
        yield "AllowedValues", '["true", "false"]'
    else:
        # Also a number: CloudFormation can write a plain one in another way, such as 1.0E11.
        yield "Default", quoted(str(default))
    if metadata["longest"]:
        yield "MaxLength", str(metadata["longest"])
    if choices := metadata["choices"]:
        listed = (quoted(str(choice)) if is_number else str(choice) for choice in choices)
        yield "AllowedValues", f"[{', '.join(listed)}]"
    if metadata["pattern"]:
        yield "AllowedPattern", quoted(metadata["pattern"])
    if metadata["rule"]:
        yield "ConstraintDescription", quoted(metadata["rule"])
    if metadata["min"] is not None:
        yield "MinValue", str(metadata["min"])
    if metadata["max"] is not None:
        yield "MaxValue", str(metadata["max"])
    # CloudFormation's console shows it as it is.
    yield "Description", quoted(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", metadata["help"]))


def _default(option: Option) -> str:
    if isinstance(option.default, bool):
        return str(option.default).lower()
    if isinstance(option.default, int):
        return str(option.default)
    return f"`{option.default}`" if option.default else ""


def _bounds(option: Option) -> str:
    """In parentheses. Empty for a boolean, whose default shows what it is."""
    least, most = option.metadata["min"], option.metadata["max"]
    if longest := option.metadata["longest"]:
        return f"(≤{longest} characters)"
    if least is not None:
        return f"(≥{least})" if most is None else f"({least}\N{EN DASH}{most})"
    others = [one for one in option.metadata["choices"] or () if one != option.default]
    return f"(or {', '.join(f'`{choice}`' for choice in others)})" if others else ""
