"""Versions of other build tools. docs/compatibility.md has the results."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx
import pytest

from .build_tools import settings
from .cloud import LocalCloud
from .compatibility import Document, ToolRow
from .workspaces import MOON, NX, Make, bazel, ccache, gradle, moon, needs, nx, sccache

pytestmark = [pytest.mark.e2e, pytest.mark.thorough, needs("gcc")]

NX_VERSIONS = (NX, "23.3.2", "22.7.12", "21.6.11", "20.8.4")


def nx_of(version: str) -> Make:
    return lambda root, tools: nx(root, tools, version=version)


MAKES: dict[str, Make] = {
    **{f"Nx {version}": nx_of(version) for version in NX_VERSIONS},
    "Gradle 4.4.1": gradle,
    "sccache 0.16.0": sccache,
    "ccache 4.14.2": ccache,
    f"moon {MOON}": moon,
    "Bazel 4.2.3": bazel,
}
PROGRAMS = {"Gradle": "gradle", "Bazel": "bazel"}
"""Those that the system has, in one version."""

ORDER = [(name, "") for name in MAKES]


def runs_version(name: str) -> bool:
    tool, version = name.split()
    done = subprocess.run([PROGRAMS[tool], "--version"], capture_output=True, text=True, timeout=60)
    # Debian's Bazel is 4.2.3, and does not know it.
    return version in done.stdout or "no_version" in done.stdout


def sizes_of(files: list[Path]) -> str:
    sizes = sorted({_text(file.stat().st_size) for file in files}, key=_bytes)
    return sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def _text(size: int) -> str:
    for unit, text in ((1_000_000, "MB"), (1_000, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {text}"
    return f"{size} B"


def _bytes(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"B": 1, "kB": 1_000, "MB": 1_000_000}[unit]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[needs(PROGRAMS[tool])] if tool in PROGRAMS else [])
        for name in MAKES
        for tool in [name.split()[0]]
    ],
)
def test_the_tool_matches_the_compatibility_table(
    name: str, local_cloud: LocalCloud, larder: Path, tools: Path, tmp_path: Path, document: Document
) -> None:
    tool = name.split(maxsplit=1)[0]
    if tool in PROGRAMS and not runs_version(name):
        pytest.skip(f"another version of {tool} is installed")

    def saved_ms() -> int:
        headers = {"Authorization": f"Bearer {local_cloud.token}"}
        url = f"{local_cloud.url}/v1/usage?slug={local_cloud.team}"
        used = httpx.get(url, headers=headers, trust_env=False).json()["tools"]
        return sum(int(one["timeSavedMs"]) for one in used if one["tool"] == tool.lower())

    workspace, env = MAKES[name](tmp_path / "workspace", tools), settings(local_cloud, tmp_path)
    workspace.build(larder, env)
    built, before = workspace.digests(), saved_ms()
    counts, _ = workspace.build(larder, env)
    row = ToolRow(
        tool=name,
        outputs=sizes_of(workspace.outputs()),
        second_build=f"{counts.hits} of {counts.hits + counts.misses}",
        restored_outputs="byte-identical" if workspace.digests() == built else "different",
        time_saved="yes" if saved_ms() > before else "no",
    )
    assert row == document.kept(row, order=ORDER)
