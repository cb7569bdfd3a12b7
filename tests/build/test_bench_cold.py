"""Built functions, cold and warm: under AWS's runtime client, on local tables, with the template's memory and its event
from events/. `make bench-cold` measures. These tests run it once and do not check the times.
"""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.build.conftest import ROOT
from tests.build.test_functions import source_template
from tools.benchmarks.cold.bench import BARE, NOTHING

pytestmark = [pytest.mark.build, pytest.mark.thorough]

COMMAND = [sys.executable, "-m", "tools.benchmarks.cold", "--rounds", "1", "--warm-calls", "2"]
MODULES = {
    one["Properties"]["Handler"].split(".")[-2]: one["Properties"]
    for one in source_template().values()
    if one["Type"] == "AWS::Serverless::Function"
}
CACHE_MODULES = [module for module, one in MODULES.items() if one["Handler"].startswith("artifacts.")]
MEMORY_MB = 512
"""The memory that Globals set."""


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    done = subprocess.run([*COMMAND, "--json"], cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return {row["function"]: row for row in json.loads(done.stdout)["rows"]}


def test_the_table_has_each_function_and_the_baselines(rows: dict[str, Any]) -> None:
    assert rows.keys() == {*MODULES, BARE, NOTHING}


@pytest.mark.parametrize("module", MODULES)
def test_a_function_replies_cold_and_warm_within_its_memory(module: str, rows: dict[str, Any]) -> None:
    row = rows[module]
    assert not row["failed"]
    assert sum(row["replies"].values()) == 3
    assert row["memory_mb"] == MODULES[module].get("MemorySize", MEMORY_MB)
    assert 10 < row["peak_mb"] < row["memory_mb"]


@pytest.mark.parametrize("module", MODULES)
def test_a_function_accepts_the_credentials_of_repeated_samples(module: str, rows: dict[str, Any]) -> None:
    replies = rows[module]["replies"].keys()
    # Some refuse their sample, such as deleting the only owner of a team.
    assert all(reply == "done" or reply[0] in "234" for reply in replies)
    sample = (ROOT / "events" / f"{module}.json").read_text()
    assert "401" not in replies or "Bearer" not in sample


@pytest.mark.parametrize("module", CACHE_MODULES)
def test_the_sample_of_a_cache_function_succeeds(module: str, rows: dict[str, Any]) -> None:
    (reply,) = rows[module]["replies"]
    assert reply in ("200", "202", "204", "done")


@pytest.mark.parametrize("module", [*MODULES, BARE, NOTHING])
def test_every_figure_was_measured(module: str, rows: dict[str, Any]) -> None:
    row = rows[module]
    for name in ("init_ms", "init_cpu_ms", "first_ms", "warm_p50_ms", "warm_p99_ms"):
        assert row[name] > 0, name
    assert row["init_cpu_ms"] < row["init_ms"] * 1.5
    assert all(ratio > 0 for ratio in row["ratios"].values())


def test_an_unknown_function_is_an_error() -> None:
    done = subprocess.run([*COMMAND, "put_artefact"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "larder: no function is named put_artefact\n")
