"""What an API key is, what it is asked for, and how its use is answered."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Any, Literal

from larder.clock import to_ms

Permissions = Mapping[str, tuple[str, ...]]
"""Resource to allowed actions, for instance `{"artifacts": ("read", "write")}`."""

CACHE_ACTIONS = ("read", "write")
"""What a build needs."""

ARTIFACT_ACTIONS = (*CACHE_ACTIONS, "manage")

TEAM_ACTIONS = ("read", "write")
"""Members, and what changes teams. No key has them unless they are given to it: those of builds need neither."""

OWN_ACTIONS: Permissions = {"artifacts": ARTIFACT_ACTIONS, "teams": TEAM_ACTIONS}
"""Every permission that Larder itself asks for. Resources of other names are the deployment's own."""


MAX_NUMBER = 10**12
"""Thirty years in milliseconds: nothing that a key counts is larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most `max_requests` verifications in a window of `window_ms`, counted while `enabled`."""

    enabled: bool
    window_ms: int
    max_requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refill:
    """Every `interval_ms` adds `amount` to the allowance, at the first use after it is due."""

    interval_ms: int
    amount: int

    def due_after(self, moment: datetime) -> datetime:
        """When the first one is due, if its interval begins at `moment`."""
        return moment + timedelta(milliseconds=self.interval_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key without its secret.

    `key_hash` is all that the table keeps of the key itself. `remaining` is None for unlimited use. `request_count` is
    that of the window that ends at `window_ends_at`. `refill_due_at` is when the next refill is due, None without one.
    """

    id: str
    key_hash: str
    user_id: str
    team_id: str | None
    name: str | None
    start: str | None
    prefix: str | None
    enabled: bool
    permissions: Permissions
    metadata: Any
    remaining: int | None
    refill: Refill | None
    refill_due_at: datetime | None
    last_refill_at: datetime | None
    rate_limit: RateLimit
    request_count: int
    window_ends_at: datetime
    expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    last_request: datetime | None

    def refilled(self, now: datetime) -> "ApiKey":
        """The key with every refill that is due at `now`: one for each whole interval that has passed.

        The next one is due a whole interval after the last, so that refills do not drift with the times of uses.
        """
        if self.refill is None or self.refill_due_at is None or not self.refill_is_due(now):
            return self
        # A refill is due when more than its interval has passed.
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
        """Whether more than the interval has passed, as the Better Auth server has it."""
        return self.refill_due_at is not None and now > self.refill_due_at

    def window_is_over(self, now: datetime) -> bool:
        return now >= self.window_ends_at

    def turns(self, now: datetime) -> bool:
        """Whether a use at `now` begins a window or refills, and so takes a second write."""
        return self.refill_is_due(now) or self.window_is_over(now)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """What a new key is to be. Bound to `team_id` it acts for that team only, else for its user and all their teams.

    It has an allowance when `remaining` is given. Name, prefix, lifetime, permissions and rate limit that are None come
    from the deployment's options.
    """

    user_id: str
    team_id: str | None = None
    name: str | None = None
    prefix: str | None = None
    expires_in_s: int | None = None
    permissions: Permissions | None = None
    metadata: Any = None
    remaining: int | None = None
    refill: Refill | None = None
    rate_limit: RateLimit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginCode:
    """What a build client that logs in for a team exchanges for a key: whose, and of which team.

    It ends with the password and the sessions of who gave it: both numbers are the user's at that moment. Codes of
    version 0.1.0 have neither.
    """

    code_hash: str
    user_id: str
    team_id: str
    expires_at: datetime
    password_version: int | None
    session_generation: int | None


class Unset(Enum):
    """Tells a property that is left as it is from one that is set to nothing."""

    UNSET = "unset"


UNSET: Literal[Unset.UNSET] = Unset.UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanges:
    """What is to change of a key; the rest stays.

    Of what can be nothing, None is nothing: no metadata, no expiry, no allowance, no refill.
    """

    name: str | None = None
    enabled: bool | None = None
    permissions: Permissions | None = None
    metadata: Any = UNSET
    expires_in_s: int | Unset | None = UNSET
    remaining: int | Unset | None = UNSET
    refill: Refill | Unset | None = UNSET
    rate_limit_enabled: bool | None = None
    rate_limit_window_ms: int | None = None
    rate_limit_max: int | None = None


class Refusal(StrEnum):
    """Why a verification failed: the codes of `/api-key/verify` (docs/clients/better-auth.md#error-codes)."""

    INVALID = "INVALID_API_KEY"
    DISABLED = "KEY_DISABLED"
    EXPIRED = "KEY_EXPIRED"
    LACKS_PERMISSION = "KEY_NOT_FOUND"
    USED_UP = "USAGE_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The answer to one verification. `key` is the record as it stands after it, also for a key that was refused.

    `try_again_in_ms` is how long the window of a rate limit still lasts.
    """

    key: ApiKey | None
    refusal: Refusal | None = None
    try_again_in_ms: int | None = None

    @property
    def valid(self) -> bool:
        return self.refusal is None
