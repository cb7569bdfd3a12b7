"""Print SAM's output for template.yaml as JSON: every resource that a deployment would have.

Run by the Python of SAM's own environment: `.tools/sam/bin/python tools/transform_template.py`. It needs no
network: the code of functions and layers gets placeholder addresses, such as an upload would give it.
"""

import json
import os
import sys
from pathlib import Path

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

TEMPLATE = Path(__file__).resolve().parent.parent / "template.yaml"


class NoManagedPolicies:
    """No managed policies. SAM looks them up only for policies that a template gives by name; this one has none."""

    def load(self) -> dict[str, str]:
        return {}


def main() -> None:
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    template = yaml_parse(TEMPLATE.read_text())
    template["Globals"]["Function"]["CodeUri"] = "s3://bucket/functions.zip"
    for layer in ("LarderLayer", "JwtLayer"):
        template["Resources"][layer]["Properties"]["ContentUri"] = f"s3://bucket/{layer}.zip"
    json.dump(transform(template, {}, NoManagedPolicies()), sys.stdout)


if __name__ == "__main__":
    main()
