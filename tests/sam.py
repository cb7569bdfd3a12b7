"""The template after SAM's transform, which runs in its own environment (`.tools/sam`)."""

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
    """The resources that CloudFormation gets, by logical id. Takes two seconds.

    SAM_RESOURCES can name a file that already contains them, from a parent process.
    """
    if path := os.environ.get("SAM_RESOURCES"):
        resources: dict[str, Any] = json.loads(Path(path).read_text())
        return resources
    assert _PYTHON.is_file(), "SAM is not installed: `make test-build` installs it"
    done = subprocess.run(
        [_PYTHON, ROOT / "tools" / "release" / "plain_template.py"],
        env={"AWS_DEFAULT_REGION": "us-east-1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    transformed: dict[str, Any] = json.loads(done.stdout)["Resources"]
    return transformed
