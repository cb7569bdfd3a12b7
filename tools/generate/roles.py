"""What the roles of a team can do, in one line each, from `ROLE_WORDS`."""

from __future__ import annotations

from larder.teams.models import ROLE_WORDS
from tools.generate.why import constant


def lines() -> None:
    """Print a list of the roles for docs/teams.md."""
    for role, words in ROLE_WORDS.items():
        print(f"- **{role.capitalize()}** (`{role}`): {words}")


def words() -> None:
    """Print the same as a constant of a script."""
    constant("ROLE_WORDS", ROLE_WORDS)
