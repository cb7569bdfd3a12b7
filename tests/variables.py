"""The environment variables of each function in the template, and the longest values that they can have."""

import json
from dataclasses import fields
from functools import partial
from typing import Any

from larder.settings import Settings
from local.cloudformation import by_default, resolve
from tests.permissions import RESOURCES, TEMPLATE
from tools.generate.text import camel_case

MOST_BYTES = 3900
"""The tests fail above this number of bytes, so that an option leads to a decision instead of a failed deployment.

Lambda takes 4,096 bytes of JSON.
"""

LONGEST_STACK_NAME = "s" * 24
"""The longest name of a new stack. An older one may have 45 letters, which take 147 bytes more."""
LONGEST_NAME_WITH_PREFIX = "s" * 60
"""The longest name of a stack with `NamePrefix`."""
_REGION = "us-gov-west-1"
_PSEUDO_PARAMETERS = {"AWS::Region": _REGION, "AWS::URLSuffix": "amazonaws.com.cn"}

TEXTS = {
    "DefaultKeyPrefix": "x" * 32,
    "DefaultKeyPermissions": "{" + '"' * 32 + "x" * 94 + "}",
    "ApiKeyHeaders": "x" * 80,
    "ApiKeySchema": "{" + '"' * 64 + "x" * 334 + "}",
    "OperatorEmails": "ada@" + "x" * 292,
    "AllowedEmailDomains": "x" * 512,
    "ProductName": "\U0001f600" * 64,
    "EmailSender": "ada@" + "x" * 250,
    "AllowedNetworks": "203.113.113.113/32," * 17 + "2001:db8:111:1111:1111::/80",
    "BaseUrl": "https://" + "x" * 88,
    "ProxySecretHash": "x" * 43 + "=",
    "TrustedIssuers": "https://" + "x" * 792,
    "TrustedOrigins": "https://" + "x" * 248,
    "Extensions": "x" * 64,
}
"""For each parameter that is a text, the value with the longest JSON."""


def variables_of(logical_id: str, *, resolved: bool = False) -> dict[str, Any]:
    """The variables of a function and of all functions, as in the template or with the longest values."""
    shared = TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]
    own = RESOURCES[logical_id]["Properties"].get("Environment", {}).get("Variables", {})
    variables = {**shared, **own}
    return longest_variables(variables) if resolved else variables


def longest_variables(variables: dict[str, Any], stack: str = LONGEST_STACK_NAME) -> dict[str, str]:
    """The variables of a function with the longest values that a deployment of this name can give them."""
    return {
        name: str(resolve(by_default(TEMPLATE, value), partial(_longest, stack=stack), _longest_attribute))
        for name, value in variables.items()
    }


def measured(variables: dict[str, str]) -> int:
    """The size of variables as Lambda measures it."""
    return len(json.dumps(variables, separators=(",", ":")))


def longest_options() -> dict[str, str]:
    """Every parameter that is an option of the functions, with its longest value."""
    names = [camel_case(option.name) for option in fields(Settings)]
    return {name: _longest(name) for name in names if name in TEMPLATE["Parameters"]}


def _longest(name: str, stack: str = LONGEST_STACK_NAME) -> str:
    if name == "AWS::StackName":
        return stack
    if name in _PSEUDO_PARAMETERS:
        return _PSEUDO_PARAMETERS[name]
    if name in TEXTS:
        return TEXTS[name]
    if name in RESOURCES:
        return _longest_name(name, stack)
    parameter = TEMPLATE["Parameters"][name]
    if "MaxValue" in parameter:
        return str(parameter["MaxValue"])
    return max(map(str, parameter["AllowedValues"]), key=len)


def _longest_name(logical_id: str, stack: str) -> str:
    match RESOURCES[logical_id]["Type"]:
        case "AWS::S3::Bucket":
            return "b" * 63
        case "AWS::SecretsManager::Secret":
            secret = f"{stack}-{logical_id}-1A2B3C4D5E6F7-abcdef"
            return f"arn:aws-us-gov:secretsmanager:{_REGION}:123456789012:secret:{secret}"
        case "AWS::DynamoDB::Table":
            return f"{stack}-{logical_id}-1A2B3C4D5E6F7"
        case "AWS::Serverless::Function":
            name = RESOURCES[logical_id]["Properties"]["FunctionName"]
            return str(resolve(by_default(TEMPLATE, name), partial(_longest, stack=stack), _longest_attribute))
    raise AssertionError(f"a variable has the name of {logical_id}")


def _longest_attribute(name: str, attribute: str) -> str:
    raise AssertionError(f"a variable has {name}.{attribute}")
