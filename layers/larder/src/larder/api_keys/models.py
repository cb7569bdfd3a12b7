"""What an API key is, and what it is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

Permissions = Mapping[str, tuple[str, ...]]
"""Resource to allowed actions, for instance `{"artifacts": ("read", "write")}` (spec 2, Permissions)."""

ARTIFACT_ACTIONS = ("read", "write")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key without its secret. `key_hash` is all that the table keeps of the key itself."""

    id: str
    key_hash: str
    user_id: str
    team_id: str | None
    name: str | None
    start: str
    prefix: str | None
    enabled: bool
    permissions: Permissions
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    last_request: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """What a new key is to be. Bound to `team_id` it acts for that team only, else for its user and all their teams."""

    user_id: str
    team_id: str | None = None
    name: str | None = None
    prefix: str | None = None
    expires_in_s: int | None = None
    permissions: Permissions = field(default_factory=lambda: {"artifacts": ARTIFACT_ACTIONS})
