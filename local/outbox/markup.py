"""The pages as HTML. `Markup` escapes every value that is not `Markup`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from local.page import document, fill

_URL = re.compile(r"""(https?://[^\s<>"']+)""")

_STYLE = Markup(
    """
main { max-width: 60rem }
table { width: 100%; border-collapse: collapse }
th, td { padding: .5rem .75rem .5rem 0; text-align: left; border-bottom: 1px solid var(--line) }
time { white-space: nowrap }
pre { white-space: pre-wrap; overflow-wrap: anywhere }
iframe { width: 100%; height: 70vh; background: #fff; border: 1px solid var(--line) }
dt { font-weight: 600 }"""
)
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
_LINK = """<a href="{url}" rel="noreferrer">{url}</a>"""


def outbox_page(page: Mapping[str, Any]) -> Markup:
    """The list, newest first."""
    if not page["messages"] and page["next_before"] is None:
        return document("Outbox", fill(_EMPTY), style=_STYLE, refreshed=True)
    now = datetime.now(UTC)
    rows = Markup("\n").join(
        fill(_ROW, ago=_ago(message["sent_at"], now), **_headers(message))
        for message in page["messages"]
    )
    before = page["next_before"]
    older = Markup("") if before is None else fill(_OLDER, before=before)
    return document("Outbox", fill(_LIST, rows=rows, older=older), style=_STYLE, refreshed=True)


def message_page(message: Mapping[str, Any]) -> Markup:
    """One message: its text with clickable links, and its HTML in a frame without scripts or forms."""
    parts = _URL.split(message["text"])
    text = Markup().join(fill(_LINK, url=part) if n % 2 else part for n, part in enumerate(parts))
    return document(
        message["subject"], fill(_MESSAGE, text=text, **_headers(message)), style=_STYLE
    )


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
