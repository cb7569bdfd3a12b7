"""What a user is."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A person. `email` is in lower case and belongs to one user only."""

    id: str
    email: str
    name: str
    image: str | None = None
    email_verified: bool = False
    created_at: datetime
    updated_at: datetime


class EmailTaken(Exception):
    """Another user has this address."""
