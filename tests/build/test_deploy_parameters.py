"""`make deploy` reads samconfig.toml as SAM does."""

from pathlib import Path

import click
import pytest

from tools.deploy.samconfig import read_overrides
from tools.release.package import SAM_PYTHON

pytestmark = pytest.mark.build


def test_every_form_of_samconfig_is_read(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("Level: DEBUG\n")
    overrides = ['A=1 B="two words"', {"C": True, "D": ["x", "y"]}, f"file://{tmp_path}/more.yaml"]
    assert read_overrides(overrides, sam_python=SAM_PYTHON) == {
        "A": "1",
        "B": "two words",
        "C": "True",
        "D": "x,y",
        "Level": "DEBUG",
    }


def test_text_that_is_no_override_is_refused() -> None:
    with pytest.raises(click.ClickException, match="parameter_overrides: Tracing is not"):
        read_overrides("Tracing", sam_python=SAM_PYTHON)
