"""Counts of uploads. A separate module, so that cache requests do not import the rest of `usage`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploads:
    """The number of uploads, including those that replaced an artifact, and their bytes."""

    count: int = 0
    size_bytes: int = 0
