"""Teams in replies, named as in the hosted service's REST API."""

from typing import Literal, TypedDict

from larder.teams.models import Role, Team


class TeamIdJson(TypedDict):
    id: str


class CreatedTeamJson(TypedDict):
    id: str
    slug: str
    name: str


# `from` is a keyword of Python, so this is not a class.
JoinedTeamJson = TypedDict(
    "JoinedTeamJson",
    {"teamId": str, "slug": str, "name": str, "role": Role, "from": Literal["mail"]},
)


def created_json(team: Team) -> CreatedTeamJson:
    return {"id": team.id, "slug": team.slug, "name": team.name}


def joined_json(team: Team, role: Role) -> JoinedTeamJson:
    return {
        "teamId": team.id,
        "slug": team.slug,
        "name": team.name,
        "role": role,
        "from": "mail",
    }
