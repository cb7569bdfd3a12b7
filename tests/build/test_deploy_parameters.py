"""`make deploy` gives SAM every parameter, in a file that SAM reads back unchanged."""

from pathlib import Path

import click
import pytest

from tools.deploy.command import SAM
from tools.deploy.parameters import read_overrides, write_for_sam

pytestmark = pytest.mark.build

TEXTS = {
    "Empty": "",
    "Spaces": "two  words",
    "Json": '{"a":["b c"]}',
    "Apostrophe": "it's",
    "Quotes": 'say "this"',
    "Quoted": '"all of it"',
    "Comma": "a,b=c",
    "Backslash": "^[a-z\\d]+\\.example$",
    "Letters": "Gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n",
    "Emoji": "\N{CHEESE WEDGE}",
}


def test_sam_reads_every_text_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "parameters.yaml"
    write_for_sam(TEXTS, path)
    assert read_overrides(f"file://{path}", sam_python=SAM / "python") == TEXTS
    # SAM takes an escaped one for two characters.
    assert "\N{CHEESE WEDGE}" in path.read_text(encoding="utf-8")


def test_every_form_of_samconfig_is_read(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("Level: DEBUG\n")
    overrides = ['A=1 B="two words"', {"C": True, "D": ["x", "y"]}, f"file://{tmp_path}/more.yaml"]
    assert read_overrides(overrides, sam_python=SAM / "python") == {
        "A": "1",
        "B": "two words",
        "C": "True",
        "D": "x,y",
        "Level": "DEBUG",
    }


def test_text_that_is_no_override_is_refused() -> None:
    with pytest.raises(click.ClickException, match="parameter_overrides: Tracing is not"):
        read_overrides("Tracing", sam_python=SAM / "python")
