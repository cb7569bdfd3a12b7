"""The notes of a release, from CHANGELOG.md: the steps of an upgrade come first."""

import re

from larder_cli.deploy.release import CHANGES, Release

_HEADING = re.compile(
    r"^### Upgrade from (?P<version>[0-9.]+)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL
)
_STEP = re.compile(r"^- (?P<text>.*(?:\n  .*)*)", re.MULTILINE)
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)]*)\)")
_AFTER = """\

### Deploy it

```
uv tool install --force ./larder_cache-{version}-py3-none-any.whl
larder plan --env prod
larder upgrade --env prod
```

`larder install` creates a new stack. You can go back to {readable_since} and newer: they read the data of {version}.

### Resources

```
{changes}```

### Check the files

```
gh attestation verify larder-{version}.tar.gz --repo {repository}
tar -xzf larder-{version}.tar.gz && (cd larder-{version} && sha256sum --check SHA256SUMS)
```
"""


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
            f"CHANGELOG.md: the section {version} does not begin with `### Upgrade`"
        )
    return text + "\n"


def published_notes(release: Release, section: str, repository: str) -> str:
    """The notes of a GitHub release: the section of the changelog, and how to deploy and check this version.

    `repository` is its owner and name. Links of the section lead to the pages of the version.
    """
    pages = f"https://github.com/{repository}/blob/v{release.version}/"
    return _LINK.sub(
        lambda found: f"[{found['text']}]({_absolute(found['target'], pages)})", section
    ) + _AFTER.format(
        version=release.version,
        readable_since=release.readable_since,
        changes=(release.folder / CHANGES).read_text(),
        repository=repository,
    )


def _absolute(target: str, pages: str) -> str:
    return target if "://" in target else pages + target


def _plain(markdown: str) -> str:
    """The text of a list item without marks of Markdown."""
    return " ".join(_LINK.sub(r"\g<text>", markdown).replace("**", "").replace("`", "").split())
