"""What docs/changelog.md says about a release: the steps of an upgrade, and the notes to publish."""

import re

_HEADING = re.compile(
    r"^### Upgrade from (?P<version>[0-9.]+)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL
)
_STEP = re.compile(r"^- (?P<text>.*(?:\n  .*)*)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class NoUpgradeNotes(Exception):
    """The section of a version does not say how to upgrade."""


def upgrade_steps(changelog: str) -> dict[str, list[str]]:
    """The steps of each upgrade as plain text, by the version to come from."""
    return {
        found["version"]: [_plain(step["text"]) for step in _STEP.finditer(found["text"])]
        for found in _HEADING.finditer(changelog)
    }


def notes(changelog: str, version: str) -> str:
    """The section of a version, which has to begin with *Upgrade*. Raises NoUpgradeNotes."""
    section = re.search(
        rf"^## {re.escape(version)}\b.*?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    text = section.group(1).strip() if section else ""
    if not text.startswith("### Upgrade"):
        raise NoUpgradeNotes(
            f"docs/changelog.md: the section {version} does not begin with `### Upgrade`"
        )
    return text + "\n"


def _plain(markdown: str) -> str:
    """The text of a list item without marks of Markdown."""
    return " ".join(_LINK.sub(r"\1", markdown).replace("**", "").replace("`", "").split())
