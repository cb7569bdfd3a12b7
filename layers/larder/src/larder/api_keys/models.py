"""Types of API keys: keys, pages of keys, login codes, results of a verification."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from larder.clock import to_ms
from larder.errors import Unauthenticated
from larder.records import Name
from larder.teams.models import SHARED_SCOPE, Role, is_team_id

Permissions = Mapping[str, tuple[str, ...]]
"""Allowed actions by resource, for example `{"artifacts": ("read", "write")}`."""

CACHE_ACTIONS = ("read", "write")
"""The actions that a build needs."""

TRUST = "trust"
"""The action of `artifacts` that lets a key write the shared scope of a protected team."""

REPLACE = "replace"
"""The action of `artifacts` that lets a trusted key replace what the shared scope of a protected team keeps."""

ARTIFACT_ACTIONS = (*CACHE_ACTIONS, "manage", TRUST, REPLACE)

FETCH = "fetch"
"""The one action of `artifacts` of a public read key: to find and get them. Every key that may `read` may do so too."""

FETCHES_ONLY: "Permissions" = {"artifacts": (FETCH,)}
"""All permissions of a public read key."""

TEAM_ACTIONS = ("read", "write")
"""Read and change teams and members. Keys do not have them by default, because builds do not need them."""

NEVER_OF_A_TEAM = ("teams", TRUST)
"""The resources that a team's own key cannot have: it acts without a person, so it cannot change who has access."""

OWN_ACTIONS: Permissions = {"artifacts": ARTIFACT_ACTIONS, "teams": TEAM_ACTIONS}
"""Every permission that Larder itself checks. Other resources belong to the deployment."""


VERCELS_OWN = "vca_"
"""The prefix of Vercel's tokens. turbo would send a token with this prefix to Vercel for an exchange
(docs/clients/turbo.md#status-codes).
"""

MAX_NUMBER = 10**12
"""The upper bound of every number of a key: thirty years in milliseconds."""


def role_cap_of(permissions: Permissions) -> Role:
    """The role that a team's own key acts with. It does not depend on its creator, and is never OWNER."""
    actions = permissions.get("artifacts", ())
    if not {*actions} <= {*CACHE_ACTIONS, FETCH}:
        return Role.ADMIN
    return Role.DEVELOPER if "write" in actions else Role.VIEWER


def day_of(moment: datetime) -> str:
    """The day of UTC for which a public read key counts."""
    return f"{moment.astimezone(UTC):%Y-%m-%d}"


def scope_of_user(user_id: str) -> str:
    """The own scope of a user in protected teams, for sessions and keys of `turbo login`."""
    return f"u{user_id}"


class Unread(Enum):
    """Stands for metadata that a key has, but that was not read with it."""

    UNREAD = "unread"


