"""Print SAM's output for a template as JSON: the plain template of a release, without a transform.

Run by the Python of SAM's own environment: `.tools/sam/bin/python tools/release/plain_template.py [TEMPLATE]`. It needs
no network. The parameters `CodeBucket` and `CodePrefix` say where the archives are that the template names, and one for
each archive which version of it.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"
PARAMETERS = {
    "CodeBucket": {
        "Type": "String",
        "Description": "The bucket that has the archives of the release. It has to be in the region of the stack.",
        "AllowedPattern": "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
    },
    "CodePrefix": {
        "Type": "String",
        "Default": "",
        "Description": "What the keys of the archives begin with, such as `larder/larder-prod/`.",
    },
}
VERSION = {
    "Type": "String",
    "Default": "",
    "Description": "The version of the archive in the bucket, from S3. Empty for the newest one.",
}
"""The parameter for each archive."""


class NoManagedPolicies:
    """No managed policies. SAM looks them up only for policies that a template gives by name; this one has none."""

    def load(self) -> dict[str, str]:
        return {}


def plain(template: dict[str, Any]) -> dict[str, Any]:
    """The template with resources of CloudFormation only."""
    template["Parameters"] |= PARAMETERS
    template.setdefault("Conditions", {})
    for properties in (
        template.get("Globals", {}).get("Function", {}),
        *(resource.get("Properties", {}) for resource in template["Resources"].values()),
    ):
        for name in ("CodeUri", "ContentUri"):
            if isinstance(archive := properties.get(name), str):
                version = version_parameter(archive)
                template["Parameters"][version] = VERSION
                template["Conditions"][f"Has{version}"] = {
                    "Fn::Not": [{"Fn::Equals": [{"Ref": version}, ""]}]
                }
                properties[name] = {
                    "Bucket": {"Ref": "CodeBucket"},
                    "Key": {"Fn::Sub": "${CodePrefix}" + archive},
                    "Version": {
                        "Fn::If": [f"Has{version}", {"Ref": version}, {"Ref": "AWS::NoValue"}]
                    },
                }
    made: dict[str, Any] = transform(template, {}, NoManagedPolicies())
    for resource in made["Resources"].values():
        if resource["Type"] == "AWS::IAM::Role":
            properties = resource["Properties"]
            properties["ManagedPolicyArns"] = _attached(properties["ManagedPolicyArns"])
    return made


def _attached(policies: list[Any]) -> list[Any]:
    """The managed policies of a role, AWS's own for every partition.

    SAM attaches those for logs and for a VPC to every function that might be in one (its issue 3502). The one for a VPC
    includes the other, and IAM takes ten for a role. So only one is attached.
    """
    logs, traces, network = (
        {"Fn::Sub": re.sub("^arn:[a-z-]+:", "arn:${AWS::Partition}:", policy)}
        for policy in policies
        if isinstance(policy, str)
    )
    own = [policy for policy in policies if not isinstance(policy, str)]
    return [{"Fn::If": ["InVpc", network, logs]}, traces, *own]


def version_parameter(archive: str) -> str:
    """The parameter with the version of an archive: `JwtLayerVersion` for jwt-layer-0123456789abcdef.zip."""
    words = archive.rpartition("-")[0].split("-")
    return "".join(word.capitalize() for word in words) + "Version"


def main(arguments: list[str]) -> None:
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    path = Path(arguments[0]) if arguments else TEMPLATE
    json.dump(plain(yaml_parse(path.read_text())), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
