"""The bill of materials of a release, in CycloneDX: the packages of both layers and the console's libraries."""

import json
import subprocess
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_LAYERS = (
    ("--package", "larder", "--no-dev", "--prune", "boto3"),
    ("--only-group", "jwt"),
)


def bill_of_materials(root: Path, version: str, *, seed: str) -> dict[str, Any]:
    """The same for the same commit: the serial number follows from `seed`, and the time is the commit's."""
    components: dict[str, dict[str, Any]] = {}
    for arguments in _LAYERS:
        for component in _exported(root, arguments)["components"]:
            if component["name"] != "larder":
                components[component["bom-ref"]] = component
    libraries = json.loads((root / "tools" / "console" / "package.json").read_text())
    for name, pinned in libraries["dependencies"].items():
        purl = f"pkg:npm/{name}@{pinned}"
        components[purl] = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": pinned,
            "purl": purl,
        }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, seed)}",
        "metadata": {
            "timestamp": _committed(root).isoformat().replace("+00:00", "Z"),
            "component": {"type": "application", "name": "larder", "version": version},
        },
        "components": [components[ref] for ref in sorted(components)],
    }


def _exported(root: Path, arguments: tuple[str, ...]) -> dict[str, Any]:
    command = [str(root / ".tools" / "uv" / "bin" / "uv"), "export", "--quiet", "--frozen"]
    done = subprocess.run(
        [*command, "--preview-features", "sbom-export", "--format", "cyclonedx1.5", *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def _committed(root: Path) -> datetime:
    """When the last commit was made."""
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return datetime.fromtimestamp(int(done.stdout), tz=UTC)
