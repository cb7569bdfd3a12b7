"""What SAM makes of the template, by SAM's own transform in its own environment (`.tools/sam`)."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_PYTHON = ROOT / ".tools" / "sam" / "bin" / "python"

_TRANSFORM = """
import json, sys
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

class NoManagedPolicies:
    def load(self):
        return {}

template = yaml_parse(open(sys.argv[1]).read())
# Where the packed code would lie after an upload.
template["Globals"]["Function"]["CodeUri"] = "s3://bucket/functions.zip"
template["Resources"]["LarderLayer"]["Properties"]["ContentUri"] = "s3://bucket/layer.zip"
print(json.dumps(transform(template, {}, NoManagedPolicies())["Resources"]))
"""


@cache
def transformed_resources() -> dict[str, Any]:
    """The resources that CloudFormation is given, by logical id. Takes two seconds.

    SAM_RESOURCES names a file in which a process that started this one has put them already.
    """
    if told := os.environ.get("SAM_RESOURCES"):
        given: dict[str, Any] = json.loads(Path(told).read_text())
        return given
    assert _PYTHON.is_file(), "SAM is not installed: `make .tools/sam/bin/sam`"
    done = subprocess.run(
        [_PYTHON, "-c", _TRANSFORM, ROOT / "template.yaml"],
        env={"AWS_DEFAULT_REGION": "us-east-1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    resources: dict[str, Any] = json.loads(done.stdout)
    return resources
