"""What SAM makes of the template, by SAM's own transform in its own environment (`.tools/sam`)."""

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_PYTHON = ROOT / ".tools" / "sam" / "bin" / "python"


@cache
def transformed_resources() -> dict[str, Any]:
    """The resources that CloudFormation is given, by logical id. Takes two seconds.

    SAM_RESOURCES names a file in which a process that started this one has put them already.
    """
    if told := os.environ.get("SAM_RESOURCES"):
        given: dict[str, Any] = json.loads(Path(told).read_text())
        return given
    assert _PYTHON.is_file(), "SAM is not installed: `make test-build` installs it"
    done = subprocess.run(
        [_PYTHON, ROOT / "tools" / "transform_template.py"],
        env={"AWS_DEFAULT_REGION": "us-east-1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    transformed: dict[str, Any] = json.loads(done.stdout)["Resources"]
    return transformed
