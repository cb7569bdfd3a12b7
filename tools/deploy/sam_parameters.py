"""Read parameter overrides as `sam deploy` does: JSON on stdin, in any form that samconfig.toml can have, and names and
values as JSON on stdout.

Run by the Python of SAM's own environment: `.tools/sam/bin/python tools/deploy/sam_parameters.py`.
"""

import json
import sys

import click
from samcli.cli.types import CfnParameterOverridesType

if __name__ == "__main__":
    try:
        values = CfnParameterOverridesType().convert(json.load(sys.stdin), None, None)
    except click.BadParameter as error:
        sys.exit(error.message)
    json.dump(values, sys.stdout)
