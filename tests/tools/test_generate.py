"""`make generate` writes what follows from the code, and `make check` fails if it is stale."""

from pathlib import Path

import pytest

from tools.generate.__main__ import ROOT, main, marked_files, renew


def test_no_generated_part_is_stale() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize("page", marked_files(ROOT), ids=lambda page: str(page.name))
def test_a_manual_change_of_a_generated_part_is_an_error(
    page: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before, marker, after = page.read_text().partition(" >>>")
    copy = tmp_path / page.name
    copy.write_text(f"{before}{marker}{after.replace(chr(10), f'{chr(10)}by hand{chr(10)}', 1)}")
    assert renew(copy, check=True) != 0
    assert "run `make generate`" in "".join(capfd.readouterr())
    assert "by hand" in copy.read_text()
    assert renew(copy, check=False) == 0
    assert copy.read_text() == page.read_text()
