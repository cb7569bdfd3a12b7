"""The documentation of this version, and the files that CI copies.

`tools/documentation.py` renders the pages when the layer is built, so nothing here parses Markdown.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from larder import project
from larder.web.pages import (
    Handler,
    Page,
    Reply,
    assembled,
    common_values,
    logged_reply,
    page,
    page_reply,
)

_BYTES = "application/octet-stream"
_KEPT = {"Cache-Control": "public, max-age=300"}
"""As for other content that only a deployment changes."""


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no page or file at this path."""


def documentation(archive: Path, path: str) -> Page | File | Missing:
    """What is at this path."""
    files = _opened(archive)
    name = path.removeprefix("/docs").strip("/")
    if name in files and not name.endswith(".html"):
        is_text = name.endswith((".md", ".txt"))
        return File(files[name], "text/plain; charset=utf-8" if is_text else _BYTES)
    rendered = files.get(f"{name or 'index'}.html")
    return Missing() if rendered is None else _page(rendered.decode())


def documentation_handler(show: Callable[[str], Page | File | Missing]) -> Handler:
    """The function that Lambda calls. `show` gets the path."""

    def reply(event: dict[str, Any]) -> Reply:
        match show(event["rawPath"]):
            case Missing():
                return page_reply(page("not-found", "Page not found"), status=404)
            case File(content, media_type):
                headers = {"Content-Type": media_type, **_KEPT}
                body = b64encode(content).decode()
                return {
                    "statusCode": 200,
                    "headers": headers,
                    "body": body,
                    "isBase64Encoded": True,
                }
            case Page() as shown:
                answer = page_reply(shown)
                return {**answer, "headers": {**answer["headers"], **_KEPT}}

    return logged_reply(reply)


@cache
def _opened(archive: Path) -> dict[str, bytes]:
    with ZipFile(archive) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


@cache
def _page(rendered: str) -> Page:
    """A page from its title and, in the lines that follow, its content."""
    title, _, content = rendered.partition("\n")
    values = {**common_values(title), "version": f"{project.NAME} {project.VERSION}"}
    return assembled("docs.html", {"content": content}, ["kit.css", "docs.css"], [], values)
