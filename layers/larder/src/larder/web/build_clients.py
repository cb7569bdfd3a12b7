"""Limitations of certain versions of turbo."""

import re
from enum import Enum

_TURBO = re.compile(r"turbo (\d{1,4})\.(\d{1,4})\.(\d{1,4})")

_SENDS_LENGTH = (2, 2, 3)
"""Older versions upload without Content-Length. S3 and the edge refuse that (docs/clients/turbo.md#uploads)."""

_KEEPS_LOCATION = (2, 10, 13)
"""Older versions append `&teamId=...&slug=...` to the Location of a preflight, which breaks the signature of a
presigned URL. The edge ignores it. Their preflight names no team (docs/clients/turbo.md#preflight)."""


class DirectUploads(Enum):
    """The uploads of a client that can bypass the functions."""

    NONE = "none"
    BY_EDGE = "to the edge, with a key that is bound to a team"
    ALL = "all"


def direct_uploads(user_agent: str) -> DirectUploads:
    """What the client can do. All clients other than `turbo` can do all."""
    match = _TURBO.match(user_agent)
    if match is None:
        return DirectUploads.ALL
    version = tuple(int(part) for part in match.groups())
    if version < _SENDS_LENGTH:
        return DirectUploads.NONE
    return DirectUploads.ALL if version >= _KEEPS_LOCATION else DirectUploads.BY_EDGE
