"""Ids and slugs of teams, which requests name teams by."""

import re

from larder.errors import InvalidValue
from larder.teams import repository

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?")
TEAM_ID = re.compile(r"team_[A-Za-z0-9]{1,64}")


def parse_team_id(text: str) -> str:
    """Raises InvalidValue."""
    if not names_a_team(text):
        raise InvalidValue("team_id", "must be `team_` followed by letters and digits")
    return text


def names_a_team(text: str) -> bool:
    """Whether the text has the format of a team's id."""
    return TEAM_ID.fullmatch(text) is not None


def parse_slug(text: str) -> str:
    """Raises InvalidValue."""
    if not SLUG.fullmatch(text):
        raise InvalidValue("slug", "must be 1 to 48 lower-case letters, digits and inner hyphens")
    return text


def team_of_slug(slug: str) -> str | None:
    """The id of the team with this slug. None if there is none, as for a text that cannot be a slug."""
    return repository.team_of_slug(slug) if SLUG.fullmatch(slug) else None


def named_team(id_or_slug: str) -> str | None:
    """The text itself if it has the format of an id, or the id of the team with this slug."""
    return id_or_slug if names_a_team(id_or_slug) else team_of_slug(id_or_slug)