UNREAD: Literal[Unread.UNREAD] = Unread.UNREAD


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most `max_requests` verifications in a window of `window_ms`, counted while `enabled`."""

    enabled: Annotated[bool, Name("rate_limit_enabled")]
    window_ms: Annotated[int, Name("rate_limit_window", "rateLimitTimeWindow")]
    max_requests: Annotated[int, Name("rate_limit_max")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refill:
    """Adds `amount` to the allowance every `interval_ms`, at the first use after it is due."""

    interval_ms: Annotated[int, Name("refill_interval")]
    amount: Annotated[int, Name("refill_amount")]

    def due_after(self, moment: datetime) -> datetime:
        """When a refill is due whose interval begins at `moment`."""
        return moment + timedelta(milliseconds=self.interval_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily:
    """What a public read key gives in a day of UTC at most, and what it gave on `day`, such as `2026-12-31`.

    It has given all that it may on `paused_on`, and gives nothing more on that day.
    """

    max_requests: Annotated[int, Name("daily_requests")]
    max_bytes: Annotated[int, Name("daily_bytes")]
    day: str | None = None
    requests: Annotated[int, Name("day_requests", absent=0)] = 0
    size_bytes: Annotated[int, Name("day_bytes", absent=0)] = 0
    paused_on: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key without its secret.

    The table stores `key_hash` instead of the key; if hashing is disabled, both are the same. `remaining` is None for
    unlimited use. `request_count` counts the requests in the window that ends at `window_ends_at`. `refill_due_at` is
    None without a refill. `password_version` is the user's when the key was created, 0 for keys of version 0.1.0.
    `metadata` may be UNREAD.

    `holder_id` is the user, the team that owns the key or, for the token of a CI job, the rule that gave it. Such a
    token also has `rule_id`, the rule's version in `rule_version`, and in `run` what describes the job.

    A team's own key acts with the role `role_cap`. `made_by` is the user who made it, None for the operator. `known_to`
    are the users who have seen the secret.

    A key that its maker left behind (`ownership`) has `orphaned_at`, when its grace began. `expires_at` is then the end
    of the grace, and `ordinary_end` the expiry that the key had.

    `scope` is set if it does not follow from the id: the own scope of the key's user, of the key that it replaced or of
    the job that it is for. SHARED_SCOPE is that of a trusted job of a CI.

    `daily` is set for a public read key alone, which strangers have. It is a team's own, with FETCHES_ONLY.
    """

    id: str
    key_hash: str
    holder_id: Annotated[str, Name("user_id", "referenceId")]
    team_id: str | None
    name: str | None = None
    start: str | None
    prefix: str | None
    enabled: bool = True
    permissions: Permissions
    metadata: Any = None
    remaining: int | None = None
    refill: Refill | None = None
    refill_due_at: datetime | None = None
    last_refill_at: datetime | None = None
    rate_limit: RateLimit
    request_count: int = 0
    window_ends_at: datetime
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    last_request: datetime | None = None
    password_version: Annotated[int, Name(absent=0)] = 0
    scope: str | None = None
    rule_id: str | None = None
    rule_version: int | None = None
    run: Mapping[str, str] | None = None
    made_by: str | None = None
    known_to: Annotated[tuple[str, ...], Name(absent=())] = ()
    role_cap: Role | None = None
    orphaned_at: datetime | None = None
    ordinary_end: datetime | None = None
    daily: Daily | None = None

    @property
    def owned_by_team(self) -> bool:
        """Whether the key is the team's own, and has no user."""
        return is_team_id(self.holder_id)

    @property
    def has_user(self) -> bool:
        return self.rule_id is None and not self.owned_by_team

    @property
    def user_id(self) -> str:
        """Raises Unauthenticated for a team's own key and for the token of a CI job, which have no user."""
        if not self.has_user:
            raise Unauthenticated
        return self.holder_id

    @property
    def is_used_up(self) -> bool:
        """Whether the allowance has ended for good."""
        return self.remaining == 0 and self.refill is None

    @property
    def own_scope(self) -> str:
        """The scope of a protected team that the key writes, unless it is trusted."""
        return self.scope or f"k{self.id}"

    @property
    def may_trust(self) -> bool:
        """Whether the key has `artifacts: trust`. Each request also checks the role of its user."""
        return TRUST in self.permissions.get("artifacts", ())

    @property
    def does_more(self) -> bool:
        """Whether the key does more with artifacts than a build needs."""
        return not {*self.permissions.get("artifacts", ())} <= {*CACHE_ACTIONS, FETCH}

    def is_paused(self, now: datetime) -> bool:
        """Whether this is a public read key that has given all that it may today."""
        return self.daily is not None and self.daily.paused_on == day_of(now)

    @property
    def is_trusted(self) -> bool:
        return self.scope == SHARED_SCOPE or self.may_trust

    @property
    def is_counted(self) -> bool:
        """Whether each use must be counted, for an allowance or a rate limit."""
        return self.remaining is not None or self.rate_limit.enabled

    def refilled(self, now: datetime) -> "ApiKey":
        """The key with every refill that is due at `now`, one for each whole interval that has passed.

        The next one is due a whole interval after the last, so that refills do not drift with the times of uses.
        """
        if self.refill is None or self.refill_due_at is None or not self.refill_is_due(now):
            return self
        # Minus 1, because a refill is due only after more than its interval.
        late_ms = to_ms(now) - to_ms(self.refill_due_at) - 1
        count = 1 + late_ms // self.refill.interval_ms
        interval = timedelta(milliseconds=self.refill.interval_ms)
        remaining = (self.remaining or 0) + count * self.refill.amount
        return replace(
            self,
            remaining=min(remaining, MAX_NUMBER),
            refill_due_at=self.refill_due_at + count * interval,
            last_refill_at=self.refill_due_at + (count - 1) * interval,
        )

    def refill_is_due(self, now: datetime) -> bool:
        """Whether more than the interval has passed. The Better Auth server compares in the same way."""
        return self.refill_due_at is not None and now > self.refill_due_at

    def window_has_ended(self, now: datetime) -> bool:
        return now >= self.window_ends_at

    def needs_renewal(self, now: datetime) -> bool:
        """Whether a use at `now` begins a new window or refills the allowance, which needs a second write."""
        return self.refill_is_due(now) or self.window_has_ended(now)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginCode:
    """A code that turbo exchanges for a key of this user and team (`turbo login --sso-team`).

    `password_version` and `session_generation` are the user's when the code was made. The code becomes invalid when
    either changes. Codes of version 0.1.0 have neither.
    """

    code_hash: str
    # Not `user_id`, because the index `by_user` must contain only keys.
    user_id: Annotated[str, Name("login_user")]
    team_id: Annotated[str, Name("login_team")]
    expires_at: datetime
    password_version: Annotated[int | None, Name("login_password_version")]
    session_generation: Annotated[int | None, Name("login_session_generation")]


class KeyPage(NamedTuple):
    """Some keys of a list, and whether there are more after them."""

    keys: tuple[ApiKey, ...]
    has_more: bool


class KeysOfHolder(NamedTuple):
    """The stored forms of the keys of a user or team. Some may no longer exist, or belong to a team since.

    `counted` is the set that limits how many keys the holder has, and `version` is its version, None if there is none.
    The set has the newest keys, which the index shows late. `indexed` can have keys that are not in the set: those that
    version 0.1.0 created.
    """

    holder_id: str
    indexed: frozenset[str]
    counted: frozenset[str]
    version: int | None


class Refusal(StrEnum):
    """Why a verification failed: the codes of `/api-key/verify` (docs/clients/better-auth.md#error-codes)."""

    INVALID = "INVALID_API_KEY"
    DISABLED = "KEY_DISABLED"
    EXPIRED = "KEY_EXPIRED"
    LACKS_PERMISSION = "KEY_NOT_FOUND"
    USED_UP = "USAGE_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"


class Verification(NamedTuple):
    """The result of one verification. `key` is the record after it, also for a key that was refused.

    `try_again_in_ms` is the time until the window of the rate limit ends.
    """

    key: ApiKey | None
    refusal: Refusal | None = None
    try_again_in_ms: int | None = None

    @property
    def valid(self) -> bool:
        return self.refusal is None
