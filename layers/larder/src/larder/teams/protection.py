"""Protection of teams: only trusted credentials write what everyone in the team reads (docs/protection.md).

A team that is not protected has one scope. Naming the first trusted credential protects the team in the same
transaction, unless the caller declines that. The operator, the team, and the option `ProtectNewTeams` can also do it.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from larder import clock
from larder.actor import Actor
from larder.audit.models import Action
from larder.audit.service import audited
from larder.concurrency import attempts
from larder.errors import MissingRole, TeamNotFound, TryAgain
from larder.settings import settings
from larder.teams import repository
from larder.teams.models import (
    UNDECIDED,
    Member,
    Overwrites,
    People,
    Protection,
    Role,
    Unsigned,
)
from larder.teams.teams import acting_in

if TYPE_CHECKING:
    from larder.tables import Write

_AHEAD = timedelta(seconds=2)
"""How far ahead of the write uploads begin to count: clocks of instances differ, and the write takes a moment."""

_CLOCKS_DIFFER = timedelta(seconds=1)

_OWNERS_ONLY = "Only an owner of the team can change its protection. Admins can only turn it on."


class FirstTrust(NamedTuple):
    """What naming a trusted credential does to its team: the writes, and the protection that they set, if any."""

    writes: "tuple[Write, ...]" = ()
    team_id: str = ""
    protection: Protection = UNDECIDED

    @property
    def protects(self) -> bool:
        return bool(self.protection.on)


NO_TRUST = FirstTrust()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionChange:
    """What to set. None leaves a setting as it is.

    With `keep_stored`, the team still shows what was stored in the shared scope before it was protected.
    """

    protected: bool
    people: People | None = None
    overwrites: Overwrites | None = None
    unsigned: Unsigned | None = None
    keep_stored: bool = False


def first_trust(team_id: str, *, protect: bool, actor: Actor | None) -> FirstTrust:
    """What to commit with the first credential that the team trusts: a key with `artifacts: trust`, or a rule.

    Does nothing if someone has decided already whether the team is protected, or with the option `never`. Without
    `protect`, it records that it is not to be protected. Of two first ones at the same time, the first decides. Call
    `confirm` after the commit.
    """
    if settings().protect_new_teams == "never":
        return FirstTrust()
    team = repository.get_team(team_id)
    if team is None or team.state.protection.on is not None:
        return FirstTrust()
    protection = replace(UNDECIDED, on=protect, trusted_from=_from_now_on())
    writes = (
        repository.decide_protection(team_id, protection),
        audited(team_id, Action.PROTECTION_SET, protection.summary, actor),
    )
    return FirstTrust(writes, team_id, protection)


def confirm(trust: FirstTrust) -> None:
    """Move the moment from which uploads count, if the commit took too long. Raises TryAgain."""
    if trust.protects:
        _not_before_the_write(trust.team_id, trust.protection)


def _not_before_the_write(team_id: str, protection: Protection) -> Protection:
    """The protection after a commit that took less time than uploads are kept waiting.

    Every upload that read the team before the commit goes to the shared scope. None may begin at the moment from
    which uploads count, or later. Raises TryAgain.
    """
    for _ in attempts():
        if clock.now() < protection.trusted_from - _CLOCKS_DIFFER:
            return protection
        later = replace(protection, trusted_from=_from_now_on())
        if not repository.change_protection(team_id, protection, later, by=None):
            # Someone has changed it since, with a moment of their own.
            return protection
        protection = later
    raise TryAgain


def read_protection(team_id: str) -> Protection:
    """Raises TeamNotFound."""
    team = repository.get_team(team_id)
    if team is None:
        raise TeamNotFound
    return team.state.protection


def change_protection(
    team_id: str, change: ProtectionChange, *, by: Member | None, actor: Actor | None = None
) -> Protection:
    """Protect the team, change how it is protected, or end the protection, from the next request on.

    `by` is the member who makes the change, None for the operator. Owners may do all of it, admins may only turn the
    protection on. Raises MissingRole, TeamNotFound, TryAgain.
    """
    for _ in attempts():
        team, acting, _ = acting_in(team_id, by)
        old = team.state.protection
        new = _changed(old, change)
        if new == old:
            return old
        if acting is not None:
            _check_role(acting.role, old, change)
        entry = audited(team_id, Action.PROTECTION_SET, new.summary, actor)
        if repository.change_protection(team_id, old, new, entry, by=acting):
            moved = new.on and new.trusted_from not in (old.trusted_from, UNDECIDED.trusted_from)
            return _not_before_the_write(team_id, new) if moved else new
    raise TryAgain


def _changed(old: Protection, change: ProtectionChange) -> Protection:
    trusted_from = old.trusted_from
    if change.protected and change.keep_stored:
        trusted_from = UNDECIDED.trusted_from
    elif change.protected and not old.on:
        trusted_from = _from_now_on()
    return Protection(
        on=change.protected,
        trusted_from=trusted_from,
        people=change.people or old.people,
        overwrites=change.overwrites or old.overwrites,
        unsigned=change.unsigned or old.unsigned,
    )


def _from_now_on() -> datetime:
    return clock.now() + _AHEAD


def _check_role(role: Role, old: Protection, change: ProtectionChange) -> None:
    """Raises MissingRole."""
    if role.owns_team:
        return
    only_protects = change == ProtectionChange(protected=True) and not old.on
    if not (role.names_trusted and only_protects):
        raise MissingRole(_OWNERS_ONLY)
