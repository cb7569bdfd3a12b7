"""The pages as HTML. `Markup` escapes every value that is not `Markup`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

_HTML = Path(__file__).resolve().parents[2] / "layers/larder/src/larder/web/html"
_URL = re.compile(r"""(https?://[^\s<>"']+)""")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<meta name="color-scheme" content="light dark">
{refresh}<style>
{kit}
main {{ max-width: 60rem }}
table {{ width: 100%; border-collapse: collapse }}
th, td {{ padding: .5rem .75rem .5rem 0; text-align: left; border-bottom: 1px solid var(--line) }}
time {{ white-space: nowrap }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere }}
iframe {{ width: 100%; height: 70vh; background: #fff; border: 1px solid var(--line) }}
dt {{ font-weight: 600 }}
</style>
</head>
<body>
<main>
{content}
</main>
</body>
</html>
"""
_LIST = """<h1>Outbox</h1>
<table>
<thead><tr><th>Sent</th><th>To</th><th>Subject</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
{older}
"""
_ROW = """<tr><td><time datetime="{sent_at}" title="{sent_at}">{ago}</time></td><td>{to}</td>\
<td><a href="/_local/outbox/{id}">{subject}</a></td></tr>"""
_OLDER = """<p><a href="/_local/outbox?before={before}">Older</a></p>"""
_EMPTY = "<h1>Outbox</h1>\n<p>Nothing has been sent yet.</p>"
_MESSAGE = """<p><a href="/_local/outbox">Outbox</a></p>
<h1>{subject}</h1>
<dl><dt>To</dt><dd>{to}</dd><dt>Sent</dt><dd><time datetime="{sent_at}">{sent_at}</time></dd></dl>
<h2>Text</h2>
<pre>{text}</pre>
<h2>HTML</h2>
<iframe title="HTML" sandbox="allow-popups allow-popups-to-escape-sandbox" src="/_local/outbox/{id}.html"></iframe>
"""
_REFRESH = Markup('<meta http-equiv="refresh" content="5">\n')
_LINK = """<a href="{url}" rel="noreferrer">{url}</a>"""


def outbox_page(page: Mapping[str, Any]) -> Markup:
    """The list, newest first."""
    if not page["messages"] and page["next_before"] is None:
        return _document("Outbox", _fill(_EMPTY), refreshed=True)
    now = datetime.now(UTC)
    rows = Markup("\n").join(
        _fill(_ROW, ago=_ago(one["sent_at"], now), **_headers(one)) for one in page["messages"]
    )
    before = page["next_before"]
    older = Markup("") if before is None else _fill(_OLDER, before=before)
    return _document("Outbox", _fill(_LIST, rows=rows, older=older), refreshed=True)


def message_page(message: Mapping[str, Any]) -> Markup:
    """One message: its text with clickable links, and its HTML in a frame without scripts or forms."""
    parts = _URL.split(message["text"])
    text = Markup().join(_fill(_LINK, url=part) if n % 2 else part for n, part in enumerate(parts))
    return _document(message["subject"], _fill(_MESSAGE, text=text, **_headers(message)))


def body_page(message: Mapping[str, Any]) -> str:
    """The message's own HTML for the frame. Its links open in a new window."""
    return str(message["html"]).replace("<head>", '<head>\n<base target="_blank">', 1)


def _headers(message: Mapping[str, Any]) -> dict[str, str]:
    return {name: message[name] for name in ("id", "to", "subject", "sent_at")}


def _ago(sent_at: str, now: datetime) -> str:
    """How long ago this was, such as "3 minutes ago"."""
    seconds = max(0, int((now - datetime.fromisoformat(sent_at)).total_seconds()))
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if count := seconds // length:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def _document(title: str, content: Markup, *, refreshed: bool = False) -> Markup:
    """A page in the style of Larder's own. `refreshed` loads it again every five seconds."""
    refresh = _REFRESH if refreshed else Markup("")
    return _fill(_PAGE, title=title, content=content, kit=_kit(), refresh=refresh)


@cache
def _kit() -> Markup:
    styles = (_HTML / name for name in ("kit.css", "card.css"))
    return Markup("".join(one.read_text(encoding="utf-8") for one in styles))  # noqa: S704 - our own style


def _fill(template: str, **values: str) -> Markup:
    return Markup(template).format(**values)  # noqa: S704 - a template of this module
