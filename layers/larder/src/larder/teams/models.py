"""Teams, members, and what an owner of artifacts may do at the moment."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What a member may do. Everybody reads the cache; VIEWER does not write it."""

    OWNER = "OWNER"
    ADMIN = "ADMIN"
    MEMBER = "MEMBER"
    DEVELOPER = "DEVELOPER"
    VIEWER = "VIEWER"

    @property
    def writes_cache(self) -> bool:
        return self is not Role.VIEWER

    @property
    def manages_artifacts(self) -> bool:
        """Lists, inspects and deletes what the team stores."""
        return self in (Role.OWNER, Role.ADMIN)

    @property
    def owns_team(self) -> bool:
        """Deletes the team, and sets its caching status."""
        return self is Role.OWNER


class CachingStatus(StrEnum):
    """What the owner set, and what `GET /v8/artifacts/status` tells (spec 1, Caching status).

    `over_limit` is never set: it follows from the quota.
    """

    ENABLED = "enabled"
    DISABLED = "disabled"
    PAUSED = "paused"
    OVER_LIMIT = "over_limit"


class Block(StrEnum):
    """Why the operator stopped an account: requests for its artifacts answer 402 (docs/caching-status.md)."""

    SOFT = "soft_block"
    PAYMENT = "payment_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerState:
    """What rules an owner's requests. `block_reason` is what the operator has those who are blocked read, if anything;
    `quota_bytes` is None for no limit.
    """

    caching: CachingStatus = CachingStatus.ENABLED
    block: Block | None = None
    block_reason: str | None = None
    quota_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    id: str
    slug: str
    name: str
    created_at: datetime
    state: OwnerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    user_id: str
    role: Role
    joined_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What one batch tells about a caller's standing: the team, if it exists, and the role, if there is one.

    For a user acting for themselves `team` and `role` are None and `state` is the personal one.
    """

    team: Team | None
    role: Role | None
    state: OwnerState


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamMembership:
    """A team, to one of its members, and their role in it."""

    team: Team
    role: Role


class SlugTaken(Exception):
    """Another team has this slug."""
