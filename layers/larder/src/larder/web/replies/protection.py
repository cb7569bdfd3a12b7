"""The protection of a team in replies."""

from typing import TypedDict

from larder.clock import Milliseconds, to_ms
from larder.teams.models import Overwrites, People, Protection, Unsigned


class ProtectionJson(TypedDict):
    """`trustedFrom` is null if the team is not protected, or still shows what was stored before (`keepStored`)."""

    protected: bool
    trustedFrom: Milliseconds | None
    keepStored: bool
    people: People
    overwrites: Overwrites
    unsigned: Unsigned


def protection_json(protection: Protection) -> ProtectionJson:
    hides_earlier = protection.on and not protection.keeps_stored
    return {
        "protected": bool(protection.on),
        "trustedFrom": to_ms(protection.trusted_from) if hides_earlier else None,
        "keepStored": protection.keeps_stored,
        "people": protection.people,
        "overwrites": protection.overwrites,
        "unsigned": protection.unsigned,
    }
