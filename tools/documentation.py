"""Render docs/ for the endpoint /docs: `python -m tools.documentation ARCHIVE`, run by the layer's Makefile.

The archive also has what CI needs: the folder clients/ci as `ci.tar`, and `larder.pyz`. For assistants, it has the
skill `SKILL.md`, and the list of pages `llms.txt` (llmstxt.org). It is not compressed, and the same files always give
the same archive.

From the sources, the local cloud and the tests call `renew`, so that they never show an older text.
"""

import io
import os
import posixpath
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path, PurePosixPath
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from markdown_it import MarkdownIt
from markdown_it.token import Token

from larder import project
from tools.release.sidecar import DATE, SIDECAR, SOURCE, pack_sidecar

ROOT = Path(__file__).resolve().parent.parent
DOCS, SCRIPTS = ROOT / "docs", ROOT / "clients" / "ci"
SKILL = ROOT / "clients" / "skill" / "SKILL.md"
ARCHIVE = ROOT / "functions" / "pages" / "docs.zip"
CI = "ci.tar"
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


def renew() -> None:
    """Write the archive from which the sources serve /docs, unless it is newer than everything in it."""
    sources = [
        Path(__file__),
        SKILL,
        *(path for folder in (DOCS, SCRIPTS, SOURCE) for path in folder.rglob("*")),
    ]
    sources.append(ROOT / "layers" / "larder" / "src" / "larder" / "project.py")
    if not ARCHIVE.exists() or ARCHIVE.stat().st_mtime <= max(
        one.stat().st_mtime for one in sources
    ):
        write(ARCHIVE)


def write(archive: Path) -> None:
    """Write the archive in one step: several processes may do so."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder) / archive.name
        with ZipFile(made, "w", ZIP_STORED) as zipped:
            for name, content in sorted(_entries(Path(folder))):
                zipped.writestr(ZipInfo(name, DATE), content)
        made.replace(archive)


def _entries(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in DOCS.rglob("*.md"):
        name = path.relative_to(DOCS).as_posix()
        yield (
            f"{_page_name(name) or 'index'}.html",
            rendered(name, path.read_text(encoding="utf-8")).encode(),
        )
    yield CI, _tar(SCRIPTS)
    yield SKILL.name, SKILL.read_bytes()
    yield "llms.txt", page_list((DOCS / "README.md").read_text(encoding="utf-8")).encode()
    pack_sidecar(folder / SIDECAR)
    yield SIDECAR, (folder / SIDECAR).read_bytes()


def rendered(name: str, text: str) -> str:
    """A page of docs/ as HTML. The first line is its title as text."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(_COMMENT.sub("", text).replace(project.PLACEHOLDER, project.slug()))
    anchors: dict[str, int] = {}
    title = ""
    for token, content in pairwise(tokens):
        if token.type == "heading_open":
            heading = _text(content)
            title = title or heading
            token.attrSet("id", _unused(anchor_of(heading), anchors))
    for token in tokens:
        # A class, because the content security policy refuses styles of elements.
        if style := token.attrs.pop("style", ""):
            token.attrSet("class", str(style).removeprefix("text-align:"))
        if token.children:
            token.children = list(_served(token.children, PurePosixPath("docs", name).parent))
    return f"{title}\n{parser.renderer.render(tokens, parser.options, {})}"


_ROW = re.compile(r"\| (?P<pages>.+?) \| (?P<contents>.+) \|")
_LINK = re.compile(r"\[(?P<name>[^]]+)\]\((?P<link>[^)]+)\)")


def page_list(index: str) -> str:
    """The pages of an index in the format of llms.txt: a heading for each of its sections, and a line for each link."""
    lines = [
        f"# {project.NAME}",
        f"\n> {project.NAME} is a remote build cache in your own AWS account, for Turborepo and other build tools.",
        "\nThe skill at /docs/SKILL.md sets a repository up, and explains misses.\n",
    ]
    for line in index.splitlines():
        if line.startswith("## "):
            lines.append(f"\n{line}\n")
        row = _ROW.fullmatch(line)
        contents = _LINK.sub(r"\g<name>", row["contents"]) if row else ""
        for found in _LINK.finditer(line):
            to = address(found["link"], PurePosixPath("docs"))
            more = f": {contents}" if row and found["name"] in row["pages"] else ""
            if to is not None:
                lines.append(f"- [{found['name'].removesuffix('.md')}]({to}){more}")
    return "\n".join(lines) + "\n"


def anchor_of(heading: str) -> str:
    """The anchor of a heading in GitHub's form."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _unused(anchor: str, anchors: dict[str, int]) -> str:
    """GitHub numbers the anchors of equal headings."""
    seen = anchors[anchor] = anchors.get(anchor, -1) + 1
    return f"{anchor}-{seen}" if seen else anchor


def _text(inline: Token) -> str:
    return "".join(one.content for one in inline.children or ())


def _served(tokens: list[Token], folder: PurePosixPath) -> Iterator[Token]:
    """The tokens with links as the deployment serves them. A link that leads nowhere there is its text."""
    is_link: list[bool] = []
    for token in tokens:
        if token.type == "image":
            yield Token("html_inline", "", 0, content=f"<em>{escape(token.content)}</em>")
            continue
        if token.type == "link_open":
            target = address(str(token.attrGet("href")), folder)
            is_link.append(target is not None)
            token.attrSet("href", target or "")
        if token.type == "text" and is_link:
            # The name of a page, which is no file there.
            token.content = token.content.removesuffix(".md")
        if token.type not in ("link_open", "link_close") or is_link[-1]:
            yield token
        if token.type == "link_close":
            is_link.pop()


def address(link: str, folder: PurePosixPath) -> str | None:
    """Where a link in a page of this folder of the repository leads. None if it leads nowhere."""
    path, mark, anchor = link.partition("#")
    if not path or "://" in path:
        return link
    target = posixpath.normpath(folder / path)
    if target.startswith("clients/ci"):
        return f"/docs/{CI}"
    if target == "clients/skill/SKILL.md":
        return "/docs/SKILL.md"
    if target == "docs/openapi.json":
        return "/openapi.json"
    if target.startswith("docs/") and target.endswith(".md"):
        page = posixpath.join("/docs", _page_name(target.removeprefix("docs/"))).rstrip("/")
        return f"{page}{mark}{anchor}"
    return (
        f"{project.REPOSITORY}/blob/v{project.VERSION}/{target}{mark}{anchor}"
        if project.REPOSITORY
        else None
    )


def _page_name(path: str) -> str:
    """What follows `/docs/` in the address of a page. README.md is the page of its folder."""
    return path.removesuffix(".md").removesuffix("README").rstrip("/")


def _tar(folder: Path) -> bytes:
    """The files of a folder: no owner, no dates."""
    output = io.BytesIO()
    with tarfile.open(mode="w", fileobj=output, format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mode = (
                path.stat().st_size,
                0o755 if os.access(path, os.X_OK) else 0o644,
            )
            with path.open("rb") as content:
                archive.addfile(entry, content)
    return output.getvalue()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
