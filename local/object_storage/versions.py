"""Names of versions. The version `<id>` of an object is stored under the name `<key>@<id>`.

Ids decrease with time, so that the names of one key sort as S3 lists its versions: the newest first, and last the one
from before the bucket had versions, whose id is `null`.
"""

from __future__ import annotations

import re
import time
import uuid
from dataclasses import dataclass

from nanio.errors import S3Error

NULL_VERSION = "null"

_DELETE_MARKER = ".deleted"
_STORED_NAME = re.compile(rf"(.+)@([0-9a-f]{{32}}|{NULL_VERSION})({re.escape(_DELETE_MARKER)})?")


class NoSuchVersion(S3Error):  # type: ignore[misc]  # nanio has no types
    code = "NoSuchVersion"
    message = "The specified version does not exist."
    http_status = 404


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a key, or a delete marker."""

    key: str
    id: str
    is_delete_marker: bool = False

    @property
    def stored_name(self) -> str:
        return f"{self.key}@{self.id}{_DELETE_MARKER if self.is_delete_marker else ''}"


def new_version(key: str, *, is_delete_marker: bool = False) -> Version:
    age = 2**63 - time.time_ns()
    return Version(key, f"{age:016x}{uuid.uuid4().hex[:16]}", is_delete_marker)


def parse_stored_name(name: str) -> Version | None:
    match = _STORED_NAME.fullmatch(name)
    return Version(match[1], match[2], match[3] is not None) if match else None
