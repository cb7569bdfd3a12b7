"""Types of what is recorded of own scopes. Builds do not need them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ScopeKind(StrEnum):
    """Who writes an own scope. The id of the scope begins with the same letter."""

    CI_JOB = "ci"
    KEY = "key"
    USER = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnScope:
    """What is recorded of an own scope.

    `name` is that of its key or job, None for the scope of a user. `user_id` is the user, or the rule of a job. Until
    the first count after the first upload, `size_bytes`, `artifacts` and `counted_at` are None.
    """

    id: str
    name: str | None = None
    user_id: str | None = None
    last_upload_at: datetime | None = None
    size_bytes: int | None = None
    artifacts: int | None = None
    counted_at: datetime | None = None

    @property
    def kind(self) -> ScopeKind:
        return next(kind for kind in ScopeKind if kind.value[0] == self.id[0])

    @property
    def user_of(self) -> str | None:
        """The id of the user whose scope it is. None for the scope of a key or a job."""
        return self.id[1:] if self.kind is ScopeKind.USER else None
