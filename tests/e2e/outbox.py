"""Mail of a local cloud, read from its outbox."""

from __future__ import annotations

import re
import time
from typing import Any

from .cloud import LocalCloud

ARRIVES_WITHIN_SECONDS = 60

_LINK = re.compile(r"^https?://\S+$", re.MULTILINE)


def mail_to(cloud: LocalCloud, address: str, *, count: int = 1) -> list[dict[str, Any]]:
    """Wait for at least `count` messages to `address`, and return them, oldest first. Mail arrives after the reply."""
    deadline = time.monotonic() + ARRIVES_WITHIN_SECONDS
    while True:
        found = [message for message in cloud.mail() if message["to"] == address]
        if len(found) >= count:
            return found[::-1]
        assert time.monotonic() < deadline, f"{len(found)} of {count} messages to {address} came"
        time.sleep(0.1)


def link_to(cloud: LocalCloud, address: str, part: str) -> str:
    """Wait for a message to `address` whose link contains `part`, and return the link."""
    deadline = time.monotonic() + ARRIVES_WITHIN_SECONDS
    while True:
        links = [link_in(one) for one in cloud.mail() if one["to"] == address]
        if found := next((link for link in links if part in link), None):
            return found
        assert time.monotonic() < deadline, f"no link with {part} to {address} in {links}"
        time.sleep(0.1)


def link_in(message: dict[str, Any]) -> str:
    """The only link of a message."""
    (link,) = _LINK.findall(message["text"])
    return str(link)
