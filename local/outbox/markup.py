"""The pages as HTML. `Markup` escapes every value that is not `Markup`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

_URL = re.compile(r"""(https?://[^\s<>"']+)""")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ margin: 2rem auto; max-width: 60rem; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1f2937 }}
table {{ width: 100%; border-collapse: collapse }}
th, td {{ padding: .5rem .75rem .5rem 0; text-align: left; border-bottom: 1px solid #e5e7eb; overflow-wrap: anywhere }}
pre {{ padding: 1rem; background: #f3f4f6; white-space: pre-wrap; overflow-wrap: anywhere }}
iframe {{ width: 100%; height: 40rem; border: 1px solid #e5e7eb }}
dt {{ font-weight: 600 }}
</style>
</head>
<body>
{content}
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
_ROW = """<tr><td>{sent_at}</td><td>{to}</td><td><a href="/_local/outbox/{id}">{subject}</a></td></tr>"""
_OLDER = """<p><a href="/_local/outbox?before={before}">Older</a></p>"""
_EMPTY = "<h1>Outbox</h1>\n<p>Nothing has been sent yet.</p>"
_MESSAGE = """<p><a href="/_local/outbox">Outbox</a></p>
<h1>{subject}</h1>
<dl><dt>To</dt><dd>{to}</dd><dt>Sent</dt><dd>{sent_at}</dd></dl>
<h2>Text</h2>
<pre>{text}</pre>
<h2>HTML</h2>
<iframe title="HTML" sandbox="allow-popups allow-popups-to-escape-sandbox" src="/_local/outbox/{id}.html"></iframe>
"""
_LINK = """<a href="{url}" rel="noreferrer">{url}</a>"""


def outbox_page(page: Mapping[str, Any]) -> Markup:
    """The list, newest first."""
    if not page["messages"] and page["next_before"] is None:
        return _document("Outbox", _fill(_EMPTY))
    rows = Markup("\n").join(_fill(_ROW, **_headers(one)) for one in page["messages"])
    before = page["next_before"]
    older = Markup("") if before is None else _fill(_OLDER, before=before)
    return _document("Outbox", _fill(_LIST, rows=rows, older=older))


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


def _document(title: str, content: Markup) -> Markup:
    return _fill(_PAGE, title=title, content=content)


def _fill(template: str, **values: str) -> Markup:
    return Markup(template).format(**values)  # noqa: S704 - a template of this module
