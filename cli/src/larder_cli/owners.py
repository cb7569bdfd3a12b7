"""Whose artifacts and figures a command is about: a team's, or a person's without one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from larder_cli.teams import require_team
from larder_cli.users import require_user

if TYPE_CHECKING:
    from larder.teams.models import OwnerState

OWNER = "TEAM|EMAIL"
"""What the help texts call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Of `slug` and `email` one is None: the owner is a team or a person."""

    id: str
    state: "OwnerState"
    slug: str | None = None
    email: str | None = None

    @property
    def name(self) -> str:
        """What the operator calls it."""
        return self.slug or self.email or self.id


def require_owner(team_or_email: str) -> Owner:
    """The person with this address, or the team with this slug or id, which hold no `@`. Raises ClickException."""
    if "@" not in team_or_email:
        team = require_team(team_or_email)
        return Owner(id=team.id, slug=team.slug, state=team.state)
    from larder.teams.repository import read_state

    user = require_user(team_or_email)
    return Owner(id=user.id, email=user.email, state=read_state(user.id))
