"""Print as JSON which resource types of a template each region lacks, as cfn-lint knows them.

Run by the Python of SAM's own environment: `.tools/sam/bin/python tools/release/region_types.py TEMPLATE`.
"""

import json
import sys
from pathlib import Path

from cfnlint.helpers import REGIONS
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

if __name__ == "__main__":
    template = json.loads(Path(sys.argv[1]).read_text())
    types = {resource["Type"] for resource in template["Resources"].values()}
    known = {region: PROVIDER_SCHEMA_MANAGER.get_resource_types(region) for region in REGIONS}
    json.dump({region: sorted(types.difference(known[region])) for region in REGIONS}, sys.stdout)
