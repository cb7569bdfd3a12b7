"""Teams and their protection in replies, named as in the hosted service's REST API."""

from typing import TYPE_CHECKING, Literal, TypedDict

from larder.clock import Milliseconds, to_ms
from larder.teams.models import Overwrites, People, Protection, Role, Team, Unsigned

if TYPE_CHECKING:
    from larder.trust.scopes import SharedUse


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


class ProtectionJson(TypedDict):
    """`trustedFrom` is null if the team is not protected, or still shows what was stored before (`keepStored`).

    `idle` says that the team is protected, but no trusted credential has uploaded anything for two weeks.
    `lastSharedUploadAt` is accurate to an hour.
    """

    protected: bool
    trustedFrom: Milliseconds | None
    keepStored: bool
    people: People
    overwrites: Overwrites
    unsigned: Unsigned
    lastSharedUploadAt: Milliseconds | None
    idle: bool


def protection_json(protection: Protection, use: "SharedUse") -> ProtectionJson:
    hides_earlier = protection.on and not protection.keeps_stored
    return {
        "protected": bool(protection.on),
        "trustedFrom": to_ms(protection.trusted_from) if hides_earlier else None,
        "keepStored": protection.keeps_stored,
        "people": protection.people,
        "overwrites": protection.overwrites,
        "unsigned": protection.unsigned,
        "lastSharedUploadAt": None if use.last_upload_at is None else to_ms(use.last_upload_at),
        "idle": use.is_idle,
    }
