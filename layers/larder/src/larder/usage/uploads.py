"""Counts of uploads and of what is stored. Separate, so that cache requests do not import the rest of `usage`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploads:
    """The number of uploads, including those that replaced an artifact, and their bytes."""

    count: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What an owner stored at one moment. `scoped_bytes` is the part of `size_bytes` that is in own scopes."""

    size_bytes: int
    artifacts: int
    scoped_bytes: int = 0
