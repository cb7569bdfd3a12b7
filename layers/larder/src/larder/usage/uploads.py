"""What was uploaded. A module of its own: requests for artifacts start with it and with nothing else of usage."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploads:
    """Artifacts that were stored, those that replaced others included, and their bytes."""

    count: int = 0
    size_bytes: int = 0
