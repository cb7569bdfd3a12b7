"""What a release changes in a stack of the release before, in the words of `larder plan`.

tests/upgrades/types/<version>.json has the resources of a release by type (record_types.py).
"""

import json
from pathlib import Path
from typing import Any

from larder_cli.deploy.changes import ResourceChange, in_words
from larder_cli.deploy.release import version_key


def types_of(template: dict[str, Any]) -> dict[str, list[str]]:
    """The logical ids of the resources of a plain template, by type. Names of layers change with their content."""
    found: dict[str, list[str]] = {}
    for logical_id, one in template["Resources"].items():
        if one["Type"] != "AWS::Lambda::LayerVersion":
            found.setdefault(one["Type"], []).append(logical_id)
    return {kind: sorted(ids) for kind, ids in sorted(found.items())}


def changes_since(root: Path, template: dict[str, Any], version: str) -> str:
    """Lines about added and removed resources since the newest recorded release before `version`."""
    recorded = {path.stem: path for path in (root / "tests" / "upgrades" / "types").glob("*.json")}
    earlier = [one for one in recorded if version_key(one) < version_key(version)]
    if not earlier:
        return "The first release.\n"
    before = max(earlier, key=version_key)
    old, new = (
        {one: kind for kind, ids in types.items() for one in ids}
        for types in (json.loads(recorded[before].read_text()), types_of(template))
    )
    changes = [ResourceChange("Add", one, new[one]) for one in sorted(new.keys() - old.keys())]
    changes += [ResourceChange("Remove", one, old[one]) for one in sorted(old.keys() - new.keys())]
    return "\n".join([f"Since {before}:", *(f"  {line}" for line in in_words(changes))]) + "\n"
