"""The frame of the pages of `/_local`, in the style of Larder's own.

`Markup` escapes every value that is not `Markup`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from markupsafe import Markup

_HTML = Path(__file__).resolve().parents[1] / "layers/larder/src/larder/web/html"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<meta name="color-scheme" content="light dark">
{refresh}<style>
{kit}{style}
</style>
</head>
<body>
<main>
{content}
</main>
</body>
</html>
"""
_REFRESH = Markup('<meta http-equiv="refresh" content="5">\n')


def document(title: str, content: Markup, *, style: Markup, refreshed: bool = False) -> Markup:
    """A page with a style of its own. `refreshed` loads it again every five seconds."""
    refresh = _REFRESH if refreshed else Markup("")
    return fill(_PAGE, title=title, content=content, kit=_kit(), style=style, refresh=refresh)


def fill(template: str, **values: str) -> Markup:
    """A template of the code, with values."""
    return Markup(template).format(**values)  # noqa: S704 - the caller's own text


@cache
def _kit() -> Markup:
    styles = (_HTML / name for name in ("kit.css", "card.css"))
    return Markup("".join(style.read_text(encoding="utf-8") for style in styles))  # noqa: S704 - our own style
