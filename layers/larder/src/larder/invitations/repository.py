"""Invitations, stored in the table of teams (docs/data-model.md#teamstable-pk-sk).

An address has at most one invitation to a team: a new one replaces it. The team's item counts all invitations ever
made. A write is conditional on the count that was read, so that parallel requests cannot exceed the limit. One
transaction writes or deletes an invitation and its `invited#` item. All items have a time to live.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from larder.clock import to_epoch_seconds
from larder.conditions import begins_with, equals, exists, missing
from larder.invitations.models import Invitation
from larder.records import Form
from larder.tables import TEAMS, Item, Write, commit
from larder.teams.models import Member, Role
from larder.teams.repository import has_role, joining, role_checks

_INVITATION = "invitation#"
_INVITED = "invited#"
_FORM = Form(Invitation, apart=("team_id", "address"))


def stored(team_id: str) -> list[Invitation]:
    """Every invitation to the team, including expired ones, by address."""
    found = TEAMS.query(equals(pk=team_id) & begins_with(sk=_INVITATION))
    return [_invitation(item) for item in found]


def add(invitations: Sequence[Invitation], *also: Write, made: int, by: Member | None) -> bool:
    """Store the invitations, all of them or none. Each replaces an earlier one to the same address.

    `also` are other writes of the transaction, here as in `delete`.

    `made` is the count of the team's invitations that was read. False if the count has changed, the team does not
    exist, or `by` no longer has their role.
    """
    team_id = invitations[0].team_id
    as_seen = equals(invitations_made=made)
    if made == 0:
        as_seen = missing("invitations_made") | as_seen
    more = {"invitations_made": made + len(invitations)}
    return commit(
        TEAMS.update(team_id, "team", set=more, when=exists("pk") & as_seen),
        *(TEAMS.put(item) for invitation in invitations for item in _items(invitation)),
        *role_checks(team_id, by),
        *also,
    )


def delete(invitation: Invitation, *also: Write, by: Member | None) -> bool:
    """Delete an invitation. False if it is gone or replaced, or if `by` no longer has their role."""
    return commit(*_deletion(invitation), *role_checks(invitation.team_id, by), *also)


def accept(
    invitation: Invitation, user_id: str, inviters: Sequence[Role], *also: Write, now: datetime
) -> bool:
    """Add the user as a member, delete the invitation and do other writes, in one transaction.

    False if the invitation or the team is gone, the user is a member already, or the member who made the invitation
    no longer has one of the roles `inviters`.
    """
    writes = [
        *_deletion(invitation),
        *joining(invitation.team_id, user_id, invitation.role, now=now),
        *also,
    ]
    if invitation.invited_by is not None:
        writes.append(has_role(invitation.team_id, invitation.invited_by, *inviters))
    return commit(*writes)


def get(team_id: str, address: str) -> Invitation | None:
    item = TEAMS.get(team_id, _INVITATION + address)
    return None if item is None else _invitation(item)


def add_token(token_hash: str, invitation: Invitation) -> None:
    item = {
        "pk": _INVITATION + token_hash,
        "sk": "invitation",
        "team_id": invitation.team_id,
        "address": invitation.address,
        "id": invitation.id,
        "expires_at": to_epoch_seconds(invitation.expires_at),
    }
    commit(TEAMS.put(item))


def find_by_token(token_hash: str) -> Invitation | None:
    """The invitation of a token. None if it is gone or replaced."""
    token = TEAMS.get(_INVITATION + token_hash, "invitation")
    if token is None:
        return None
    invitation = get(token["team_id"], token["address"])
    return invitation if invitation is not None and invitation.id == token["id"] else None


def is_invited(address: str, *, now: datetime) -> bool:
    """Whether any team has an invitation for the address that has not expired."""
    found = TEAMS.query(equals(pk=_INVITED + address))
    return any(item["expires_at"] > to_epoch_seconds(now) for item in found)


def delete_all(team_id: str, has_time: Callable[[], bool]) -> bool:
    """Delete the invitations to a deleted team. False if time ran out."""
    for invitation in stored(team_id):
        if not has_time():
            return False
        delete(invitation, by=None)
    return True


def _deletion(invitation: Invitation) -> list[Write]:
    """Delete this invitation, on condition that no other has replaced it."""
    key = (invitation.team_id, _INVITATION + invitation.address)
    return [
        TEAMS.delete(*key, when=equals(id=invitation.id)),
        TEAMS.delete(_INVITED + invitation.address, invitation.team_id),
    ]


def _items(invitation: Invitation) -> tuple[Item, Item]:
    expires_at = to_epoch_seconds(invitation.expires_at)
    pointer = {
        "pk": _INVITED + invitation.address,
        "sk": invitation.team_id,
        "expires_at": expires_at,
    }
    record = {
        "pk": invitation.team_id,
        "sk": _INVITATION + invitation.address,
        "expires_at": expires_at,
        **_FORM.item(invitation),
    }
    return record, pointer


def _invitation(item: Item) -> Invitation:
    address = item["sk"].removeprefix(_INVITATION)
    return _FORM.record(item, team_id=item["pk"], address=address)
