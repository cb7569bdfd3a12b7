"""The rules of axe-core for accessible pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import node
from .browser import Browser

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CHECK = """
const [rules, done] = arguments;
axe.run(document, {runOnly: {type: "tag", values: rules}, resultTypes: ["violations"]}).then(
    ({violations}) => done(violations.map(({id, nodes}) => [id, nodes[0].html, nodes[0].failureSummary])),
    (error) => done([["axe", String(error), ""]]),
);
"""


def script(root: Path) -> str:
    """The script of axe-core, which a page has to run before `problems`. `root` is the folder of the repository."""
    folder = node.installed(root / "tests/e2e/axe", [], root / ".tools" / "axe")
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


def problems(page: Browser) -> list[Any]:
    """What axe-core finds in the page as it is."""
    return list(page.run_async(CHECK, TAGS))
