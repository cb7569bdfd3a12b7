"""The seeded bugs apply to the code as it is now, so that `make seeded` tests what it says."""

from pathlib import Path

import pytest

from tests.seeded.patches import Seeded, seeded_bugs

TREE = Path(__file__).parents[2]


@pytest.mark.parametrize("bug", seeded_bugs(), ids=lambda bug: bug.name)
def test_a_seeded_bug_applies_and_names_its_tests(bug: Seeded) -> None:
    assert bug.apply(TREE, "--check") == "", f"{bug.path.name} no longer applies: make it again for the changed code"
    assert [path for path in bug.paths if not (TREE / path).exists()] == []
    assert bug.breaks.endswith(".")
