"""Types of teams: roles, members, and the state of an owner of artifacts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, NamedTuple

from larder.actor import RULE_ID_PREFIX
from larder.clock import EPOCH
from larder.records import Name

TEAM_ID_PREFIX = "team_"
"""turbo only sends a team id that begins with this (docs/clients/turbo.md#teams)."""

PARTITIONED_PREFIX = f"{TEAM_ID_PREFIX}8"
ID_LENGTH = len(PARTITIONED_PREFIX) + 24
"""Of the ids of new teams, whose artifacts are indexed in eight partitions. Those of 0.2.0 have one character less."""


OPERATOR = "operator"
"""In place of the id of the user who added a rule: the operator did."""

RULE_ID = re.compile(rf"{RULE_ID_PREFIX}[A-Za-z0-9]{{27}}")
"""The form of the ids of rules. They are as long as those of users."""

MAX_LISTED = 100
"""The most teams of a user, or members, keys or scopes of a team, in one reply."""

SHARED_SCOPE = "shared"
"""The name of the scope of a protected team that everyone reads. Only trusted credentials write it."""


def is_team_id(owner: str) -> bool:
    return owner.startswith(TEAM_ID_PREFIX)


class Role(StrEnum):
    """A member's role. Every role reads the cache, the usage figures and the list of members.

    Only this class defines the permissions of roles. docs/teams.md shows them as a table.
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
        """Can list, inspect and delete the team's artifacts."""
        return self in (Role.OWNER, Role.ADMIN)

    @property
    def names_trusted(self) -> bool:
        """Can say what the team trusts: turn protection on, change the rules for CI jobs, give and use trusted keys."""
        return self in (Role.OWNER, Role.ADMIN)

    @property
    def manages_members(self) -> bool:
        """Can invite and remove members and change their roles, except for owners."""
        return self in (Role.OWNER, Role.ADMIN)

    @property
    def manages_keys(self) -> bool:
        """Can list and delete the keys of the team, and make and change those that it owns."""
        return self in (Role.OWNER, Role.ADMIN)

    @property
    def manages_owners(self) -> bool:
        """Can invite and remove owners, and give and take the role of an owner."""
        return self is Role.OWNER

    @property
    def renames_team(self) -> bool:
        """Can change the team's name and slug."""
        return self in (Role.OWNER, Role.ADMIN)

    @property
    def owns_team(self) -> bool:
        """Can delete the team, set its caching status and change its protection."""
        return self is Role.OWNER

    def manages(self, other: "Role") -> bool:
        """Whether this role can add, change and remove members with the other role."""
        return self.manages_owners if other is Role.OWNER else self.manages_members


ROLE_WORDS: Mapping[Role, str] = MappingProxyType(
    {
        Role.OWNER: "Everything, also the team's protection, its owners and its deletion.",
        Role.ADMIN: "Manages members, keys, CI rules and artifacts.",
        Role.MEMBER: "Reads and writes the cache.",
        Role.VIEWER: "Only reads the cache.",
    }
)
"""The roles that people choose from, and what each can do. DEVELOPER, which is the same as MEMBER, is for clients."""


class CachingStatus(StrEnum):
    """The owner's setting, and the status that `GET /v8/artifacts/status` returns.

    `over_limit` is never stored: it follows from the quota.
    """

    ENABLED = "enabled"
    DISABLED = "disabled"
    PAUSED = "paused"
    OVER_LIMIT = "over_limit"


class Block(StrEnum):
    """Why the operator blocked an owner. Requests for its artifacts get 402 (docs/teams.md#caching-status)."""

    SOFT = "soft_block"
    PAYMENT = "payment_missing"


class People(StrEnum):
    """Where members of a protected team write with a session or a key of `turbo login`."""

    OWN = "own"
    """Into a scope of their own."""
    READ = "read"
    """Nowhere."""


class Overwrites(StrEnum):
    """What an upload to the shared scope of a protected team does if there is an artifact already."""

    KEEP = "keep"
    REPLACE = "replace"


class Unsigned(StrEnum):
    """What a team does with artifacts without a signature."""

    ACCEPT = "accept"
    REFUSE = "refuse"


class RunInputs(StrEnum):
    """What Larder keeps of the inputs of a team's reported runs (docs/usage.md#inputs-of-runs)."""

    OFF = "off"
    """Also of a team made until 0.2.0, unless someone has changed it."""
    NAMES = "names"
    """Names of files and variables, and digests of files."""
    VALUES = "values"
    """Also a code of each variable's value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Whether only trusted credentials write what everyone in the team reads, and how (docs/protection.md).

    `on` is None until someone has decided. Of the shared scope, members of a protected team only see uploads that began
    at `trusted_from` or later.
    """

    on: bool | None = None
    trusted_from: datetime = EPOCH
    people: People = People.OWN
    overwrites: Overwrites = Overwrites.KEEP
    unsigned: Unsigned = Unsigned.ACCEPT

    @property
    def keeps_stored(self) -> bool:
        """Whether the team is protected and still shows what was stored before."""
        return bool(self.on) and self.trusted_from == EPOCH

    @property
    def summary(self) -> str:
        """The settings in one line, for the audit."""
        settings = [
            f"protected={str(bool(self.on)).lower()}",
            f"people={self.people.value}",
            f"overwrites={self.overwrites.value}",
            f"unsigned={self.unsigned.value}",
        ]
        return " ".join(settings)


UNDECIDED = Protection()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerState:
    """Caching status, block, quota and protection of an owner. `block_reason` is a text from the operator that blocked
    clients get. `quota_bytes` is None for no limit.
    """

    caching: CachingStatus = CachingStatus.ENABLED
    block: Block | None = None
    block_reason: str | None = None
    quota_bytes: int | None = None
    protection: Protection = UNDECIDED


class UserState(NamedTuple):
    """What a request reads of its user: attributes of `accounts.models.User`."""

    proven: bool
    keys_from: int
    access_until: datetime | None = None
    is_suspended: bool = False

    def has_access(self, now: datetime) -> bool:
        """Whether sessions and keys of the user work."""
        return not self.is_suspended and (self.access_until is None or now < self.access_until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A team. `former_slugs`, the latest last, still lead to it, and no other team can take them.

    `version` increases when its name or slugs change. `created_by` is a user's id, None for old teams.
    `build_hour_cents` is what an hour on a machine that builds costs the team, in US cents, and 0 if it does not say.
    `inputs_key` is the random key of the codes of its run inputs, empty in teams made until 0.2.0 that never had them
    on. No reply has it.
    """

    id: str
    slug: str
    name: str
    created_at: datetime
    updated_at: datetime
    created_by: str | None = None
    former_slugs: tuple[str, ...] = ()
    version: int = 0
    run_inputs: RunInputs = RunInputs.OFF
    build_hour_cents: int = 0
    inputs_key: str = field(default="", repr=False)
    state: OwnerState

    @property
    def slugs(self) -> tuple[str, ...]:
        """Every slug that leads to the team."""
        return (*self.former_slugs, self.slug)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a team. `managed_by` is the id of the identity provider that gave the membership, if one did.

    `group` is the provider's group that gave the role, None if everyone at the provider has it.
    """

    user_id: str
    role: Role
    joined_at: datetime
    managed_by: str | None = None
    group: Annotated[str | None, Name("managed_group")] = None


class RuleState(NamedTuple):
    """What a request reads of the rule that gave its token. Each change of a rule raises its version."""

    enabled: bool
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A caller's relation to an owner: the team, if it exists, and the member, if the caller is one.

    For a user without a team, `team` and `member` are None, and `state` is the user's own. `user` is None if the user
    does not exist, and in lists, which do not read it. A token of a rule has neither: `rule` is the rule, or None if it
    was removed. A team's own key has neither: it acts with the role `role_cap`.
    """

    team: Team | None
    member: Member | None
    state: OwnerState
    user: UserState | None = None
    rule: RuleState | None = None
    role_cap: Role | None = None

    @property
    def role(self) -> Role | None:
        return self.role_cap if self.member is None else self.member.role


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamMembership:
    """A team and one of its members. `user` is as in `Membership`."""

    team: Team
    member: Member
    user: UserState | None = None

    @property
    def role(self) -> Role:
        return self.member.role


class Places(NamedTuple):
    """The roles of some users in a team. They are read in one batch but not as a snapshot, so writes must check them.

    `team` is None if it does not exist. `roles` has no entry for a user who is not a member. `managed` are the users
    whose membership an identity provider gave, with its id. `invitations_made` counts all invitations that the team has
    ever made.
    """

    team: Team | None
    owners: int
    invitations_made: int
    roles: Mapping[str, Role]
    managed: Mapping[str, str] = {}  # it is never changed


class MadeTeams(NamedTuple):
    """The ids of the teams that a user has created over HTTP. `version` increases with each."""

    user_id: str
    team_ids: tuple[str, ...] = ()
    version: int = 0

    @property
    def earlier(self) -> int:
        """How many there were before the last one."""
        return max(0, len(self.team_ids) - 1)
