"""`larder run` and `larder proxy` as one file, for any Python."""

from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

SIDECAR = "larder.pyz"
DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date that a zip archive can hold."""
SOURCE = Path(__file__).resolve().parents[2] / "clients" / "sidecar" / "src" / "larder_proxy"


def pack_sidecar(file: Path) -> None:
    """Write the file. Not compressed, as the functions' archive."""
    entries = {"__main__.py": b"import larder_proxy.__main__\n"}
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix in (".py", ".mjs"):
            entries[f"{SOURCE.name}/{path.name}"] = path.read_bytes()
    with file.open("wb") as output:
        output.write(b"#!/usr/bin/env python3\n")
        with ZipFile(output, "w", ZIP_STORED) as zipped:
            for name, content in entries.items():
                zipped.writestr(ZipInfo(name, DATE), content)
    file.chmod(0o755)
