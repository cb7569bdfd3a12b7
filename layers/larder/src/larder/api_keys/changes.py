"""What a key is made from, and changes to a key."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from larder.api_keys.models import Permissions, RateLimit, Refill


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """Properties of a new key. With a `team_id` it acts for that team only, else for its user and all of their teams.

    Without a `user_id`, the team owns it. `made_by` is the user who makes such a key, None for the operator.

    With `remaining`, its number of uses is limited. For a prefix, lifetime, permissions or rate limit of None, the
    deployment's option applies.
    """

    user_id: str | None
    team_id: str | None = None
    made_by: str | None = None
    name: str | None = None
    prefix: str | None = None
    expires_in_s: int | None = None
    permissions: Permissions | None = None
    metadata: Any = None
    remaining: int | None = None
    refill: Refill | None = None
    rate_limit: RateLimit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The id of the key that a new key replaces, and for how many seconds it still works."""

    key_id: str
    overlap_s: int


class Unset(Enum):
    """Distinguishes a property that does not change from one that is set to None."""

    UNSET = "unset"


UNSET: Literal[Unset.UNSET] = Unset.UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanges:
    """Changes to a key. A property that is not given stays.

    For metadata, expiry, allowance and refill, None removes the property, and UNSET leaves it.
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
