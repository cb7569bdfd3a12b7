"""Types of invitations."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from larder.teams.models import Role

LIFETIME = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitee:
    """A person to invite. Email goes to `email`; `address` is its canonical form."""

    email: str
    address: str
    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An invitation of an email address to a team.

    `invited_by` is the id of the member who made it, None for the operator. It is valid only while that member still
    has a role that could make it.
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
