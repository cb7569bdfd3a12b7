"""The owner of artifacts and usage figures: a team, or a user for what they store without a team."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from larder_cli.teams import require_team
from larder_cli.users import require_user

if TYPE_CHECKING:
    from larder.teams.models import OwnerState

OWNER = "TEAM|EMAIL"
"""The name of the argument in help texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A team has a `slug` and no `email`; a user has an `email` and no `slug`."""

    id: str
    state: "OwnerState"
    slug: str | None = None
    email: str | None = None

    @property
    def name(self) -> str:
        """The name for messages: the slug or the email address."""
        return self.slug or self.email or self.id


def require_owner(team_or_email: str) -> Owner:
    """The user with this email address, or the team with this slug or id. Raises ClickException.

    Slugs and ids contain no `@`.
    """
    if "@" not in team_or_email:
        team = require_team(team_or_email)
        return Owner(id=team.id, slug=team.slug, state=team.state)
    from larder.teams.state import read_state

    user = require_user(team_or_email)
    return Owner(id=user.id, email=user.email, state=read_state(user.id))
