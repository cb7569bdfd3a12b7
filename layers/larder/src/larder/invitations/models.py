"""What an invitation is."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from larder.teams.models import Role

LIFETIME = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitee:
    """Somebody who is to be invited. `address` is the same for all spellings of `email`, to which mail is sent."""

    email: str
    address: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """A place in a team that waits for whoever has the address.

    `invited_by` is the member who made it, None for the operator: it counts as long as they might make it still.
    """

    id: str
    team_id: str
    email: str
    address: str
    role: Role
    invited_by: str | None
    created_at: datetime

    @property
    def expires_at(self) -> datetime:
        return self.created_at + LIFETIME

    def is_open(self, now: datetime) -> bool:
        return now < self.expires_at
