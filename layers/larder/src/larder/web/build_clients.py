"""Limitations of certain versions of turbo."""

import re

_TURBO = re.compile(r"turbo (\d{1,4})\.(\d{1,4})\.(\d{1,4})")

_BREAKS_PRESIGNED_URLS = (2, 10, 12)
"""This version and older ones append `&teamId=...&slug=...` to the Location of a preflight, which breaks its signature
(docs/clients/turbo.md#preflight)."""


def keeps_presigned_urls(user_agent: str) -> bool:
    """Whether the client uses a Location unchanged. True for all clients other than `turbo`."""
    match = _TURBO.match(user_agent)
    if match is None:
        return True
    return tuple(int(part) for part in match.groups()) > _BREAKS_PRESIGNED_URLS
