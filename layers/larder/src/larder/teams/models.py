"""Teams, members, and what an owner of artifacts may do at the moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """What a member may do. Everybody reads the cache, the usage figures and the list of members.

    The rights of each role stand here and nowhere else; docs/teams.md shows them as a table.
    """

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
    def manages_members(self) -> bool:
        """Invites, removes, and gives other roles: to and of everybody but owners."""
        return self in (Role.OWNER, Role.ADMIN)

    @property
    def manages_owners(self) -> bool:
        """The same to and of owners."""
        return self is Role.OWNER

    @property
    def renames_team(self) -> bool:
        """Gives the team another name or slug."""
        return self in (Role.OWNER, Role.ADMIN)

    @property
    def owns_team(self) -> bool:
        """Deletes the team, and sets its caching status."""
        return self is Role.OWNER

    def manages(self, other: "Role") -> bool:
        """Whether a member of this role makes, changes and removes members of the other."""
        return self.manages_owners if other is Role.OWNER else self.manages_members


class CachingStatus(StrEnum):
    """What the owner set, and what `GET /v8/artifacts/status` answers.

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
    """A team. `former_slugs` still lead to it, the latest last; nobody else can have them meanwhile.

    `version` goes up when its name or slugs change. `created_by` is a user's id, None where that was not noted.
    """

    id: str
    slug: str
    name: str
    created_at: datetime
    updated_at: datetime
    created_by: str | None = None
    former_slugs: tuple[str, ...] = ()
    version: int = 0
    state: OwnerState

    @property
    def slugs(self) -> tuple[str, ...]:
        """Every slug that leads to the team."""
        return (*self.former_slugs, self.slug)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    user_id: str
    role: Role
    joined_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What one batch tells about a caller's standing: the team, if it exists, and the member, if they are one.

    For a user acting for themselves `team` and `member` are None and `state` is the personal one.
    """

    team: Team | None
    member: Member | None
    state: OwnerState

    @property
    def role(self) -> Role | None:
        return None if self.member is None else self.member.role


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamMembership:
    """A team, to one of its members."""

    team: Team
    member: Member

    @property
    def role(self) -> Role:
        return self.member.role


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A member who changes something in a team, with the role by which they may.

    What they change is written on condition that the role still is theirs.
    """

    user_id: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """How some users stand in a team, read at once but not as of one moment: what follows from it has to hold when it
    is written, too.

    `team` is None for one that does not exist; who is no member has no role. `invitations_made` is how many the team
    ever made.
    """

    team: Team | None
    owners: int
    invitations_made: int
    roles: Mapping[str, Role]


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTeams:
    """The teams that a user has made over HTTP, by id. `version` goes up with each."""

    user_id: str
    team_ids: tuple[str, ...] = ()
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamChange:
    """What is to change of a team; None for what stays.

    Of `former_slugs` those that are named stay, and the others are free for other teams from then on.
    """

    name: str | None = None
    slug: str | None = None
    former_slugs: tuple[str, ...] | None = None
    caching: CachingStatus | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """What is to change, by the names above."""
        changes = (
            ("name", self.name),
            ("slug", self.slug),
            ("former_slugs", self.former_slugs),
            ("caching", self.caching),
        )
        return tuple(name for name, value in changes if value is not None)

    @property
    def renames(self) -> bool:
        return self.named not in ((), ("caching",))

    def is_open_to(self, role: Role) -> bool:
        """Whether a member of this role may make the change."""
        return (role.renames_team or not self.renames) and (role.owns_team or self.caching is None)
