"""Whether the shared scope of a protected team is used. If it is not, nobody in the team gets new hits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from larder.artifacts.repository import scopes
from larder.clock import EPOCH
from larder.teams.models import Protection

IDLE_AFTER = timedelta(days=14)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUse:
    """`last_upload_at` is accurate to an hour. `is_idle` says that nothing has been uploaded for `IDLE_AFTER`."""

    last_upload_at: datetime | None = None
    is_idle: bool = False


def use_of_shared(team_id: str, protection: Protection, *, now: datetime) -> SharedUse:
    """How the shared scope of the team is used, if the team is protected."""
    if not protection.on:
        return SharedUse()
    last = scopes.last_shared_upload(team_id)
    # If the team still shows what was stored before, the moment at which it was protected is not known.
    since = max(protection.trusted_from, last or EPOCH)
    return SharedUse(last_upload_at=last, is_idle=EPOCH < since < now - IDLE_AFTER)
