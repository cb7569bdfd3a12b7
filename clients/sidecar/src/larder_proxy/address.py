"""The parts of an address. `urllib.parse` takes longer to load than all of the sidecar, and longer for each request."""

from __future__ import annotations

import re

_ADDRESS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//(?:([^/?#]*)@)?(\[[^]\s/?#@]+\]|[^]\[\s:/?#@]+)(?::([0-9]{0,5}))?"
    r"(/[^?#]*)?(\?[^#]*)?(?:#.*)?"
)


class Address:
    """`target` is what a request names. Raises ValueError for any other text."""

    def __init__(self, url: str) -> None:
        match = _ADDRESS.fullmatch(url)
        if match is None or int(match[4] or 0) > 65_535:
            raise ValueError("this is no address")
        scheme, self.user, host, port, path, query = match.groups("")
        self.scheme, self.host = scheme.lower(), host.strip("[]").lower()
        self.port = int(port or 0) or (443 if self.scheme == "https" else 80)
        self.name = f"{host}:{port}" if port else host
        """The host as the address names it, with its port."""
        self.origin = f"{self.scheme}://{self.name}"
        self.target = (path or "/") + query


def encoded(text: str) -> str:
    """Text for a path or a query. Bytes that are no text, which variables can have, become `?`."""
    if re.fullmatch(r"[\w.~-]*", text, re.ASCII):
        return text
    from urllib.parse import quote

    return quote(text, safe="", errors="replace")
