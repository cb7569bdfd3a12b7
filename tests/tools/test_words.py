"""`make check` finds every word and phrase of tools/words.txt, and leaves code alone."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = [line.split("->")[0] for line in (ROOT / "tools" / "words.txt").read_text().splitlines()]


def found_in(text: str, folder: Path) -> list[str]:
    """codespell's findings in the text, with the settings of pyproject.toml."""
    page = folder / "page"
    page.write_text(text)
    command = [sys.executable, "-m", "codespell_lib", str(page)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return re.findall(r"^.*:\d+: (.+) ==>", run.stdout, re.MULTILINE)


def test_every_entry_is_found(tmp_path: Path) -> None:
    sentences = "\n".join(f"So {entry} it." for entry in ENTRIES)
    assert found_in(sentences, tmp_path) == ENTRIES


def test_code_and_marked_text_are_skipped(tmp_path: Path) -> None:
    marked = "<!-- codespell:ignore-begin -->\ntold\n<!-- codespell:ignore-end -->\n"
    assert found_in(f"`told`\n\n```\ntells\n```\n\n{marked}", tmp_path) == []
